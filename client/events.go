package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// sse is one server-sent event. An event without data only moves the cursor.
type sse struct {
	name string
	id   string
	data []byte // its lines, joined; nil if it has none
}

// sseReader splits a stream into events (WHATWG HTML, 9.2.6). Each line ends with a line feed, optionally after a
// carriage return.
type sseReader struct {
	in   *bufio.Reader
	line []byte
	max  int // bytes per event
}

func newSSEReader(in io.Reader, most int) *sseReader {
	return &sseReader{in: bufio.NewReader(in), max: most}
}

// next reads the next event and skips comments. An event that is cut off by the end of the stream is dropped.
func (r *sseReader) next() (e sse, err error) {
	size, started := 0, false
	for {
		line, err := r.readLine(r.max - size)
		if err != nil {
			return sse{}, err
		}
		size += len(line)
		if len(line) == 0 {
			if started {
				return e, nil
			}
			size = 0
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.name = string(value)
		case "id":
			e.id = string(value)
		case "data":
			if e.data != nil {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
			if e.data == nil {
				e.data = []byte{}
			}
		default: // a comment, or a field of a later version
			continue
		}
		started = true
	}
}

// errEventTooLong is the error of an event, or a line, longer than the reader's limit.
var errEventTooLong = errors.New("event longer than the limit of its reader")

// readLine reads a line and returns it without its end. The next call overwrites it.
func (r *sseReader) readLine(most int) ([]byte, error) {
	r.line = r.line[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		if len(r.line)+len(part) > most+len("\r\n") {
			return nil, errEventTooLong
		}
		r.line = append(r.line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(r.line[:len(r.line)-1], []byte("\r")), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}
