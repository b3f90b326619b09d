package wal

import (
	"fenec/engine/fail"
	"fenec/internal/vfs"
)

// streamSegment is the smallest slice, in bytes, that a Stream gathers a file in.
const streamSegment = 1 << 20

// Stream replays a file while its bytes arrive, so that it need not be read again once it is written.
type Stream struct {
	replay func(kind Kind, data []byte, from, to int) error
	header fileHeader
	data   []byte // the latest bytes of the file: whole records, replayed, then the part of the next that has arrived
	at     int    // where in data the next record begins
	offset int64  // where in the file that is
	marked bool   // the last record is a mark
	err    error  // the first; nothing is replayed after it
}

// NewStream returns a Stream. replay is called for each record in order, as Open calls it, except that data is not the
// whole file: it is a slice that holds the whole record, and may hold the next ones too.
func NewStream(replay func(kind Kind, data []byte, from, to int) error) *Stream {
	return &Stream{replay: replay}
}

// Write accepts the file's next bytes and replays the records that are whole by now. It fails as Open does, and skips
// what Open skips.
func (s *Stream) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && s.err == nil; {
		if len(s.data) == cap(s.data) {
			s.grow()
		}
		n := copy(s.data[len(s.data):cap(s.data)], rest)
		s.data, rest = s.data[:len(s.data)+n], rest[n:]
		s.err = s.advance()
	}
	if s.err != nil {
		return 0, s.err
	}
	return len(p), nil
}

// grow makes room for the rest of the next record, for all of it if its length is known. The records before it are not
// moved, since replay may have kept them.
func (s *Stream) grow() {
	room := streamSegment
	if h, ok := parseHeader(s.data[s.at:], s.header.salt, s.offset); ok && s.offset > 0 {
		room = max(room, HeaderSize+int(h.length))
	}
	// A false length takes no more memory than the bytes that arrive: a slice at most doubles.
	room = min(room, max(streamSegment, 2*len(s.data[s.at:])))
	s.data = append(make([]byte, 0, room), s.data[s.at:]...)
	s.at = 0
}

// advance replays the records that are whole.
func (s *Stream) advance() error {
	if s.offset == 0 {
		if len(s.data) < fileHeaderSize {
			return nil
		}
		h, err := decodeFileHeader(s.data)
		if err != nil {
			return err
		}
		s.header, s.at, s.offset = h, fileHeaderSize, fileHeaderSize
	}
	for len(s.data)-s.at >= HeaderSize {
		h, ok := parseHeader(s.data[s.at:], s.header.salt, s.offset)
		if !ok {
			return fail.New(fail.Damaged, "the record at offset %d is damaged in its header", s.offset)
		}
		if err := checkKind(h, s.offset); err != nil {
			return err
		}
		end := s.at + HeaderSize + int(h.length)
		if end > len(s.data) {
			return nil
		}
		switch whole := checksum(s.data[s.at+HeaderSize:end]) == h.body; {
		case whole && h.kind != mark:
			if err := s.replay(h.kind, s.data, s.at+HeaderSize, end); err != nil {
				return unreadable(s.offset, err)
			}
		case !whole && h.kind != Derived:
			return fail.New(fail.Damaged, "the record at offset %d is damaged in its payload", s.offset)
		}
		s.at, s.offset, s.marked = end, h.end(s.offset), h.kind == mark
	}
	return nil
}

// End checks the end of the file: it fails with fail.Damaged if the file does not end with a whole record, or is too
// short.
func (s *Stream) End() error {
	switch {
	case s.err != nil:
	case s.offset == 0:
		_, s.err = decodeFileHeader(s.data)
	case s.at < len(s.data):
		s.err = fail.New(fail.Damaged, "the record at offset %d is cut short", s.offset)
	default:
		s.err = s.header.covers(s.offset)
	}
	return s.err
}

// Log opens the received file f, all of which is on disk, under the name path.
func (s *Stream) Log(path string, o Options, f vfs.File) *Log {
	l := newLog(path, o.withDefaults(), f, s.header.salt, s.offset)
	l.marked = s.marked
	return l
}
