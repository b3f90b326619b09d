package wal

import (
	"path/filepath"

	"fenec/engine/fail"
)

// Rewrite is a new file being filled beside the log's, which goes on taking records until Commit puts the new one in
// its place. Its methods are for one goroutine at a time.
type Rewrite struct {
	log  *Log
	side *side
	done bool
}

// Rewrite begins a new file. One may be under way at a time: a second is fail.Conflict.
func (l *Log) Rewrite() (*Rewrite, error) {
	l.mu.Lock()
	err := l.err
	if err == nil && l.rewriting {
		err = fail.New(fail.Conflict, "the file is being rewritten already")
	}
	if err == nil {
		l.rewriting = true
	}
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	s, err := newSide(l.path, l.opts)
	if err != nil {
		l.endRewrite()
		return nil, err
	}
	return &Rewrite{log: l, side: s}, nil
}

func (l *Log) endRewrite() {
	l.mu.Lock()
	l.rewriting = false
	l.mu.Unlock()
}

// Append adds a record to the new file. rec is HeaderSize bytes of room, which Append fills, and the payload; it is
// the caller's again when Append returns.
func (r *Rewrite) Append(kind Kind, rec []byte) error { return r.side.append(kind, rec) }

// Size is the length of the new file in bytes so far.
func (r *Rewrite) Size() int64 { return r.side.offset }

// Sync makes what was appended so far durable, so that Commit has only the rest to wait for.
func (r *Rewrite) Sync() error { return r.side.sync() }

// Commit syncs the new file and puts it in the place of the log's. The caller has appended the meaning of every record
// staged so far, and lets nothing be staged meanwhile: when Commit returns, everything staged counts as written and
// synced, and the log appends to the new file.
//
// An error leaves the log with the file it had and the new one removed, unless the directory could not be synced after
// the new file got its name: which of the two a crash would leave is then unknown, and the log has failed (Err).
func (r *Rewrite) Commit() error {
	if r.done {
		return fail.New(fail.Storage, "the rewrite has ended already")
	}
	if err := r.side.finish(); err != nil {
		_ = r.Abort()
		return err
	}
	l := r.log
	l.mu.Lock()
	for l.busy {
		l.free.Wait()
	}
	if err := l.err; err != nil {
		l.mu.Unlock()
		_ = r.Abort()
		return err
	}
	l.busy = true
	l.mu.Unlock()

	err := r.side.rename(l.path)
	renamed := err == nil
	if renamed {
		if err = l.opts.FS.SyncDir(filepath.Dir(l.path)); err != nil {
			err = storageError("renamed", err)
		}
	}

	l.mu.Lock()
	l.busy = false
	old := l.file
	switch {
	case err == nil:
		l.adoptLocked(r.side)
	case renamed:
		// The engine may hold its lock here, so Failed is left to the first Commit or Sync that meets the failure.
		l.renamed = true
		l.failLocked(err)
	default:
		l.free.Broadcast()
	}
	l.mu.Unlock()

	switch {
	case err == nil:
		_ = old.Close()
	case renamed:
		_ = r.side.file.Close()
	default:
		_ = r.Abort()
		return err
	}
	r.end()
	return err
}

// adoptLocked makes a finished side file the log's. What was staged is in it.
func (l *Log) adoptLocked(s *side) {
	l.file, l.salt = &disk{File: s.file}, s.salt
	l.staged.offset = s.offset
	l.written = l.staged
	l.marked = false
	l.syncedLocked(l.staged)
	clear(l.pending)
	l.pending = l.pending[:0]
	l.settleLocked()
}

// Abort gives the new file up. After Commit or another Abort it does nothing.
func (r *Rewrite) Abort() error {
	if r.done {
		return nil
	}
	defer r.end()
	return r.side.remove()
}

func (r *Rewrite) end() {
	r.done = true
	r.log.endRewrite()
}
