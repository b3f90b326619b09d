package wal

import "time"

// syncLater is the goroutine of an interval policy: it syncs what is written within Every of the write. It wakes only
// if there is something to sync.
func (l *Log) syncLater() {
	timer := time.NewTimer(l.opts.Sync.Every)
	defer timer.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-l.dirty:
		}
		timer.Reset(l.opts.Sync.Every)
		select {
		case <-l.stop:
			return // Close syncs
		case <-timer.C:
		}
		_ = l.SyncWritten() // a failure has stopped writes; the next Commit returns it
	}
}

// SyncWritten syncs what is written by now, whatever the policy, and does not block writers. It does nothing on a log
// open for reading.
func (l *Log) SyncWritten() error {
	if l.opts.ReadOnly {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	file, to := l.file, l.written
	if l.synced.ticket >= to.ticket {
		return nil
	}
	if l.err != nil {
		return l.err
	}
	l.mu.Unlock()
	err := file.Sync()
	l.mu.Lock()
	for err != nil && l.busy {
		l.free.Wait()
	}
	switch {
	case l.file != file:
		return nil // a rewrite has put a synced file in its place
	case l.err != nil:
		return l.err // writes have stopped already
	case err != nil:
		l.failLocked(storageError("synced", err))
		return l.failedLocked()
	}
	l.syncedLocked(to)
	return nil
}
