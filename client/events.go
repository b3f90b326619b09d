package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// sse is one server-sent event. One without data only moves the cursor.
type sse struct {
	name string
	id   string
	data []byte // its lines, joined; nil where it has none
}

// sseReader cuts a stream into events (WHATWG HTML, 9.2.6), of which each line ends in a line feed, with or without a
// carriage return before it.
type sseReader struct {
	in   *bufio.Reader
	line []byte
	max  int // bytes of an event
}

func newSSEReader(in io.Reader, most int) *sseReader {
	return &sseReader{in: bufio.NewReader(in), max: most}
}

// next reads to the end of the next event, passing over comments. One that the stream breaks off in is none.
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
		default: // a comment, or what a later version adds
			continue
		}
		started = true
	}
}

// errEventTooLong is an event, or a line of a stream, past what its reader takes.
var errEventTooLong = errors.New("an event is longer than its reader takes")

// readLine reads a line without its end. It is overwritten by the next.
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
