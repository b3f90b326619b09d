package feed

import (
	"sort"
	"unsafe"

	"fenec/engine"
	"fenec/engine/wal"
)

// spanSize is the number of bytes of records at which a span is full and the next begins.
const spanSize = 64 << 10

// spanBytes is the size of a span in the index, in bytes.
const spanBytes = int64(unsafe.Sizeof(span{}))

// span is a run of consecutive whole blocks in one segment of the database's memory or in a copy.
type span struct {
	before, after uint64     // it holds the changes after before, up to after
	ticket        wal.Ticket // of its first block; 0 if all of them were in the file when it was opened, or are on disk
	blocks        int
	segment       int // of the database's memory
	start         int
	data          []byte
	own           bool // data is the feed's copy
	counted       bool // visible is known
	visible       uint64
}

// add appends a block: to the last span if it follows that and the span has room.
func (f *Feed) add(b engine.Landed) {
	size := len(b.Memory) - b.Start
	if n := len(f.spans); n > 0 {
		s := &f.spans[n-1]
		if s.isFollowedBy(&b) {
			if unsafe.SliceData(b.Memory[s.start:]) != unsafe.SliceData(s.data) {
				f.relocate(b.Segment, b.Memory)
			}
			if len(s.data)+size <= spanSize {
				s.data = b.Memory[s.start:len(b.Memory):len(b.Memory)]
				s.after, s.counted = b.After, false
				s.blocks++
				return
			}
		}
	}
	f.spans = append(f.spans, span{
		before: b.Before, after: b.After, ticket: b.Ticket, blocks: 1,
		segment: b.Segment, start: b.Start, data: b.Memory[b.Start:len(b.Memory):len(b.Memory)],
	})
}

// isFollowedBy reports whether a block directly follows s, with no ticket of another record in between.
func (s *span) isFollowedBy(b *engine.Landed) bool {
	next := s.ticket
	if next > 0 {
		next += wal.Ticket(s.blocks)
	}
	return !s.own && s.segment == b.Segment && s.start+len(s.data) == b.Start && next == b.Ticket
}

// relocate makes the spans of a segment point to its new place, so that the old one can be freed.
func (f *Feed) relocate(segment int, memory []byte) {
	for i := len(f.spans) - 1; i >= 0; i-- {
		s := &f.spans[i]
		if s.own || s.segment < segment {
			return
		}
		if s.segment == segment {
			end := s.start + len(s.data)
			s.data = memory[s.start:end:end]
		}
	}
}

// covered returns the number of blocks of s that are known to be on disk.
func (f *Feed) covered(s *span) int {
	n, end := 0, int64(s.start)
	switch {
	case s.ticket > f.synced:
		return 0
	case s.ticket > 0:
		return min(s.blocks, int(f.synced-s.ticket)+1)
	case s.own || end+int64(len(s.data)) <= f.onDisk:
		return s.blocks
	}
	s.each(s.blocks, func(_ uint64, r engine.Record) bool {
		if end += int64(len(r)); end <= f.onDisk {
			n++
		}
		return end < f.onDisk
	})
	return n
}

// durableSpans returns the number of spans with a block that is on disk.
func (f *Feed) durableSpans() int {
	return sort.Search(len(f.spans), func(i int) bool { return f.covered(&f.spans[i]) == 0 })
}

// after returns the index of the first span with a block that ends after a change.
func (f *Feed) after(since uint64) int {
	return sort.Search(len(f.spans), func(i int) bool { return f.spans[i].after > since })
}

// each calls fn with the first n blocks of s until fn returns false.
func (s *span) each(n int, fn func(before uint64, r engine.Record) bool) {
	before := s.before
	for at := 0; at < len(s.data) && n > 0; n-- {
		r := engine.RecordAt(s.data[at:])
		if !fn(before, r) {
			return
		}
		before = r.After()
		at += len(r)
	}
}

// afterBlocks returns the change at which the first n blocks end.
func (s *span) afterBlocks(n int) uint64 {
	if n == s.blocks {
		return s.after
	}
	after := s.before
	s.each(n, func(_ uint64, r engine.Record) bool {
		after = r.After()
		return true
	})
	return after
}

// cut drops all blocks of s but the first n.
func (s *span) cut(n int) {
	if n >= s.blocks {
		return
	}
	size := 0
	s.each(n, func(_ uint64, r engine.Record) bool {
		size += len(r)
		return true
	})
	s.after, s.counted = s.afterBlocks(n), false
	s.data, s.blocks = s.data[:size:size], n
}

// blocksUpTo returns the number of blocks of s that end at a change or before it.
func (s *span) blocksUpTo(seq uint64) (n int) {
	s.each(s.blocks, func(_ uint64, r engine.Record) bool {
		if r.After() > seq {
			return false
		}
		n++
		return true
	})
	return n
}
