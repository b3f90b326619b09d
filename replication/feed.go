// Package replication keeps the changes of one database for those who follow them: change data capture, live queries,
// and copies of the database elsewhere.
//
// A Feed is the blocks themselves, numbered by the change counter, as long as they are at hand: those that the file
// still holds, which the database has in memory anyway and the feed only points into, and behind them those a rewrite
// of the file left out, of which the feed keeps copies up to a bound. A write costs the feed a few stores; the index is
// a span for each 64 KiB of records.
//
// There are three ends. A block has landed once statements see it. It is settled once it is as durable as its writer is
// told it is, in the file or on disk as the policy has it, and live queries and readers who wait for a change are told
// then: the end of the process takes back nothing of it. It is durable once an fsync covers it; change data capture and
// copies are handed nothing beyond that, so that no crash takes back what somebody else has seen. Under a policy that
// never syncs by itself it is the reader who has it synced (Cover).
//
// Nothing here starts a goroutine. Feed.mu is taken last, under the database's lock and the log's, and held for no I/O;
// Feed.syncing is held by whoever syncs for the readers, with no other lock held.
package replication

import (
	"math"
	"slices"
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
	// Settled is up to the last block that is as durable as its writer is told.
	Settled
	// Durable is up to the last block that an fsync covers.
	Durable

	reaches
)

// Feed keeps the changes of one database, as the engine.Feed of its options. Its methods may be called from any number
// of goroutines.
type Feed struct {
	keep int64 // bytes of own spans at most

	syncing sync.Mutex

	mu       sync.Mutex
	db       *engine.DB
	lazy     bool // nobody syncs but at the readers' wish
	spans    []span
	first    uint64 // the lowest cursor that can be served
	landed   uint64 // the change the last block ends at
	settled  uint64 // the change the last settled block ends at
	settling []settling
	wrote    wal.Ticket // the last that is settled
	synced   wal.Ticket
	onDisk   int64 // of the file as it was opened, what ends at or before this offset is on disk
	own      int64 // bytes of the spans that are copies, which are the oldest
	rewrite  rewrite
	schemas  schemas
	moved    [reaches]chan struct{} // closed as that end moves; nil where nobody waits
	waiters  []*Waiter              // woken as blocks settle
}

// settling is a block that has landed and is not settled yet.
type settling struct {
	ticket wal.Ticket
	after  uint64
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
	f.first, f.landed, f.settled = seq, seq, seq
	for _, c := range collections {
		f.schemas.add(c.Number, seq, c.Schema)
	}
}

// Landed is engine.Feed's.
func (f *Feed) Landed(b engine.Landed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.landed = b.After
	if b.Ticket <= f.wrote { // of the file as it was opened, or written as quickly as that
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

// Settled is engine.Feed's.
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
	f.settling = slices.DeleteFunc(f.settling, func(s settling) bool { return s.ticket >= first })
	f.wake(Landed)
	f.wake(Settled) // who waits for what is gone has to know
}

// Opened is engine.Feed's.
func (f *Feed) Opened(onDisk int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onDisk = max(f.onDisk, onDisk)
}

// allOnDisk is Feed.onDisk of a file of which nothing is left to be synced.
const allOnDisk = math.MaxInt64

// Synced is engine.Feed's.
func (f *Feed) Synced(last wal.Ticket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced, f.onDisk = last, allOnDisk
	f.wake(Durable)
}

// wake has those who wait for an end to move look again.
func (f *Feed) wake(r Reach) {
	if r == Settled {
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
		r = Settled // and what is settled, Cover makes durable
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

// CoverHistory has the history that the database writes on disk as it returns: an answer that hands a cursor out for
// good may name it. That is so once anything is synced that was written since the file was opened.
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
