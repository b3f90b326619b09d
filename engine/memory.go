package engine

import (
	"slices"

	"fenec/engine/doc"
)

// segmentSize is what a segment grows to, in bytes, before the next begins. One block larger than it has a segment of
// its own.
const segmentSize = 1 << 20

// memory mirrors the file in the heap: the records as they are on disk, in segments without pointers, so that the
// garbage collector sees a segment and not its documents. A document is named by a ref: the segment's number above
// refShift, its offset in the segment below.
//
// The last segment takes the next block; growing it may move its bytes, never their offsets, and the old bytes stay as
// they are for whoever still writes them to disk.
type memory struct {
	segments [][]byte
	sealed   int // segments before this one take no more
}

const (
	refShift = 40
	refMask  = 1<<refShift - 1
)

func makeRef(segment, offset int) uint64 { return uint64(segment)<<refShift | uint64(offset) }

func (m *memory) document(ref uint64) doc.Document {
	return doc.At(m.segments[ref>>refShift], ref&refMask)
}

// adopt takes a whole segment that is never appended to.
func (m *memory) adopt(b []byte) (segment int) {
	m.segments = append(m.segments, b)
	m.sealed = len(m.segments)
	return m.sealed - 1
}

// open names the segment the next block goes to and where in it the block begins.
func (m *memory) open() (segment, start int) {
	var room []byte
	if n := len(m.segments); n > m.sealed {
		if used := len(m.segments[n-1]); used < segmentSize {
			return n - 1, used
		}
		m.sealed = n
		// The first segment grows with what a small tenant writes; whoever has filled one is about to fill the next. It
		// has room for the block that passes segmentSize, most being small.
		room = make([]byte, 0, segmentSize+segmentSize/64)
	}
	m.segments = append(m.segments, room)
	return len(m.segments) - 1, 0
}

// cut takes the end of the open segment off again, from start on, and the room it grew by where that is much.
func (m *memory) cut(segment, start int) {
	s := &m.segments[segment]
	*s = (*s)[:start]
	if cap(*s) > 2*segmentSize {
		*s = slices.Clone(*s)
	}
}

// snapshot is the memory as it stands, to be read without a lock.
func (m *memory) snapshot() memory {
	return memory{segments: slices.Clone(m.segments), sealed: len(m.segments)}
}

// bytes is what the segments hold on to.
func (m *memory) bytes() int64 {
	var n int64
	for _, s := range m.segments {
		n += int64(cap(s))
	}
	return n
}

// trimmed is the share of the file's segment, one in so many, that graphs at its end must take to be taken off it.
const trimmed = 8

// trim takes the graphs off the end of the segment that is the file as it was opened, once no index needs them: where
// nothing was written since they were saved, they are all that is there to take off, and otherwise nearly all.
func (db *DB) trim() {
	db.mu.RLock()
	end := db.replayed
	needed := end == 0
	for _, t := range db.numbers {
		for _, x := range t.derived {
			needed = needed || x.kept.whole.Load() != nil
		}
	}
	var file []byte
	if !needed {
		file = db.memory.segments[0]
	}
	db.mu.RUnlock()
	if needed || len(file)-end < len(file)/trimmed {
		return
	}
	documents := slices.Clone(file[:end])
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.replayed != 0 { // no compact has put other segments there
		db.memory.segments[0], db.replayed = documents, 0
		if db.opts.Feed != nil {
			db.opts.Feed.Relocated(0, documents)
		}
	}
}

// mark is a place in memory: everything staged before it is in the segments before it.
type mark struct{ segment, offset int }

func (m *memory) end() mark {
	if n := len(m.segments); n > m.sealed {
		return mark{n - 1, len(m.segments[n-1])}
	}
	return mark{len(m.segments), 0}
}
