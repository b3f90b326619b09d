package wal

import (
	"bytes"
	"errors"
	"io"

	"fenec/engine/fail"
)

// repairMargin is how many bytes, of those known to be on disk, are read back before the rest is written again.
const repairMargin = 16 << 20

// repair makes sure that a file which was not closed in order is on disk; data is the whole file as it was read.
//
// A sync of the previous process may have failed. The kernel then considers the pages that it could not write as
// written: it goes on showing them, and later syncs skip them. So the cache is dropped, and what is not known to be on
// disk, or is not found there, is written again and synced. That is then read back from the disk, since a page may not
// have been dropped: on ext4, what is written to a lost page is lost with it.
func (l *Log) repair(data []byte) error {
	checked := max(0, l.synced.offset-repairMargin)
	from, err := l.firstLost(data, checked)
	if err != nil {
		return err
	}
	for range 2 {
		if from = min(from, l.synced.offset); from == int64(len(data)) {
			return nil
		}
		if err := l.writeAgain(data, from); err != nil {
			return err
		}
		lost, err := l.firstLost(data, from)
		if err != nil {
			return err
		}
		if lost == int64(len(data)) {
			l.synced.offset = lost
			return nil
		}
	}
	return fail.New(fail.Storage, "the database's file reads back other bytes than were written and synced, from offset %d on", from)
}

// writeAgain writes data from off on over itself and syncs it.
func (l *Log) writeAgain(data []byte, off int64) error {
	for end := int64(len(data)); off < end; off += gatherSize {
		if _, err := l.file.WriteAt(data[off:min(off+gatherSize, end)], off); err != nil {
			return storageError("written", err)
		}
	}
	if err := l.file.Sync(); err != nil {
		return storageError("synced", err)
	}
	return nil
}

// firstLost returns where, from off on, the file on disk first differs from data, rounded down to the buffer that was
// compared. It returns the length of data if nothing differs.
func (l *Log) firstLost(data []byte, off int64) (int64, error) {
	if err := l.file.DropCache(); err != nil {
		return 0, storageError("read", err)
	}
	end := int64(len(data))
	buffer := make([]byte, min(gatherSize, end-off))
	for off < end {
		part := buffer[:min(gatherSize, end-off)]
		if _, err := l.file.ReadAt(part, off); errors.Is(err, io.EOF) {
			return off, nil
		} else if err != nil {
			return 0, storageError("read", err)
		}
		if !bytes.Equal(part, data[off:off+int64(len(part))]) {
			return off, nil
		}
		off += int64(len(part))
	}
	return end, nil
}
