package derived

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// linker is the goroutine that links the vectors that writes have added to the graphs of a database, while queries go on.
// Until a vector is linked, every search of its graph measures it. The linker also has the graphs saved and their old bytes
// in memory freed. It runs only while there is something to do.
type linker struct {
	database    *Database
	maxUnlinked int         // maxUnlinked, or less in tests
	wanted      atomic.Bool // there may be something to do that it has not seen

	mu      sync.Mutex
	running bool
	stopped bool
	ended   sync.WaitGroup
}

// want makes the linker check for work. It may be called under the lock.
func (l *linker) want() {
	if l.wanted.Swap(true) {
		return // the goroutine that set it starts the linker
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.running && !l.stopped {
		l.running = true
		l.ended.Go(l.run)
	}
}

func (l *linker) run() {
	host := l.database.opts.Host
	for {
		l.wanted.Store(false)
		host.Trim()
		for l.database.linkSome() && !l.isStopped() {
			host.SaveGraphs(Linking)
		}
		host.SaveGraphs(Linked)
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

// stop ends the goroutine for good and waits for it. It must not be called under the lock.
func (l *linker) stop() {
	l.mu.Lock()
	l.stopped = true
	l.mu.Unlock()
	l.ended.Wait()
}

// linkers returns how many processors link. The others are left to the queries.
func linkers() int { return max(runtime.GOMAXPROCS(0)/2, 1) }

// linkSome links some of the unlinked vectors and reports whether there were any.
func (d *Database) linkSome() (linked bool) {
	d.opts.Shared.Lock()
	defer d.opts.Shared.Unlock()
	d.graphs(func(_ *Index, s *graph) bool {
		linked = s.linkStep(linkers()) > 0
		return !linked
	})
	return linked
}

// maxUnlinked is how many numbers of unlinked vectors a graph may have before writes that add to them have to link. A
// search measures each of them, which takes some ten milliseconds for so many.
const maxUnlinked = 32 << 20

// LinkIfBehind makes a write that changed n documents link as many vectors if a graph has too many unlinked ones, so that
// writers that are faster than the linker do not make searches slower and slower. It must not be called under the lock.
func (d *Database) LinkIfBehind(ctx context.Context, n int64) {
	for n > 0 && d.linker.runs() && ctx.Err() == nil {
		linked := d.linkOverdue()
		if linked == 0 {
			return
		}
		n -= int64(linked)
	}
}

// runs reports whether the linker is running.
func (l *linker) runs() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running
}

// linkOverdue is linkSome for graphs with too many unlinked vectors. It returns how many it linked.
func (d *Database) linkOverdue() (linked int) {
	d.opts.Shared.Lock()
	defer d.opts.Shared.Unlock()
	d.graphs(func(x *Index, s *graph) bool {
		if s.waiting() <= d.linker.maxUnlinked/x.vector.Dim {
			return true
		}
		linked = s.linkStep(1)
		return false
	})
	return linked
}
