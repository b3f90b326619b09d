package engine

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// linker is the goroutine that links, beside the queries, the vectors that writes have left to the graphs of a database:
// until then every search of the graph compares with each of them. It saves what it made of them, lets go of what the
// file had, and is there only while there is something to do.
type linker struct {
	db     *DB
	crowd  int         // how many numbers of vectors may wait before writes are held back
	wanted atomic.Bool // there may be something to do that it has not looked at

	mu      sync.Mutex
	running bool
	stopped bool
	ended   sync.WaitGroup
}

// want has it look whether there is something to do. It may be called under the database's lock.
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

// linkers is how many processors link beside the queries, to which the others are left.
func linkers() int { return max(runtime.GOMAXPROCS(0)/2, 1) }

// linkSome links some of the vectors that wait and tells whether there were any.
func (db *DB) linkSome() bool {
	db.mu.RLock()
	defer db.mu.RUnlock()
	for _, t := range db.numbers {
		for _, x := range t.derived {
			if s, ok := x.there().(*graphIndex); ok && s.linkStep(linkers()) > 0 {
				return true
			}
		}
	}
	return false
}

// crowd is how many numbers of vectors may wait to be linked before writes that add to them are held back: a search
// measures each, which takes it some ten milliseconds.
const crowd = 32 << 20

// keepUp has a write that changed n documents link as many vectors itself, where a graph has a crowd of them waiting: so
// that writers who are faster than the linker do not make searches slower and slower.
func (db *DB) keepUp(ctx context.Context, n int64) {
	for n > 0 && db.linker.runs() && ctx.Err() == nil {
		linked := db.linkCrowded()
		if linked == 0 {
			return
		}
		n -= int64(linked)
	}
}

// runs tells that the linker has something to do.
func (l *linker) runs() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running
}

// linkCrowded is linkSome for graphs in which too many wait. It says how many it linked.
func (db *DB) linkCrowded() (linked int) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	for _, t := range db.numbers {
		for _, x := range t.derived {
			if s, ok := x.there().(*graphIndex); ok && s.waiting() > db.linker.crowd/x.vector.Dim {
				return s.linkStep(1)
			}
		}
	}
	return 0
}
