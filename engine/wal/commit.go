package wal

import (
	"runtime"
	"time"

	"fenec/engine/fail"
	"fenec/internal/vfs"
)

const (
	// gatherSize is the most, in bytes, that a leader copies together for one write.
	gatherSize = 1 << 20
	// A log keeps the leader's buffers for the next group up to these sizes. Thousands of logs may be idle at a time.
	keepGather, keepGroup = 64 << 10, 256
	// gatherTime is how long a leader yields the processor, at most, so that other writers can join its group.
	gatherTime = 100 * time.Microsecond
)

// Commit blocks until the record of t, and so every one before it, is written and, if the policy is always, synced.
// Under the other policies a crash of the machine may lose it for as long as the policy says. Commit fails with
// fail.Full or fail.Storage after a storage failure and with fail.Closed if the log was closed first: the record is
// then not in the file, and every later Commit fails with the same error.
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

// Sync writes everything staged so far and blocks until the file is on disk, whatever the policy. It does nothing on a
// log open for reading.
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

// leadLocked sets busy, writes all that is staged, syncs it if sync is set, and settles it or fails the log. It
// releases the lock meanwhile.
func (l *Log) leadLocked(sync bool) {
	l.busy = true
	if sync && l.groupSize > 1 {
		l.gatherLocked()
	}
	l.groupSize = len(l.pending)
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
		// No Commit of the group has returned, so the group is cut off as a whole. If even this fails, the next Open
		// finds a torn tail, or whole records that were never acknowledged.
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

// syncedLocked records that everything written up to the position to is on disk, as is all that was in the file before.
func (l *Log) syncedLocked(to position) {
	if l.synced.ticket <= to.ticket {
		l.synced = to
	}
	l.opts.Synced(l.synced.ticket)
}

// gatherLocked lets the writers that the last sync released stage their next records, so that they share this sync.
// Without it the writers fall into two halves that alternate, each waiting for the other's sync. It only yields the
// processor to goroutines that are ready to run, and stops as soon as that stages no more records or has taken
// gatherTime. A writer that was alone in the last group does not wait.
func (l *Log) gatherLocked() {
	begun := time.Now()
	for staged := -1; len(l.pending) > staged && time.Since(begun) < gatherTime; {
		staged = len(l.pending)
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
	}
}

// settleLocked wakes the Commits that are covered by what is written and synced now.
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
		default: // a wake is pending
		}
	}
	l.free.Broadcast()
}

// write writes the group to the file at off, in as few calls as its size allows.
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

// failLocked stops the log: what is staged and not written is lost. It is called while busy is false.
func (l *Log) failLocked(err error) {
	l.err = err
	l.first = l.written.ticket + 1
	l.pending = nil
	l.staged.offset = l.written.offset
	l.free.Broadcast()
}

// failedLocked returns the failure once Options.Failed has returned. The first call to find the failure calls Failed.
// It releases the lock meanwhile.
func (l *Log) failedLocked() error {
	err, first, report := l.err, l.first, !l.reported
	l.reported = true
	l.mu.Unlock()
	if report {
		l.opts.Failed(first, err)
		close(l.undone)
	}
	<-l.undone
	l.mu.Lock()
	return err
}

// storageError classifies an error of the file system. done is what could not be done to the file, such as "written".
func storageError(done string, err error) error {
	kind := fail.Storage
	if vfs.IsFull(err) {
		kind = fail.Full
	}
	return &fail.Error{Kind: kind, Message: "the database's file cannot be " + done + ": " + vfs.Reason(err), Err: err}
}
