package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"fenec/engine/wal"
)

// landing holds the undo log of each block that is staged and not yet known to be written, in the order of the file.
type landing struct {
	mu     sync.Mutex
	blocks []block
	spare  atomic.Pointer[undoLog] // a small one to reuse
}

type block struct {
	ticket  wal.Ticket
	undo    *undoLog
	changes uint64
}

// empty returns an empty undoLog.
func (l *landing) empty() *undoLog {
	if u := l.spare.Swap(nil); u != nil {
		return u
	}
	return new(undoLog)
}

// recycle keeps u for the next block unless it has grown large.
func (l *landing) recycle(u *undoLog) {
	if cap(u.changes) <= smallBlock {
		u.reset()
		l.spare.Store(u)
	}
}

func (l *landing) add(b block) {
	l.mu.Lock()
	l.blocks = append(l.blocks, b)
	l.mu.Unlock()
}

// landed drops the blocks up to t, which are written.
func (l *landing) landed(t wal.Ticket) {
	l.mu.Lock()
	n := 0
	for n < len(l.blocks) && l.blocks[n].ticket <= t {
		l.recycle(l.blocks[n].undo)
		n++
	}
	if n == len(l.blocks) { // always so with a single writer
		clear(l.blocks)
		l.blocks = l.blocks[:0]
	} else {
		l.blocks = slices.Delete(l.blocks, 0, n)
	}
	l.mu.Unlock()
}

// from removes and returns the blocks from first on.
func (l *landing) from(first wal.Ticket) []block {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.blocks) && l.blocks[n].ticket < first {
		n++
	}
	out := slices.Clone(l.blocks[n:])
	l.blocks = l.blocks[:n]
	return out
}

// storageFailed is called by the log after a write to the file or a sync of it has failed. It stops writes and undoes the
// blocks from first on, which are not in the file, so that no read sees a write that has failed.
func (db *DB) storageFailed(first wal.Ticket, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.failed = err
	db.last = first - 1
	for _, b := range slices.Backward(db.landing.from(first)) {
		b.undo.run()
		db.seq -= b.changes
	}
	db.space.file = db.log.Size()
	if db.opts.Feed != nil {
		db.opts.Feed.Undone(first)
	}
	db.opts.Log.Error().Err(err).Uint64("change", db.seq).Msg("storage failed: writes are stopped until the database is opened again")
}
