package wal

import (
	"os"

	"fenec/internal/vfs"
)

// Snapshot is the file as it was at one moment, read through a descriptor of its own: records written later are beyond
// its size, and a rewrite that replaces the file leaves it intact. The caller of Log.Snapshot closes it.
type Snapshot struct {
	file vfs.File
	last Ticket
	size int64
}

// Snapshot opens the part of the file that is written, which is a whole file of its own, and returns its size in bytes.
// Records staged and not written are left out: the caller commits first what the snapshot should hold. It fails after a
// rewrite that failed with its name taken, because there is no file to open.
func (l *Log) Snapshot() (s *Snapshot, size int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.busy {
		l.free.Wait()
	}
	if l.renamed {
		return nil, 0, l.err
	}
	f, err := l.opts.FS.OpenFile(l.path, os.O_RDONLY, 0)
	if err != nil {
		return nil, 0, storageError("opened", err)
	}
	return &Snapshot{file: f, last: l.written.ticket, size: l.written.offset}, l.written.offset, nil
}

// ReadAt implements io.ReaderAt. Offsets past the snapshot's size show whatever is written there meanwhile.
func (s *Snapshot) ReadAt(p []byte, off int64) (int, error) { return s.file.ReadAt(p, off) }

// Last returns the ticket of the last record in the snapshot, or 0 if it holds none staged since the log was opened.
func (s *Snapshot) Last() Ticket { return s.last }

// Close closes the snapshot's file.
func (s *Snapshot) Close() error { return s.file.Close() }
