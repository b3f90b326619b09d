// Package replication keeps the changes of one database for those who follow them: change data capture, live queries,
// and copies of the database elsewhere.
//
// A Feed is the blocks themselves, numbered by the change counter, as long as they are at hand: those that the file
// still holds, which the database has in memory anyway and the feed only points into, and behind them those a rewrite
// of the file left out, of which the feed keeps copies up to a bound. A write costs the feed a few stores; the index is
// a span for each 64 KiB of records.
//
// There are two ends. A block has landed once statements see it, which is when a live query is told. It is durable once
// an fsync covers it; change data capture and copies are handed nothing beyond that, so that no crash takes back what
// somebody else has seen. Under a policy that never syncs by itself, and of what an earlier process left, it is the
// reader who has it synced (Cover).
//
// Nothing here starts a goroutine. Feed.mu is taken last, under the database's lock and the log's, and held for no I/O;
// Feed.syncing is held by whoever syncs for the readers, with no other lock held.
package replication

import (
	"sync"

	"fenec/engine"
	"fenec/engine/wal"
)

// DefaultKeep is how many bytes of blocks that the file holds no more a feed keeps where its maker does not say.
const DefaultKeep = 64 << 20

// Reach is how far a reader sees.
type Reach uint8

const (
	// Landed is up to the last block that statements see.
	Landed Reach = iota
	// Durable is up to the last block that an fsync covers.
	Durable

	reaches
)

// Feed keeps the changes of one database, as the engine.Feed of its options. Its methods may be called from any number
// of goroutines.
type Feed struct {
	keep int64 // bytes of own spans at most

	syncing sync.Mutex

	mu        sync.Mutex
	db        *engine.DB
	lazy      bool // nobody syncs but at the readers' wish
	spans     []span
	first     uint64 // the lowest cursor that can be served
	landed    uint64 // the change the last block ends at
	synced    wal.Ticket
	inherited bool  // what the file held as it was opened may not be on disk yet
	own       int64 // bytes of the spans that are copies, which are the oldest
	rewrite   rewrite
	schemas   schemas
	moved     [reaches]chan struct{} // closed as that end moves; nil where nobody waits
	waiters   []*Waiter              // woken as a block lands
}

// New makes a feed that keeps copies of up to keep bytes of blocks which the file holds no more.
func New(keep int64) *Feed { return &Feed{keep: keep, schemas: schemas{}} }

var _ engine.Feed = (*Feed)(nil)

// Begin is engine.Feed's.
func (f *Feed) Begin(db *engine.DB, seq uint64, collections []engine.Collection) {
	f.mu.Lock()
	defer f.mu.Unlock()
	policy := db.SyncPolicy()
	f.db, f.lazy = db, !policy.Always && policy.Every == 0
	f.first, f.landed = seq, seq
	for _, c := range collections {
		f.schemas.add(c.Number, seq, c.Schema)
	}
}

// Landed is engine.Feed's.
func (f *Feed) Landed(b engine.Landed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.Ticket == 0 {
		f.inherited = true
	}
	f.landed = b.After
	f.add(b)
	if b.Schemas {
		f.schemas.follow(engine.Record(b.Memory[b.Start:]), b.Before)
	}
	f.wake(Landed)
}

// Relocated is engine.Feed's.
func (f *Feed) Relocated(segment int, memory []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.relocate(segment, memory)
}

// Undone is engine.Feed's. Schemas that the blocks made stay: no change is left that asks for them.
func (f *Feed) Undone(first wal.Ticket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.spans)
	for n > 0 && f.spans[n-1].ticket >= first {
		n--
	}
	f.spans = f.spans[:n]
	f.landed = f.first
	if n > 0 {
		last := &f.spans[n-1]
		if last.ticket > 0 {
			last.cut(int(first - last.ticket))
		}
		f.landed = last.after
	}
	f.wake(Landed)
}

// Synced is engine.Feed's.
func (f *Feed) Synced(last wal.Ticket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced, f.inherited = last, false
	f.wake(Durable)
}

// wake has those who wait for an end to move look again.
func (f *Feed) wake(r Reach) {
	if r == Landed {
		f.wakeWaiters()
	}
	if f.moved[r] != nil {
		close(f.moved[r])
		f.moved[r] = nil
	}
}

// Moved answers a channel that is closed as there may be more in reach than now.
func (f *Feed) Moved(r Reach) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r == Durable && f.lazy {
		r = Landed // and what has landed, Cover makes durable
	}
	if f.moved[r] == nil {
		f.moved[r] = make(chan struct{})
	}
	return f.moved[r]
}

// End is the change the last block in reach ends at.
func (f *Feed) End(r Reach) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end(r)
}

func (f *Feed) end(r Reach) uint64 {
	if r == Landed {
		return f.landed
	}
	n := f.durableSpans()
	if n == 0 {
		return f.first
	}
	return f.spans[n-1].afterBlocks(f.covered(&f.spans[n-1]))
}

// First is the lowest cursor that can be served: the change the oldest block at hand begins behind.
func (f *Feed) First() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first
}

// Bytes is what the feed holds in memory beside the database's own.
func (f *Feed) Bytes() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.own + f.rewrite.copied + int64(cap(f.spans)+cap(f.rewrite.kept))*spanBytes + f.schemas.bytes()
}

// Cover has what has landed on disk as it returns, where nobody else would see to that soon: under a policy that syncs
// as the database closes, and where the file was not closed in order by the process that wrote it.
func (f *Feed) Cover() error {
	if !f.uncovered() {
		return nil
	}
	f.syncing.Lock() // so that of many readers one syncs
	defer f.syncing.Unlock()
	if !f.uncovered() {
		return nil
	}
	return f.db.Sync()
}

func (f *Feed) uncovered() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return (f.lazy || f.inherited) && f.end(Durable) < f.landed
}
