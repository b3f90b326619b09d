package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// linker is the goroutine that links, beside the queries, the vectors that writes have left to the graphs of a database:
// until then every search of the graph compares with each of them. It is there only while there are such vectors.
type linker struct {
	db     *DB
	wanted atomic.Bool // there may be vectors to link that nobody has looked at

	mu      sync.Mutex
	running bool
	stopped bool
	ended   sync.WaitGroup
}

// want has the vectors that wait linked. It may be called under the database's lock.
func (l *linker) want() {
	if l.wanted.Swap(true) {
		return // whoever set it sees to that
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.running && !l.stopped {
		l.running = true
		l.ended.Go(l.run)
	}
}

func (l *linker) run() {
	for {
		l.wanted.Store(false)
		for l.db.linkSome() && !l.isStopped() {
			l.db.saveGrown(grownBusy)
		}
		l.db.saveGrown(grownIdle)
		l.mu.Lock()
		if l.stopped || !l.wanted.Load() {
			l.running = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
	}
}

func (l *linker) isStopped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped
}

// stop ends the goroutine for good and waits for it. It must not be called under the database's lock.
func (l *linker) stop() {
	l.mu.Lock()
	l.stopped = true
	l.mu.Unlock()
	l.ended.Wait()
}

// linkers is how many processors link beside the queries, to which the others are left.
func linkers() int { return max(runtime.GOMAXPROCS(0)/2, 1) }

// linkBatch is how many vectors are linked in one hold of the database's lock, which is what a writer waits for.
const linkBatch = 16

// linkSome links some of the vectors that wait and tells whether there were any.
func (db *DB) linkSome() bool {
	db.mu.RLock()
	defer db.mu.RUnlock()
	for _, t := range db.numbers {
		for _, x := range t.derived {
			if s, ok := x.there().(*graphIndex); ok && s.link(linkers(), linkBatch) {
				return true
			}
		}
	}
	return false
}
