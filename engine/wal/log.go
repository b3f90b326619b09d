// Package wal is the file of one database: an append-only log of records that begins with an image.
//
// Writing is in two steps. Stage, called under the engine's write lock, fixes a record's place in the file and does no
// I/O. Commit, called outside that lock, returns once the record is written and, where the policy is always, synced.
// Of the goroutines in Commit at one time one is the leader: it writes everything staged with one call and syncs it
// with one more, for all of them; those who stage meanwhile are the next group. See DESIGN.md for what an answer
// guarantees and what a failure does.
//
// A log holds one file descriptor; a Snapshot and a Rewrite hold one more each. Its one goroutine, which syncs behind
// the writers under an interval policy, is started by Open and Create and waited for by Close.
//
// Locks: Log.mu guards the fields of Log and is held for no I/O but Snapshot's opening of the file. Whoever reads or
// replaces the end of the file also has the turn (Log.busy), which is handed on with Log.free. Options.Failed is called
// with neither, so it may take the engine's lock; Options.Settled and Synced are called with Log.mu; the engine may call
// Stage, Size, Err, Mark, Snapshot and Rewrite's methods under its own lock, but not Commit, Sync or Close, which may
// have to wait for Failed. A disk's own lock is held for one sync, and while it is no other is taken.
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

// Ticket names a staged record: 1 for the first one after Open or Create, then counting up. Zero names none.
type Ticket uint64

// Options are what a log takes from its surroundings. The zero value is the real file system and randomness, and syncs
// only as the log closes.
type Options struct {
	FS   vfs.FS
	Rand io.Reader // salts of new files
	Sync Policy
	// ReadOnly opens the file without changing a byte in it or its directory: a torn tail is passed over.
	ReadOnly bool
	Log      zerolog.Logger
	// Failed is told once that a write or sync failed: the records from ticket first on are not in the file and their
	// Commits fail, but only after Failed has returned, so that it can undo them before anyone hears of it. It is
	// called without locks, on the goroutine of a Commit or Sync, of Close, or of the log's own.
	Failed func(first Ticket, err error)
	// Settled is called as records are as durable as the policy has Commit wait for, up to that of ticket. Synced is
	// called with each sync that succeeded: everything up to the record of ticket is on disk, with all that the file held
	// as it was opened. Both are called under the log's lock, so they must be quick and may not call the log.
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

// Log is an open file. Its methods may be called from any number of goroutines.
type Log struct {
	path string
	opts Options

	settled atomic.Uint64 // the last ticket whose Commit is answered

	mu   sync.Mutex
	free sync.Cond // broadcast when the turn is free, a ticket settled, or the log failed
	busy bool      // someone has the turn: to write, cut or replace the file

	file    *disk
	salt    uint32
	pending [][]byte // staged records that are not written, in order
	spare   [][]byte // the slice to hold the next ones
	staged  position // the end of what is staged
	written position // the end of what is in the file
	synced  position // the end of what is on disk
	marked  bool     // the last record written is a mark
	closed  bool     // the file was closed in order, or is new

	err       error         // why the log takes no more; nil while it does
	first     Ticket        // the first ticket lost, where err is a storage failure
	told      bool          // someone calls, or has called, Options.Failed
	undone    chan struct{} // closed once Failed has returned
	rewriting bool
	renamed   bool // a rewrite has taken the name and failed: the file is no more what its path names
	company   int  // how many records the last group had

	gather []byte // the leader's: a group's records back to back

	dirty   chan struct{} // something waits for the interval's sync; nil without an interval
	stop    chan struct{}
	stopped sync.WaitGroup
	close   func() error
}

// position is a place between two records: the last ticket before it and the offset it lies at.
type position struct {
	ticket Ticket
	offset int64
}

// newLog is a log over f, which has size bytes.
func newLog(path string, o Options, f vfs.File, salt uint32, size int64) *Log {
	l := &Log{path: path, opts: o, file: &disk{File: f}, salt: salt, closed: true, undone: make(chan struct{}), stop: make(chan struct{})}
	l.free.L = &l.mu
	l.staged.offset, l.written.offset, l.synced.offset = size, size, size
	l.close = sync.OnceValue(l.closeOnce)
	if o.ReadOnly {
		l.err = fail.New(fail.ReadOnly, "the database is open for reading only")
		l.told = true
		close(l.undone)
	} else if !o.Sync.Always && o.Sync.Every > 0 {
		l.dirty = make(chan struct{}, 1)
		l.stopped.Go(l.syncBehind)
	}
	return l
}

// Stage fixes the place of a record: behind everything staged before. rec is HeaderSize bytes of room, which Stage
// fills, and the payload; it must not change afterwards, for it may be written at any time until its Commit returns.
// Stage does no I/O and may be called after a failure, which its Commit then reports. A payload past MaxPayload is a
// mistake of the caller and panics.
func (l *Log) Stage(kind Kind, rec []byte) Ticket {
	if n := len(rec) - HeaderSize; n < 0 || n > MaxPayload || !kind.staged() {
		panic("wal: staged what is no record")
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

// Size is the length of the file in bytes once everything staged is written; after a failure, without what that lost.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.staged.offset
}

// Err is why the log takes no more records: a storage failure, being closed, or being open for reading only. It is nil
// while it does.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close writes and syncs what is staged, marks the file as closed in order and lets go of it. It answers what the sync
// answers, or the failure the log had before. It may be called again, by several at once, and answers the same.
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
		// What was staged since the sync goes unanswered, like a write that came after the close.
		l.err = fail.New(fail.Closed, "the database is closing")
		l.told = true
		close(l.undone)
		l.free.Broadcast()
	}
	if cerr := l.file.Close(); err == nil && cerr != nil {
		err = storageError("closed", cerr)
	}
	return err
}
