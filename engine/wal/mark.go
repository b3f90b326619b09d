package wal

// Closed reports whether the file ended, as it was opened, with the mark of having been closed in order, or was created
// or received just now.
func (l *Log) Closed() bool { return l.closed }

// OnDisk returns up to which offset the file is known to be on disk.
func (l *Log) OnDisk() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.synced.offset
}

// Mark ends the file with a mark, so that who opens it, or an image of it, need not take its end for that of a process
// that was killed. It does so where everything is on disk and there is none yet, and is nothing to rely on: a file
// without its mark is opened as after a crash. The caller lets nothing be staged meanwhile.
func (l *Log) Mark() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.busy {
		l.free.Wait()
	}
	if l.err == nil {
		l.markLocked()
	}
}

// markLocked is Mark with the turn free. It lets go of the lock meanwhile.
//
// The mark itself is not synced: what it says was so when it was written, whether or not it reaches the disk.
func (l *Log) markLocked() {
	if l.marked || len(l.pending) > 0 || l.synced.ticket < l.written.ticket {
		return
	}
	rec := make([]byte, HeaderSize)
	off := l.written.offset
	seal(rec, mark, checksum(nil), l.salt, off, off)
	l.busy = true
	file := l.file
	l.mu.Unlock()
	_, err := file.WriteAt(rec, off)
	if err != nil {
		_ = file.Truncate(off) // or the next open does
	}
	l.mu.Lock()
	l.busy = false
	if err == nil {
		l.written.offset += HeaderSize
		l.staged.offset += HeaderSize
		l.marked = true
	}
	l.free.Broadcast()
}
