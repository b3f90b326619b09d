package wal

import (
	"runtime"
	"time"

	"fenec/engine/fail"
	"fenec/internal/vfs"
)

const (
	// gatherSize bounds, in bytes, what a leader copies together for one write.
	gatherSize = 1 << 20
	// A log keeps the leader's buffers for the next group up to these sizes: one of thousands may be idle next.
	keepGather, keepGroup = 64 << 10, 256
	// companyTime is how long a leader lets others catch up before it takes no more turns of the processor for them.
	companyTime = 100 * time.Microsecond
)

// Commit returns nil once the record of t, and so every one before it, is written and, where the policy is always,
// synced. Under the other policies a crash of the machine may take it back for as long as the policy says. An error is
// fail.Full or fail.Storage after a storage failure, fail.Closed where the log was closed first: the record is not in
// the file, and every later Commit fails alike.
func (l *Log) Commit(t Ticket) error {
	if Ticket(l.settled.Load()) >= t {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if t > l.staged.ticket {
		panic("wal: commit of a ticket that was never staged")
	}
	for Ticket(l.settled.Load()) < t {
		switch {
		case l.err != nil:
			return l.failedLocked()
		case l.busy:
			l.free.Wait()
		default:
			l.leadLocked(l.opts.Sync.Always)
		}
	}
	return nil
}

// Sync writes everything staged so far and returns once the file is on disk, whatever the policy. A log open for reading
// has nothing to sync.
func (l *Log) Sync() error {
	if l.opts.ReadOnly {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for t := l.staged.ticket; l.synced.ticket < t; {
		switch {
		case l.err != nil:
			return l.failedLocked()
		case l.busy:
			l.free.Wait()
		default:
			l.leadLocked(true)
		}
	}
	return nil
}

// leadLocked takes the turn, writes all that is staged, syncs it where told, and settles it or fails the log. It lets
// go of the lock meanwhile.
func (l *Log) leadLocked(sync bool) {
	l.busy = true
	if sync && l.company > 1 {
		l.awaitCompanyLocked()
	}
	l.company = len(l.pending)
	group, to, file, at := l.pending, l.staged, l.file, l.written.offset
	l.pending, l.spare = l.spare[:0], nil
	l.mu.Unlock()

	err := l.write(file, group, at)
	if err != nil {
		err = storageError("written", err)
	} else if sync {
		if err = file.Sync(); err != nil {
			err = storageError("synced", err)
		}
	}
	if err != nil {
		// Nobody was told that the group is written, so it goes as a whole. Where even this fails the next Open finds
		// a torn tail, or whole records nobody was answered for.
		_ = file.Truncate(at)
	}
	clear(group)

	l.mu.Lock()
	if cap(group) <= keepGroup {
		l.spare = group
	}
	if cap(l.gather) > keepGather {
		l.gather = nil
	}
	l.busy = false
	if err != nil {
		l.failLocked(err)
		_ = l.failedLocked()
		return
	}
	l.written = to
	l.marked = l.marked && len(group) == 0
	if sync {
		l.syncedLocked(to)
	}
	l.settleLocked()
}

// syncedLocked notes that what is written up to a position is on disk, and so is all that was in the file before.
func (l *Log) syncedLocked(to position) {
	if l.synced.ticket <= to.ticket {
		l.synced = to
	}
	l.opts.Synced(l.synced.ticket)
}

// awaitCompanyLocked lets the writers that the last sync let go stage their next records, so that they share this one:
// without it two halves of them take turns, each waiting for the other's sync. It only gives up the processor to what
// is ready to run, stops as soon as that brings nothing or has taken companyTime, and a writer who was alone last time
// waits for nobody.
func (l *Log) awaitCompanyLocked() {
	begun := time.Now()
	for staged := -1; len(l.pending) > staged && time.Since(begun) < companyTime; {
		staged = len(l.pending)
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
	}
}

// settleLocked answers the Commits that the ends of what is written and synced now cover.
func (l *Log) settleLocked() {
	end := l.written
	if l.opts.Sync.Always {
		end = l.synced
	}
	l.settled.Store(uint64(end.ticket))
	l.opts.Settled(end.ticket)
	if l.dirty != nil && l.synced.ticket < l.written.ticket {
		select {
		case l.dirty <- struct{}{}:
		default: // it knows already
		}
	}
	l.free.Broadcast()
}

// write puts the group into the file at off, in as few calls as its size allows.
func (l *Log) write(f vfs.File, group [][]byte, off int64) error {
	l.gather = l.gather[:0]
	flush := func(b []byte) error {
		_, err := f.WriteAt(b, off)
		off += int64(len(b))
		return err
	}
	for i, rec := range group {
		if len(l.gather)+len(rec) > gatherSize && len(l.gather) > 0 {
			if err := flush(l.gather); err != nil {
				return err
			}
			l.gather = l.gather[:0]
		}
		if len(rec) > gatherSize || (len(l.gather) == 0 && i == len(group)-1) {
			if err := flush(rec); err != nil {
				return err
			}
			continue
		}
		l.gather = append(l.gather, rec...)
	}
	if len(l.gather) == 0 {
		return nil
	}
	return flush(l.gather)
}

// failLocked stops the log: what is staged and not written is lost. It needs the turn to be free.
func (l *Log) failLocked(err error) {
	l.err = err
	l.first = l.written.ticket + 1
	l.pending = nil
	l.staged.offset = l.written.offset
	l.free.Broadcast()
}

// failedLocked is the failure, answered once Options.Failed has been told of it: by this call where it is the first. It
// lets go of the lock meanwhile.
func (l *Log) failedLocked() error {
	err, first, tell := l.err, l.first, !l.told
	l.told = true
	l.mu.Unlock()
	if tell {
		l.opts.Failed(first, err)
		close(l.undone)
	}
	<-l.undone
	l.mu.Lock()
	return err
}

// storageError classifies what the file system answered when the file should have been done something to.
func storageError(done string, err error) error {
	kind := fail.Storage
	if vfs.IsFull(err) {
		kind = fail.Full
	}
	return &fail.Error{Kind: kind, Message: "the database's file cannot be " + done + ": " + vfs.Reason(err), Err: err}
}
