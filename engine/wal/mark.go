package wal

// Closed reports whether the file ended, when it was opened, with the mark of having been closed in order, or has just
// been created or received.
func (l *Log) Closed() bool { return l.closed }

// OnDisk returns the offset up to which the file is known to be on disk.
func (l *Log) OnDisk() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.synced.offset
}

// Mark appends a mark to the file, so that the end of the file, or of an image of it, is not mistaken for that of a
// killed process. It does nothing if there is a mark already or something is not on disk. A caller must not rely on it:
// a file without its mark is opened as after a crash. The caller makes sure that nothing is staged meanwhile.
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

// markLocked is Mark while busy is clear. It releases the lock meanwhile.
//
// The mark itself is not synced: what it says was true when it was written, whether or not it reaches the disk.
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
		_ = file.Truncate(off) // the next open does it if this fails
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
