package wal

import (
	"bytes"

	"fenec/engine/fail"
)

// pageSize is the least a file system writes at a time, in bytes.
const pageSize = 4096

// judgeDamage tells the end of what reached the disk, which is nil, from corruption. What was on disk once is not lost
// to a crash: the image, which was synced before the file had its name, and what a whole record further on says was on
// disk when it was staged. Where whole records follow and none says so, the damage is nil only where it looks like pages
// of the last writes that never got there while later ones did.
func judgeDamage(data []byte, fh fileHeader, off int64, headerWhole bool) error {
	part := "header"
	if headerWhole {
		part = "payload"
	}
	if off < fh.base {
		return fail.New(fail.Damaged, "the record at offset %d is damaged in its %s, within the image the file began with", off, part)
	}
	next := nextRecord(data, fh.salt, off+1)
	if next < 0 || isUnwritten(data, off, next) && syncedAfter(data, fh.salt, next) <= off {
		return nil
	}
	return fail.New(fail.Damaged, "the record at offset %d is damaged in its %s: whole records follow from offset %d", off, part, next)
}

// syncedAfter returns up to where the file was on disk, as the whole records from the one at off on say.
func syncedAfter(data []byte, salt uint32, off int64) int64 {
	synced := int64(unknown)
	for off >= 0 {
		h, _, ok := recordAt(data, salt, off)
		if !ok {
			off = nextRecord(data, salt, off+1)
			continue
		}
		synced = max(synced, h.synced(off))
		if off = h.end(off); off == int64(len(data)) {
			break
		}
	}
	return synced
}

// isUnwritten reports whether a page that never reached the disk may lie in data between off, where a record should
// begin, and next. What such a page held of the file reads as zeros from where the file ended when the page was written
// last: from off itself, or from within a record on, to the end of the page.
func isUnwritten(data []byte, off, next int64) bool {
	const fewest = 64 // zeros from within a record on; fewer may well be the record's own
	start := off
	for end := off - off%pageSize + pageSize; end <= next; end += pageSize {
		zeros := end - int64(len(bytes.TrimRight(data[start:end], "\x00"))) - start
		if zeros >= fewest || start == off && zeros == end-start {
			return true
		}
		start = end
	}
	return false
}
