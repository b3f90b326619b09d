// Package wal is the file of one database: an append-only log of records that begins with an image.
//
// Writing takes two steps. Stage, called under the engine's write lock, fixes a record's place in the file and does no
// I/O. Commit, called outside that lock, returns once the record is written and, if the policy is always, synced. One
// of the goroutines in Commit is the leader: it writes everything staged with one call and syncs it with one more, for
// all of them. Records staged meanwhile form the next group. DESIGN.md says what an acknowledgement guarantees and what
// a failure does.
//
// A log holds one file descriptor; a Snapshot and a Rewrite hold one more each. Its one goroutine, which syncs after
// the writers under an interval policy, is started by Open and Create; Close waits for it.
//
// Locks: Log.mu guards the fields of Log. No I/O happens under it but the opening of the file in Snapshot. A goroutine
// that reads or replaces the end of the file sets Log.busy, and signals Log.free when it is done. Options.Failed is
// called with neither held, so it may take the engine's lock; Options.Settled and Synced are called with Log.mu held.
// The engine may call Stage, Size, Err, Mark, Snapshot and Rewrite's methods under its own lock, but not Commit, Sync
// or Close, which may have to wait for Failed. A disk's own lock is held for one sync, and no other lock is taken under
// it.
package wal

import (
	"crypto/rand"
	"io"
	"sync"
	"sync/atomic"

	"fenec/engine/fail"
	"fenec/internal/vfs"

	"github.com/rs/zerolog"
)

// Ticket identifies a staged record: 1 for the first one after Open or Create, then counting up. Zero is no record.
type Ticket uint64

// Options configure a log. The zero value uses the real file system and randomness, and syncs only on close.
type Options struct {
	FS   vfs.FS
	Rand io.Reader // salts of new files
	Sync Policy
	// ReadOnly opens the file without changing a byte in it or its directory: a torn tail is ignored.
	ReadOnly bool
	Log      zerolog.Logger
	// Failed is called once, after a write or sync failed: the records from ticket first on are not in the file. Their
	// Commits fail only after Failed has returned, so that it can undo them before any caller sees the failure. It is
	// called without locks, on the goroutine of a Commit, of a Sync, of Close, or of the log itself.
	Failed func(first Ticket, err error)
	// Settled is called when records become as durable as Commit waits for under the policy, up to that of ticket last.
	// Synced is called after each sync that succeeded: everything up to the record of ticket last is on disk, with all
	// that the file held when it was opened. Both are called under the log's lock, so they must be quick and may not
	// call the log.
	Settled func(last Ticket)
	Synced  func(last Ticket)
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Failed == nil {
		o.Failed = func(Ticket, error) {}
	}
	if o.Settled == nil {
		o.Settled = func(Ticket) {}
	}
	if o.Synced == nil {
		o.Synced = func(Ticket) {}
	}
	return o
}

// Log is an open file. Its methods are safe for concurrent use.
type Log struct {
	path string
	opts Options

	settled atomic.Uint64 // the last ticket whose Commit returns nil

	mu   sync.Mutex
	free sync.Cond // broadcast when busy is cleared, a ticket settled, or the log failed
	busy bool      // a goroutine writes, cuts or replaces the file

	file    *disk
	salt    uint32
	pending [][]byte // staged records that are not written, in order
	spare   [][]byte // the slice for the next group
	staged  position // the end of what is staged
	written position // the end of what is in the file
	synced  position // the end of what is on disk
	marked  bool     // the last record written is a mark
	closed  bool     // the file was closed in order, or is new

	err       error         // why the log accepts no more records; nil if it does
	first     Ticket        // the first ticket lost, if err is a storage failure
	reported  bool          // Options.Failed has been called, or is being called
	undone    chan struct{} // closed once Failed has returned
	rewriting bool
	renamed   bool // a rewrite took the name and failed: path no longer names the file
	groupSize int  // how many records the last group had

	gather []byte // the leader's buffer: a group's records back to back

	dirty   chan struct{} // receives when there is something for the interval's sync; nil without an interval
	stop    chan struct{}
	stopped sync.WaitGroup
	close   func() error
}

// position is a place between two records: the last ticket before it, and its offset.
type position struct {
	ticket Ticket
	offset int64
}

// newLog returns a log over f, which has size bytes.
func newLog(path string, o Options, f vfs.File, salt uint32, size int64) *Log {
	l := &Log{path: path, opts: o, file: &disk{File: f}, salt: salt, closed: true, undone: make(chan struct{}), stop: make(chan struct{})}
	l.free.L = &l.mu
	l.staged.offset, l.written.offset, l.synced.offset = size, size, size
	l.close = sync.OnceValue(l.closeOnce)
	if o.ReadOnly {
		l.err = fail.New(fail.ReadOnly, "the database is open for reading only")
		l.reported = true
		close(l.undone)
	} else if !o.Sync.Always && o.Sync.Every > 0 {
		l.dirty = make(chan struct{}, 1)
		l.stopped.Go(l.syncLater)
	}
	return l
}

// Stage fixes the place of a record after everything staged before. rec is HeaderSize bytes of room, which Stage fills,
// and the payload. It must not change afterwards, because it may be written at any time until its Commit returns. Stage
// does no I/O and may be called after a failure, which Commit then returns. It panics on a payload larger than
// MaxPayload, which the caller must refuse.
func (l *Log) Stage(kind Kind, rec []byte) Ticket {
	if n := len(rec) - HeaderSize; n < 0 || n > MaxPayload || !kind.staged() {
		panic("wal: staged an invalid record")
	}
	body := checksum(rec[HeaderSize:])
	l.mu.Lock()
	defer l.mu.Unlock()
	l.staged.ticket++
	if l.err != nil {
		return l.staged.ticket
	}
	seal(rec, kind, body, l.salt, l.staged.offset, l.synced.offset)
	l.pending = append(l.pending, rec)
	l.staged.offset += int64(len(rec))
	return l.staged.ticket
}

// Size returns the length of the file in bytes once everything staged is written; after a failure, without the records
// it lost.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.staged.offset
}

// Err returns why the log accepts no more records: a storage failure, the log was closed, or it is open for reading
// only. It returns nil if the log accepts records.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close writes and syncs what is staged, marks the file as closed in order and closes it. It returns the error of the
// sync, or the failure the log had before. Close is idempotent and safe for concurrent use; each call returns the same.
func (l *Log) Close() error { return l.close() }

func (l *Log) closeOnce() error {
	close(l.stop)
	l.stopped.Wait()
	err := l.Sync()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.busy {
		l.free.Wait()
	}
	if l.err == nil {
		l.markLocked()
		// What was staged since the sync is not acknowledged, like a write that came after the close.
		l.err = fail.New(fail.Closed, "the database is closing")
		l.reported = true
		close(l.undone)
		l.free.Broadcast()
	}
	if cerr := l.file.Close(); err == nil && cerr != nil {
		err = storageError("closed", cerr)
	}
	return err
}
