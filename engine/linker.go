package engine

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// linker is the goroutine that links the vectors that writes have added to the graphs of a database, while queries go on.
// Until a vector is linked, every search of its graph measures it. The linker also saves the graphs and releases their old
// bytes in memory. It runs only while there is something to do.
type linker struct {
	db          *DB
	maxUnlinked int         // maxUnlinked, or less in tests
	wanted      atomic.Bool // there may be something to do that it has not seen

	mu      sync.Mutex
	running bool
	stopped bool
	ended   sync.WaitGroup
}

// want makes the linker check for work. It may be called under the database's lock.
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
	for {
		l.wanted.Store(false)
		l.db.trim()
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

// linkers returns how many processors link. The others are left to the queries.
func linkers() int { return max(runtime.GOMAXPROCS(0)/2, 1) }

// linkSome links some of the unlinked vectors and reports whether there were any.
func (db *DB) linkSome() bool {
	db.mu.RLock()
	defer db.mu.RUnlock()
	for _, t := range db.numbers {
		for _, x := range t.derived {
			if s, ok := x.ifBuilt().(*graphIndex); ok && s.linkStep(linkers()) > 0 {
				return true
			}
		}
	}
	return false
}

// maxUnlinked is how many numbers of unlinked vectors a graph may have before writes that add to them have to link. A
// search measures each of them, which takes some ten milliseconds for so many.
const maxUnlinked = 32 << 20

// linkIfBehind makes a write that changed n documents link as many vectors if a graph has too many unlinked ones, so that
// writers that are faster than the linker do not make searches slower and slower.
func (db *DB) linkIfBehind(ctx context.Context, n int64) {
	for n > 0 && db.linker.runs() && ctx.Err() == nil {
		linked := db.linkOverdue()
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
func (db *DB) linkOverdue() (linked int) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	for _, t := range db.numbers {
		for _, x := range t.derived {
			if s, ok := x.ifBuilt().(*graphIndex); ok && s.waiting() > db.linker.maxUnlinked/x.vector.Dim {
				return s.linkStep(1)
			}
		}
	}
	return 0
}
