package wal

import (
	"bytes"

	"fenec/engine/fail"
)

// pageSize is the smallest unit that a file system writes, in bytes.
const pageSize = 4096

// classifyDamage distinguishes the end of what reached the disk, for which it returns nil, from corruption. A crash does
// not lose what was on disk: the image, which was synced before the file got its name, and what a later whole record
// says was on disk when it was staged. If whole records follow and none says so, the damage is nil only if it looks
// like pages of the last writes that never reached the disk while later ones did.
func classifyDamage(data []byte, fh fileHeader, off int64, headerWhole bool) error {
	part := "header"
	if headerWhole {
		part = "payload"
	}
	if off < fh.base {
		return fail.New(fail.Damaged, "the record at offset %d is damaged in its %s, within the image that the file begins with", off, part)
	}
	next := nextRecord(data, fh.salt, off+1)
	if next < 0 || isUnwritten(data, off, next) && syncedAfter(data, fh.salt, next) <= off {
		return nil
	}
	return fail.New(fail.Damaged, "the record at offset %d is damaged in its %s: whole records follow from offset %d", off, part, next)
}

// syncedAfter returns the offset up to which the file was on disk according to the whole records from off on.
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

// isUnwritten reports whether data may hold a page that never reached the disk between off, where a record should
// begin, and next. Such a page reads as zeros from where the file ended when the page was last written, which is off
// itself or a place within a record, to the end of the page.
func isUnwritten(data []byte, off, next int64) bool {
	const fewest = 64 // zeros that end a page within a record; fewer may be the record's own
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
