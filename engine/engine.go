// Package engine implements one tenant's database: one file, one writer at a time, many readers. All data is held in
// memory and queried in place.
//
// The file is a log (engine/wal) whose records are blocks of changes. The bytes on disk are the bytes read: the heap
// holds the same records in large segments without pointers (memory), and a collection finds its documents in them by
// id (table). Indexes are derived from the documents. The first statement that needs an index builds it, and every write
// after that updates it, so an index cannot lose data.
//
// A write runs under the exclusive lock. It changes the memory directly and records how to undo each change. At its end
// it stages one record, which fixes its place in the file. The record is written and synced outside the lock, in a group
// with other waiting records. The write returns after that.
//
// Every call that reads or writes content for a caller takes a Scope, which says what that caller may do. FenecQL is parsed in
// this package and below it, and nowhere else.
//
// A statement ignores documents whose ttl has expired at the statement's time. They stay in the file until Expire, which
// the owner of the database calls periodically, deletes them.
//
// Collections whose names begin with _ are internal. Their rows and changes are like any other, but no statement finds
// them and nothing lists them. There are two: _idempotency holds the answers to writes under a key (Once), and _consumers
// the cursors of readers of the changes (Consumer).
//
// An optional Feed is notified of every block when it lands and of every sync; engine/feed keeps the changes.
//
// The indexes are kept by engine/derived, which the engine notifies of every change. Of them only the graphs of vectors are
// kept in the file, in records that do not count as changes and that the file is complete without. A write leaves its vectors
// to be linked into their graph by one goroutine of that package, which also has a graph saved that has changed much.
//
// Locks, in the order they are taken:
//
//	DB.writer   serializes writers, compaction's swap, freeze and the start of an image. Three hold it while they wait
//	            for a disk: compaction's swap, the start of an image (for the blocks staged before it) and Close
//	DB.mu       guards the memory, the tables and the flags; shared by readers, exclusive for the change itself
//	derived's   those of engine/derived, under DB.mu, shared or not
//	shapes.mu   guards the statistics of statements; never held while waiting or taking another lock
//	DB.landing  guards what is staged and not yet known to be on disk
//	watches.mu  guards the waiting claims; the callback of Watch is called under it
//
// The log's lock and a feed's are taken last, in that order.
//
// There are at most two long-lived goroutines, the log's own and the linker. Close stops them and waits for them.
// Building an index and a step of the linker start others and wait for them.
package engine

import (
	"context"
	"crypto/rand"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"fenec/engine/derived"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query"
	"fenec/engine/wal"
	"fenec/internal/vfs"

	"github.com/rs/zerolog"
)

// Options configure a database. The zero value uses the real file system, clock and randomness, and syncs only on Close.
type Options struct {
	FS    vfs.FS
	Clock func() time.Time
	Rand  io.Reader
	// Sync sets when an acknowledged write is on disk.
	Sync wal.Policy
	// ReadOnly opens the file without writing a byte to it; every write is refused.
	ReadOnly bool
	// Follower makes the database follow another copy: it accepts that copy's records (Follow) and refuses writes of its own.
	// Promote and Demote change the role of an open database.
	Follower bool
	// StatementTimeout stops a statement that runs longer. Zero means no timeout.
	StatementTimeout time.Duration
	// KeyTTL is how long the answer of a write under a key is kept. Zero means a day.
	KeyTTL time.Duration
	// Feed is notified of every block. It may be nil.
	Feed Feed
	// CompactAt is the share of the file that must be dead for a compact to be due; 0 means never. Due is called each time
	// one becomes due, under the database's lock, so it must be quick and must not call the database.
	CompactAt float64
	Due       func()
	// Refuse is called with the effect of a write before its block lands. If it returns an error, the write is undone and
	// fails with that error. It is called under the database's lock, so it must be quick and must not call the database.
	// nil refuses none.
	Refuse func(Effect) error
	// Acknowledge is called with the change that a block ends with, once the block is as durable as Sync asks and before its
	// write returns; a repeat of a write under a key calls it too. It may block, and holds no lock. If it returns an error,
	// the write fails with that error, and its block stays. nil acknowledges at once.
	Acknowledge func(ctx context.Context, seq uint64) error
	// Slow logs the shape of a statement that takes longer. Zero logs none.
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
	rewrites sync.WaitGroup // compactions that run or wait; added to under mu while not closed
	turn     chan struct{}  // has a value in it while a compaction runs
	copying  atomic.Int64   // bytes of the new memory that the compaction has made so far

	memory memory
	// replayed is how many bytes of the first segment, the file when it was opened, precede the graphs at its end. It is 0
	// once another segment is the first.
	replayed int
	tables   map[string]*table
	numbers  map[uint64]*table
	names    []string // of the tables that statements can find, sorted
	counted  uint64   // the last table number assigned
	version  uint64   // incremented by every schema change, also by undoing one
	seq      uint64   // the change counter
	space    space
	history  history
	left     []branch          // the histories this one forked from, oldest first
	ours     bool              // history is the one that this open of the file writes
	own      [lineageSize]byte // of the history that this open begins with its first change

	historyText string // history formatted, cached
	fed         bool   // the feed has been given the image that the file begins with

	follower bool
	frozen   bool
	closed   bool
	failed   error // a storage error: no write until the file is opened again

	last    wal.Ticket // of the latest block staged
	reader  reader
	tx      tx // the open block, of the goroutine that holds the lock
	landing landing
	derived *derived.Database
	watches watches

	closeOnce func() error
}

// Create makes a new, empty database at path. The file and its directory entry are on disk when Create returns. It fails
// with os.ErrExist if the file exists.
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

// Open opens the database at path and replays its file. A record that a crash cut short is cut off and logged. Open
// fails with fail.Damaged, which names the offset, if the file is damaged before its end.
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
	db := &DB{path: path, opts: o, follower: o.Follower, tables: map[string]*table{}, numbers: map[uint64]*table{}, turn: make(chan struct{}, 1)}
	if o.CompactAt == 0 {
		db.space.recheckAt = math.MaxInt64
	}
	db.reader.db = db
	db.tx.reader = &db.reader
	db.derived = newDerived(db)
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

// Close waits for running statements, stops a compaction and the linker, saves the graphs of vectors that have changed,
// syncs the file and closes it. Later statements are refused. Further calls return the same error.
func (db *DB) Close() error { return db.closeOnce() }

func (db *DB) close() error {
	db.mu.Lock()
	db.closed = true
	db.mu.Unlock()
	db.derived.Stop()
	db.rewrites.Wait()
	db.writer.Lock()
	defer db.writer.Unlock()
	lost := db.saveLast()
	err := db.log.Close()
	if lost { // only graphs, which are rebuilt
		return nil
	}
	return err
}

// storable returns nil if records may be added to the file, and otherwise the reason.
func (db *DB) storable() error {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.storableLocked()
}

// Freeze refuses writes with fail.Frozen from here on. It returns the change number of the database after every
// acknowledged write is on disk. Reads go on. Freeze first saves graphs of vectors, so that an image has them, and marks
// the file as cleanly closed. No other copy of the file continues the history it is frozen in, so the receiver of an image
// may do so (GoOn).
func (db *DB) Freeze() (seq uint64, err error) {
	db.saveGraphs(derived.Linked)
	db.writer.Lock()
	db.mu.Lock()
	closed := db.closed
	if follows := db.follower; follows {
		db.mu.Unlock()
		db.writer.Unlock()
		return 0, fail.New(fail.Conflict, "this copy of the database follows another one: freeze that one")
	}
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

// Refreeze is Freeze for a database that was frozen when it was closed and has just been opened again.
func (db *DB) Refreeze() {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.frozen = !db.closed
}

// Thaw accepts writes again.
func (db *DB) Thaw() {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.frozen = false
	db.recheckDue()
	db.watches.mu.Lock()
	defer db.watches.mu.Unlock()
	db.watches.notifyAll(db.opts.Clock(), false)
}

// Frozen reports whether the database is frozen.
func (db *DB) Frozen() bool {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.frozen
}

// Position returns the number of the latest change and the history of that change.
func (db *DB) Position() (seq uint64, history string) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.seq, db.historyText
}

// Writable returns nil if a write may begin, and otherwise the reason.
func (db *DB) Writable() error {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.writableLocked()
}

// writableLocked is Writable under the lock.
func (db *DB) writableLocked() error {
	if err := db.storableLocked(); err != nil || !db.follower {
		return err
	}
	return errFollows()
}

// storableLocked is storable under the lock.
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

// Result is the result of a statement.
type Result struct {
	query.Result
	// Wrote reports whether the statement was a write, even if it found nothing to write.
	Wrote bool
	// Seq and History are the position of the database after a write, or the one that a read saw.
	Seq     uint64
	History string
}
