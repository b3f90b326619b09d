// Package feed keeps the changes of one database for its followers: change data capture, live queries, and
// copies of the database elsewhere.
//
// A Feed is the blocks themselves, numbered by the change counter, as long as they are kept: those that the file still
// holds, which the database has in memory anyway and the feed only points into, and before them those that a rewrite of
// the file left out, of which the feed keeps copies up to a bound. A write costs the feed a few stores; the index is a
// span for each 64 KiB of records.
//
// There are three ends. A block has landed once statements see it. It is settled once it is as durable as its writer's
// acknowledgement says, in the file or on disk depending on the policy. Live queries and readers that wait for a change
// are then notified, since the end of the process loses nothing of it. It is durable once an fsync covers it. Change
// data capture and copies read only durable blocks, so that no crash undoes what another system has seen. Under a
// policy that never syncs by itself the reader syncs (Cover).
//
// Nothing here starts a goroutine. Feed.mu is taken last, under the database's lock and the log's, and held for no I/O.
// Feed.syncing is held while a reader syncs, with no other lock held.
package feed

import (
	"math"
	"slices"
	"sync"

	"fenec/engine"
	"fenec/engine/wal"
)

// DefaultKeep is the default of how many bytes of blocks a feed keeps that the file no longer holds.
const DefaultKeep = 64 << 20

// Reach is how far a reader sees.
type Reach uint8

const (
	// Landed is up to the last block that statements see.
	Landed Reach = iota
	// Settled is up to the last block that is as durable as its writer's acknowledgement says.
	Settled
	// Durable is up to the last block that an fsync covers.
	Durable

	reaches
)

// Feed keeps the changes of one database, as the engine.Feed of its options. Its methods are safe for concurrent use.
type Feed struct {
	keep int64 // most bytes of own spans

	syncing sync.Mutex

	mu       sync.Mutex
	db       *engine.DB
	lazy     bool // nothing syncs unless a reader asks for it
	spans    []span
	first    uint64 // the lowest cursor that can be served
	landed   uint64 // the change at which the last block ends
	settled  uint64 // the change at which the last settled block ends
	settling []settling
	wrote    wal.Ticket // the last ticket that is settled
	synced   wal.Ticket
	onDisk   int64 // in the file as it was opened, what ends at or before this offset is on disk
	own      int64 // bytes of the spans that are copies, which are the oldest
	rewrite  rewrite
	schemas  schemas
	moved    [reaches]chan struct{} // closed when that end moves; nil if no reader waits
	wakers   [reaches][]*Waker      // woken when that end moves
}

// settling is a block that has landed and is not settled yet.
type settling struct {
	ticket wal.Ticket
	after  uint64
}

// New returns a feed that keeps copies of up to keep bytes of blocks that the file no longer holds.
func New(keep int64) *Feed { return &Feed{keep: keep, schemas: schemas{}} }

var _ engine.Feed = (*Feed)(nil)

// Begin implements engine.Feed.
func (f *Feed) Begin(db *engine.DB, seq uint64, collections []engine.Collection) {
	f.mu.Lock()
	defer f.mu.Unlock()
	policy := db.SyncPolicy()
	f.db, f.lazy = db, !policy.Always && policy.Every == 0
	f.first, f.landed, f.settled = seq, seq, seq
	for _, c := range collections {
		f.schemas.add(c.Number, seq, c.Schema)
	}
}

// Landed implements engine.Feed.
func (f *Feed) Landed(b engine.Landed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.landed = b.After
	if b.Ticket <= f.wrote { // in the file when it was opened, or written already
		f.settle(b.After)
	} else {
		f.settling = append(f.settling, settling{b.Ticket, b.After})
	}
	f.add(b)
	if b.Schemas {
		f.schemas.follow(engine.Record(b.Memory[b.Start:]), b.Before)
	}
	f.wake(Landed)
}

// Settled implements engine.Feed.
func (f *Feed) Settled(last wal.Ticket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrote = last
	n := 0
	for n < len(f.settling) && f.settling[n].ticket <= last {
		n++
	}
	if n == 0 {
		return
	}
	f.settle(f.settling[n-1].after)
	f.settling = append(f.settling[:0], f.settling[n:]...)
}

// settle moves the end of what is settled.
func (f *Feed) settle(after uint64) {
	f.settled = after
	f.wake(Settled)
}

// Relocated implements engine.Feed.
func (f *Feed) Relocated(segment int, memory []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.relocate(segment, memory)
}

// Undone implements engine.Feed. Schemas that the blocks made stay: no change is left that reads them.
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
	f.settling = slices.DeleteFunc(f.settling, func(s settling) bool { return s.ticket >= first })
	f.wake(Landed)
	f.wake(Settled) // a reader that waits for a block that is gone has to be notified
	f.wake(Durable)
}

// Opened implements engine.Feed.
func (f *Feed) Opened(onDisk int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onDisk = max(f.onDisk, onDisk)
}

// allOnDisk is Feed.onDisk of a file that is on disk in whole.
const allOnDisk = math.MaxInt64

// Synced implements engine.Feed.
func (f *Feed) Synced(last wal.Ticket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced, f.onDisk = last, allOnDisk
	f.wake(Durable)
}

// wake notifies the readers that wait for an end to move.
func (f *Feed) wake(r Reach) {
	f.wakeAll(r)
	if f.moved[r] != nil {
		close(f.moved[r])
		f.moved[r] = nil
	}
}

// Moved returns a channel that is closed when there may be more in reach than now.
func (f *Feed) Moved(r Reach) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r == Durable && f.lazy {
		r = Settled // Cover makes durable what is settled
	}
	if f.moved[r] == nil {
		f.moved[r] = make(chan struct{})
	}
	return f.moved[r]
}

// End returns the change at which the last block in reach ends.
func (f *Feed) End(r Reach) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end(r)
}

func (f *Feed) end(r Reach) uint64 {
	switch r {
	case Landed:
		return f.landed
	case Settled:
		return f.settled
	}
	n := f.durableSpans()
	if n == 0 {
		return f.first
	}
	return f.spans[n-1].afterBlocks(f.covered(&f.spans[n-1]))
}

// First returns the lowest cursor that can be served: the change after which the oldest kept block begins.
func (f *Feed) First() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first
}

// Bytes returns the bytes that the feed holds in memory besides the database's own.
func (f *Feed) Bytes() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.own + f.rewrite.copied + int64(cap(f.spans)+cap(f.rewrite.kept))*spanBytes + f.schemas.bytes()
}

// Cover blocks until what has landed is on disk, if nothing else would sync it soon: under a policy that syncs only on
// close, and if the file was not closed in order by the process that wrote it.
func (f *Feed) Cover() error {
	if !f.uncovered() {
		return nil
	}
	f.syncing.Lock() // so that one of many readers syncs
	defer f.syncing.Unlock()
	if !f.uncovered() {
		return nil
	}
	return f.db.Sync()
}

// CoverHistory blocks until the history that the database writes is on disk, so that a response with a lasting cursor
// may name it. It is on disk once anything was synced that was written since the file was opened.
func (f *Feed) CoverHistory() error {
	f.mu.Lock()
	covered := f.synced > 0 || f.wrote == 0 && len(f.settling) == 0
	f.mu.Unlock()
	if covered {
		return nil
	}
	return f.db.Sync()
}

func (f *Feed) uncovered() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return (f.lazy || f.onDisk < allOnDisk) && f.end(Durable) < f.landed
}
