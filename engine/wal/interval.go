package wal

import "time"

// syncBehind is the goroutine of an interval policy: what is written is synced Every later at the latest. It wakes only
// while there is something to sync.
func (l *Log) syncBehind() {
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
		l.syncWritten()
	}
}

// syncWritten syncs what is written by now, without the turn: writers go on meanwhile.
func (l *Log) syncWritten() {
	l.mu.Lock()
	defer l.mu.Unlock()
	file, to := l.file, l.written
	if l.err != nil || l.synced.ticket >= to.ticket {
		return
	}
	l.mu.Unlock()
	err := file.Sync()
	l.mu.Lock()
	for err != nil && l.busy {
		l.free.Wait()
	}
	switch {
	case l.file != file || l.err != nil:
		// A rewrite has put a synced file in its place, or writes have stopped already.
	case err != nil:
		l.failLocked(storageError("synced", err))
		_ = l.failedLocked()
	case l.synced.ticket < to.ticket:
		l.synced = to
	}
}
