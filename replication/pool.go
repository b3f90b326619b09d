package replication

import "sync"

// pool runs functions, at most a number of them at a time and first come first served. What waits for its turn is a function in a
// queue and no goroutine, and a pool with nothing to run has no goroutine either.
type pool struct {
	most int             // functions at a time
	work *sync.WaitGroup // counts the goroutines

	mu      sync.Mutex // taken last
	queue   []func()
	running int
}

// run has f called soon. It never blocks.
func (p *pool) run(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, f)
	if p.running < p.most {
		p.running++
		p.work.Go(p.serve)
	}
}

func (p *pool) serve() {
	for {
		p.mu.Lock()
		if len(p.queue) == 0 {
			p.queue = nil
			p.running--
			p.mu.Unlock()
			return
		}
		f := p.queue[0]
		p.queue[0] = nil
		p.queue = p.queue[1:]
		p.mu.Unlock()
		f()
	}
}
