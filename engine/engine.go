// Package engine is one tenant's database: one file, one writer at a time, many readers, everything held in memory and
// queried in place.
//
// The file is a log (engine/wal) whose records are blocks of changes. The bytes on disk are the bytes read: the heap
// holds the same records in large segments without pointers (memory), and a collection finds its documents in them by
// id (table). Indexes are derived from the documents, built by the first statement that needs one and kept by every
// write after it, so they can lose nothing.
//
// A write runs under the exclusive lock, changes the memory as it goes with a record of how to put it back, and at its
// end stages one record, which fixes its place in the file. Writing and syncing that record happens outside the lock,
// together with whatever else is waiting; only then is the write answered.
//
// A document whose ttl is over at a statement's time is left out by that statement, whatever it asks, and stays in the
// file until Expire, which whoever owns the database calls now and then, deletes it.
//
// Collections whose names begin with _ are the database's own, rows and changes like any other, which no statement finds
// and nothing lists. There are two: _idempotency, what was answered to writes under a key (Once), and _consumers, the
// cursors of those who read the changes (Consumer).
//
// A Feed, where there is one, is told of every block as it lands and of what is synced: engine/feed keeps the changes.
//
// Of the derived state only the graphs of vectors are kept in the file, in records that count as no change and without
// which it says the same (keptGraph). A write leaves vectors to be linked into their graph by one goroutine (linker), which
// also saves a graph that has changed much.
//
// Locks, in the order they are taken:
//
//	DB.writer   one writer, compaction's swap, freeze or start of an image at a time; held while waiting for a disk
//	            by compaction's swap, by the start of an image for the blocks staged before it, and by Close
//	DB.mu       the memory, the tables and the flags; shared by readers, exclusive for the change itself
//	derived.mu  one index being built by the readers that need it
//	linking     of a graphIndex: one at a time links, writes or counts it, under DB.mu, shared or not
//	linker.mu   whether the linker runs
//	shapes.mu   what is counted of statements; it is held for nothing else and by nobody who waits
//	DB.landing  what is staged and not yet known to be on disk
//	watches.mu  the claims that wait; what Watch is given is called under it
//
// The log's lock and a feed's are taken last, in that order.
//
// There are two goroutines at most, the log's own and the linker, both of which Close stops and waits for; building an
// index and a step of the linker start others, which they wait for.
package engine

import (
	"crypto/rand"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query"
	"fenec/engine/wal"
	"fenec/internal/vfs"

	"github.com/rs/zerolog"
)

// Options are what a database takes from its surroundings. The zero value is the real file system, clock and
// randomness, and syncs only as the database closes.
type Options struct {
	FS    vfs.FS
	Clock func() time.Time
	Rand  io.Reader
	// Sync says when a write answered is on disk.
	Sync wal.Policy
	// ReadOnly opens the file without writing a byte to it; every write is refused.
	ReadOnly bool
	// Follower has the database take the records of another copy (Follow) and no writes of its own.
	Follower bool
	// StatementTimeout stops a statement that runs longer; none where zero.
	StatementTimeout time.Duration
	// KeyTTL is how long the answer of a write under a key is kept; a day where zero.
	KeyTTL time.Duration
	// Feed is told of every block; nil where nobody follows the changes.
	Feed Feed
	// CompactAt is the share of the file that must be dead for a compact to be due; 0 is never. Due is called each time one
	// becomes due, under the database's lock, so it must be quick and may call nothing of the database.
	CompactAt float64
	Due       func()
	// Refuse is asked before a write's block lands, with what it does; an error of it refuses the write, which is put back.
	// It is called under the database's lock, so it must be quick and may call nothing of the database. nil refuses none.
	Refuse func(Effect) error
	// Slow logs a statement that takes longer, by its shape; none where zero.
	Slow time.Duration
	Log  zerolog.Logger
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.KeyTTL == 0 {
		o.KeyTTL = defaultKeyTTL
	}
	if o.Due == nil {
		o.Due = func() {}
	}
	return o
}

// DB is an open database. Its methods may be called from any number of goroutines.
type DB struct {
	path string
	opts Options
	log  *wal.Log

	statements statements
	shapes     shapes

	writer   sync.Mutex
	mu       sync.RWMutex
	rewrites sync.WaitGroup // compactions under way or waiting; added to under mu while not closed
	turn     chan struct{}  // has a value in it while a compaction is under way
	copying  atomic.Int64   // bytes of the new memory that it has made so far

	memory memory
	// replayed is how much of the first segment, the file as it was opened, is documents and what else is no graph at its
	// end; 0 once that segment is another.
	replayed int
	tables   map[string]*table
	numbers  map[uint64]*table
	names    []string // of the tables statements know, sorted
	counted  uint64   // the last table number handed out
	version  uint64   // moves with every schema change, put back ones too
	seq      uint64   // the change counter
	space    space
	history  history
	left     []branch          // the histories this one forked from, the first one first
	ours     bool              // history is the one that this open of the file writes
	own      [lineageSize]byte // of the history that it will begin with its first change

	historyText string // of history, made once
	fed         bool   // the feed knows what the file begins with

	frozen bool
	closed bool
	failed error // a storage error: no write until the file is opened again

	last    wal.Ticket // of the latest block staged
	reader  reader
	tx      tx // the block under way, of whoever holds the lock
	landing landing
	linker  linker
	watches watches

	closeOnce func() error
}

// Create makes a new, empty database at path, on disk with its directory entry when it returns. It is os.ErrExist
// where there is a file already.
func Create(path string, o Options) (*DB, error) {
	o = o.withDefaults()
	db := newDB(path, o)
	if err := db.beginHistory(); err != nil {
		return nil, err
	}
	db.beginFeed()
	first := wal.Record{Kind: wal.Image, Data: appendHead(make([]byte, wal.HeaderSize), head{History: db.history})}
	var err error
	if db.log, err = wal.Create(path, db.walOptions(), first); err != nil {
		return nil, err
	}
	db.space.file = db.log.Size()
	return db, nil
}

// Open opens the database at path, replaying its file. A record a crash cut short is cut off, which the log is told;
// fail.Damaged is a file with damage before its end, and names the offset.
func Open(path string, o Options) (*DB, error) {
	db := newDB(path, o.withDefaults())
	log, err := wal.Open(path, db.walOptions(), db.replay)
	if err != nil {
		return nil, err
	}
	db.log = log
	db.space.file = log.Size()
	if db.history == (history{}) {
		log.Close()
		return nil, errHeadless()
	}
	db.beginFeed()
	if o.Feed != nil {
		o.Feed.Opened(log.OnDisk())
	}
	if err := db.takeOver(); err != nil {
		log.Close()
		return nil, err
	}
	return db, nil
}

func newDB(path string, o Options) *DB {
	db := &DB{path: path, opts: o, tables: map[string]*table{}, numbers: map[uint64]*table{}, turn: make(chan struct{}, 1)}
	if o.CompactAt == 0 {
		db.space.look = math.MaxInt64
	}
	db.reader.db = db
	db.tx.reader = &db.reader
	db.linker.db, db.linker.crowd = db, crowd
	db.closeOnce = sync.OnceValue(db.close)
	return db
}

func (db *DB) walOptions() wal.Options {
	o := wal.Options{
		FS: db.opts.FS, Rand: db.opts.Rand, Sync: db.opts.Sync, ReadOnly: db.opts.ReadOnly, Log: db.opts.Log,
		Failed: db.storageFailed,
	}
	if db.opts.Feed != nil {
		o.Settled, o.Synced = db.opts.Feed.Settled, db.opts.Feed.Synced
	}
	return o
}

// Close waits for the statements under way, stops a compaction and the linker, saves the graphs of vectors that have
// changed, syncs the file and lets go of it. Statements after it are refused. It may be called again, and answers the
// same.
func (db *DB) Close() error { return db.closeOnce() }

func (db *DB) close() error {
	db.mu.Lock()
	db.closed = true
	db.mu.Unlock()
	db.linker.stop()
	db.rewrites.Wait()
	db.writer.Lock()
	defer db.writer.Unlock()
	lost := db.saveLast()
	err := db.log.Close()
	if lost { // and nothing else is
		return nil
	}
	return err
}

// storable is nil while something may be added to the file.
func (db *DB) storable() error {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.storableLocked()
}

// Freeze refuses writes with fail.Frozen from here on and returns the change the database stands at, once every write
// answered before is on disk. Reads go on. Graphs of vectors are saved before, so that an image has them, and the file is
// marked as one closed in order. The history it is frozen in is one that no other copy of the file goes on in, so whoever
// is given an image may do so (GoOn).
func (db *DB) Freeze() (seq uint64, err error) {
	db.saveGrown(grownIdle)
	db.writer.Lock()
	db.mu.Lock()
	closed := db.closed
	if !db.ours && db.writableLocked() == nil {
		db.beginOwnLocked(db.own)
	}
	db.frozen = !closed
	seq = db.seq
	last := db.last
	db.mu.Unlock()
	db.writer.Unlock()
	if closed {
		return 0, errClosed()
	}
	if err := db.log.Commit(last); err != nil {
		return 0, err
	}
	if db.opts.ReadOnly {
		return seq, nil
	}
	if err := db.log.Sync(); err != nil {
		return seq, err
	}
	db.writer.Lock() // it may have been thawed meanwhile
	defer db.writer.Unlock()
	db.log.Mark()
	return seq, nil
}

// Hold is Freeze of a database that was opened just now and is to be as it was left, frozen.
func (db *DB) Hold() {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.frozen = !db.closed
}

// Thaw takes writes again.
func (db *DB) Thaw() {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.frozen = false
	db.lookAgain()
	db.watches.mu.Lock()
	defer db.watches.mu.Unlock()
	db.watches.tellAll(db.opts.Clock(), false)
}

// Frozen tells whether writes are refused for now.
func (db *DB) Frozen() bool {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.frozen
}

// Position is the change the database stands at and the history that change is of.
func (db *DB) Position() (seq uint64, history string) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.seq, db.historyText
}

// Writable is nil where a write may begin, and otherwise why not.
func (db *DB) Writable() error {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.writableLocked()
}

// writableLocked is nil if a write may begin. It needs the lock.
func (db *DB) writableLocked() error {
	if err := db.storableLocked(); err != nil || !db.opts.Follower {
		return err
	}
	return fail.New(fail.ReadOnly, "this copy of the database follows another one: send the write there")
}

// storableLocked is nil if something may be added to the file. It needs the lock.
func (db *DB) storableLocked() error {
	switch {
	case db.closed:
		return errClosed()
	case db.opts.ReadOnly:
		return fail.New(fail.ReadOnly, "the database is open for reading only")
	case db.failed != nil:
		return fail.New(fail.KindOf(db.failed), "writes are stopped until the database is opened again: %s", db.failed)
	case db.frozen:
		return fail.New(fail.Frozen, "writes are paused for a moment, send the write again")
	}
	return nil
}

func errClosed() error {
	return fail.New(fail.Closed, "the database is closing, send the request again")
}

// Statement is one FenecQL statement and the values of its parameters, $1 first.
type Statement struct {
	Text   string
	Params []doc.Value
}

// Result is what a statement answered.
type Result struct {
	query.Result
	// Wrote tells that the statement was a write, whether or not it found anything to write.
	Wrote bool
	// Seq and History are the change a write left the database at, or a read saw it at.
	Seq     uint64
	History string
}
