package wal

import (
	"path/filepath"

	"fenec/engine/fail"
)

// Rewrite is a new file being filled beside the log's. The log goes on accepting records until Commit replaces its file
// with the new one. Its methods are not safe for concurrent use.
type Rewrite struct {
	log  *Log
	side *side
	done bool
}

// Rewrite begins a new file. It fails with fail.Conflict if another rewrite is under way.
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

// Append adds a record to the new file. rec is HeaderSize bytes of room, which Append fills, and the payload. The
// caller may reuse it when Append returns.
func (r *Rewrite) Append(kind Kind, rec []byte) error { return r.side.append(kind, rec) }

// Size returns the length of the new file so far in bytes.
func (r *Rewrite) Size() int64 { return r.side.offset }

// Sync makes what was appended so far durable, so that Commit has less to sync.
func (r *Rewrite) Sync() error { return r.side.sync() }

// Commit syncs the new file and replaces the log's file with it. The caller has appended the meaning of every record
// staged so far, and makes sure that nothing is staged meanwhile. When Commit returns nil, everything staged counts as
// written and synced, and the log appends to the new file.
//
// If Commit fails, the log keeps its file and the new one is removed, unless the directory could not be synced after
// the rename. Which of the two files a crash would leave is then unknown, and the log has failed (Err).
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
		// The engine may hold its lock here, so Failed is called by the first Commit or Sync that finds the failure.
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

// adoptLocked makes a finished side file the log's file. It holds everything that was staged.
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

// Abort removes the new file. After Commit or another Abort it does nothing.
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
