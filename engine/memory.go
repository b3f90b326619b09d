package engine

import (
	"slices"

	"fenec/engine/doc"
)

// segmentSize is the size in bytes at which a segment is full and the next begins. A larger block has a segment of its own.
const segmentSize = 1 << 20

// memory mirrors the file in the heap: the records as they are on disk, in segments without pointers, so that the
// garbage collector sees a segment and not its documents. A document is named by a ref: the segment's number above
// refShift, its offset in the segment below.
//
// The last segment takes the next block. Growing it may move its bytes but not their offsets. The old bytes never change,
// as they may still be being written to disk.
type memory struct {
	segments [][]byte
	sealed   int // segments before this one are full
}

const (
	refShift = 40
	refMask  = 1<<refShift - 1
)

func makeRef(segment, offset int) uint64 { return uint64(segment)<<refShift | uint64(offset) }

func (m *memory) document(ref uint64) doc.Document {
	return doc.At(m.segments[ref>>refShift], ref&refMask)
}

// adopt adds a whole segment that is never appended to.
func (m *memory) adopt(b []byte) (segment int) {
	m.segments = append(m.segments, b)
	m.sealed = len(m.segments)
	return m.sealed - 1
}

// open returns the segment for the next block and the offset at which the block begins.
func (m *memory) open() (segment, start int) {
	var room []byte
	if n := len(m.segments); n > m.sealed {
		if used := len(m.segments[n-1]); used < segmentSize {
			return n - 1, used
		}
		m.sealed = n
		// The first segment grows gradually, for small tenants. A tenant that has filled one is about to fill the next, so
		// that is allocated at once, with room for the block that passes segmentSize if it is small, as most are.
		room = make([]byte, 0, segmentSize+segmentSize/64)
	}
	m.segments = append(m.segments, room)
	return len(m.segments) - 1, 0
}

// cut removes the end of the open segment from start on, and frees the room it grew by if that is much.
func (m *memory) cut(segment, start int) {
	s := &m.segments[segment]
	*s = (*s)[:start]
	if cap(*s) > 2*segmentSize {
		*s = slices.Clone(*s)
	}
}

// snapshot returns a copy of the current memory, to be read without a lock.
func (m *memory) snapshot() memory {
	return memory{segments: slices.Clone(m.segments), sealed: len(m.segments)}
}

// bytes returns the capacity of the segments.
func (m *memory) bytes() int64 {
	var n int64
	for _, s := range m.segments {
		n += int64(cap(s))
	}
	return n
}

// mark is a place in memory: everything staged before it is in the segments before it.
type mark struct{ segment, offset int }

func (m *memory) end() mark {
	if n := len(m.segments); n > m.sealed {
		return mark{n - 1, len(m.segments[n-1])}
	}
	return mark{len(m.segments), 0}
}
