package http1

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"
)

// body is how far the body of a request has been read.
type body struct {
	left  int64 // bytes to come, of the body or of the current chunk
	state bodyState
	err   error // what ended it; io.EOF where it was read whole
	total int64 // bytes handed out
}

type bodyState uint8

const (
	bodyLength    bodyState = iota // counted by Content-Length
	bodyChunkSize                  // a chunk's size line comes next
	bodyChunk                      // inside a chunk's data
	bodyChunkEnd                   // the line end after a chunk's data
	bodyTrailer                    // after the last chunk
)

// maxChunkLine is the longest size line or trailer field of a chunked body.
const maxChunkLine = 4 << 10

// maxTrailer is how much of trailers and chunk extensions a body may bring.
const maxTrailer = 16 << 10

// Body reads the whole body, of at most limit bytes, or MaxBody where limit is
// not positive. It tells a client that waits for it to go on. The error is
// an *Error with status 413, 400 or 408; the connection closes after it
// whatever is answered.
func (r *Request) Body(limit int64) ([]byte, error) {
	if limit <= 0 || limit > MaxBody {
		limit = MaxBody
	}
	return r.conn.wholeBody(r, limit)
}

// BodyReader reads the body as it comes, of any size. Its errors are those of
// Body, and io.EOF.
func (r *Request) BodyReader() io.Reader { return (*bodyReader)(r) }

type bodyReader Request

func (b *bodyReader) Read(p []byte) (int, error) {
	r := (*Request)(b)
	if err := r.conn.invite(r); err != nil {
		return 0, err
	}
	return r.conn.readBody(r, p, time.Time{})
}

// invite sends the 100 Continue a client waits for.
func (c *conn) invite(r *Request) error {
	if !r.expects {
		return nil
	}
	r.expects = false
	if r.body.err != nil || c.start < c.end || c.promised {
		return nil
	}
	if err := c.write([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
		return c.spoil(r, refuse(408, "the client was gone before its body"))
	}
	return nil
}

// spoil marks a body whose end is not known.
func (c *conn) spoil(r *Request, err *Error) error {
	c.broken = true
	r.body.err = err
	return err
}

func (c *conn) wholeBody(r *Request, limit int64) ([]byte, error) {
	if r.body.total > 0 || r.body.err != nil && r.body.err != io.EOF {
		return nil, c.spoil(r, refuse(400, "the body was read already"))
	}
	if !r.chunked && r.length > limit {
		return nil, c.spoil(r, refuse(413, "the body is %d bytes, over the limit of %d", r.length, limit))
	}
	if err := c.invite(r); err != nil {
		return nil, err
	}
	if !r.chunked && r.length <= int64(c.end-c.start) { // it came with the head
		b := c.buf[c.start : c.start+int(r.length) : c.start+int(r.length)]
		c.start += int(r.length)
		r.body = body{err: io.EOF, total: r.length}
		return b, nil
	}
	began := time.Now()
	b := c.whole[:0]
	if cap(b) == 0 {
		b = make([]byte, 0, min(max(r.length, 4<<10), keepBuffer))
	}
	for {
		if len(b) == cap(b) {
			// One byte past the limit, so that going over it is seen; no more
			// than twice what has come, so that a length alone takes no memory.
			grown := make([]byte, len(b), min(2*int64(cap(b)), limit+1))
			copy(grown, b)
			b = grown
		}
		until := began.Add(BodyTimeout + time.Duration(len(b)/BodyRate)*time.Second)
		n, err := c.readBody(r, b[len(b):cap(b)], until)
		b = b[:len(b)+n]
		if int64(len(b)) > limit {
			return nil, c.spoil(r, refuse(413, "the body is over the limit of %d bytes", limit))
		}
		if cap(b) <= keepBuffer {
			c.whole = b
		}
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// readBody reads some of the body. Without a deadline each wait for the client
// is bounded by BodyTimeout.
func (c *conn) readBody(r *Request, p []byte, until time.Time) (int, error) {
	for {
		if r.body.err != nil {
			return 0, r.body.err
		}
		if r.body.state != bodyLength && r.body.state != bodyChunk {
			if err := c.readChunkLine(r, until); err != nil {
				return 0, err
			}
			continue
		}
		if r.body.left == 0 {
			if r.body.state == bodyLength {
				r.body.err = io.EOF
			} else {
				r.body.state = bodyChunkEnd
			}
			continue
		}
		if len(p) == 0 {
			return 0, nil
		}
		if int64(len(p)) > r.body.left {
			p = p[:r.body.left]
		}
		var n int
		if c.start < c.end {
			n = copy(p, c.buf[c.start:c.end])
			c.start += n
		} else {
			var err error
			if n, err = c.read(p, c.bodyDeadline(until)); err != nil {
				return 0, c.bodyError(r, err)
			}
		}
		r.body.left -= int64(n)
		r.body.total += int64(n)
		if r.body.left == 0 && r.body.state == bodyLength {
			r.body.err = io.EOF
		}
		return n, nil
	}
}

func (c *conn) bodyDeadline(until time.Time) time.Time {
	if until.IsZero() {
		return time.Now().Add(BodyTimeout)
	}
	return until
}

func (c *conn) bodyError(r *Request, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return c.spoil(r, refuse(408, "the body did not come in time"))
	}
	return c.spoil(r, refuse(400, "the connection ended inside the body"))
}

// readChunkLine reads one line of a chunked body's framing.
func (c *conn) readChunkLine(r *Request, until time.Time) error {
	line, err := c.line(r, until)
	if err != nil {
		return err
	}
	switch r.body.state {
	case bodyChunkSize:
		size, bad := chunkSize(line)
		if bad != nil {
			return c.spoil(r, bad)
		}
		r.body.left, r.body.state = size, bodyChunk
		if size == 0 {
			r.body.state = bodyTrailer
		}
	case bodyChunkEnd:
		if len(line) > 0 {
			return c.spoil(r, refuse(400, "a chunk of the body is longer than its size says"))
		}
		r.body.state = bodyChunkSize
	case bodyTrailer:
		if len(line) == 0 {
			r.body.err = io.EOF
			return nil
		}
		if bad := checkTrailer(line); bad != nil {
			return c.spoil(r, bad)
		}
	}
	return nil
}

// line takes a line of chunked framing off the buffer, without its end.
func (c *conn) line(r *Request, until time.Time) ([]byte, error) {
	scanned := 0
	for {
		b := c.buf[c.start:c.end]
		if i := bytes.IndexByte(b[scanned:], '\n'); i >= 0 {
			i += scanned
			if i == 0 || b[i-1] != '\r' {
				return nil, c.spoil(r, refuse(400, "a line of the body's chunks ends in a bare line feed"))
			}
			c.start += i + 1
			if c.framing += i; c.framing > maxTrailer && r.body.state == bodyTrailer {
				return nil, c.spoil(r, refuse(431, "the body's trailers are over %d bytes", maxTrailer))
			}
			line := b[:i-1]
			if skipText(line, 0) < len(line) {
				return nil, c.spoil(r, refuse(400, "there is a control character in the body's chunk framing"))
			}
			return line, nil
		}
		if scanned = len(b); scanned > maxChunkLine {
			return nil, c.spoil(r, refuse(400, "a line of the body's chunks is over %d bytes", maxChunkLine))
		}
		c.room()
		n, err := c.read(c.buf[c.end:], c.bodyDeadline(until))
		if err != nil {
			return nil, c.bodyError(r, err)
		}
		c.end += n
	}
}

// chunkSize reads "<hex>[;extensions]".
func chunkSize(line []byte) (int64, *Error) {
	var n int64
	i := 0
	for ; i < len(line); i++ {
		c := line[i]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			c = 0xff
		}
		if c == 0xff {
			break
		}
		if i == 15 {
			return 0, refuse(400, "a chunk's size is out of range: %q", clip(line))
		}
		n = n<<4 | int64(c)
	}
	if i == 0 {
		return 0, refuse(400, "a chunk of the body has no size: %q", clip(line))
	}
	if i < len(line) && line[i] != ';' {
		return 0, refuse(400, "a chunk's size is no hexadecimal number: %q", clip(line))
	}
	return n, nil
}

// checkTrailer judges a trailer field as a header is judged, and refuses those
// that would have changed the framing. Trailers are not handed on.
func checkTrailer(line []byte) *Error {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return refuse(400, "a trailer of the body has no name")
	}
	for _, c := range line[:colon] {
		if !token[c] {
			return refuse(400, "a trailer's name holds a byte that may not be there: 0x%02x", c)
		}
	}
	name := line[:colon]
	if foldEqual(name, "content-length") || foldEqual(name, "transfer-encoding") || foldEqual(name, "host") {
		return refuse(400, "%q may not be a trailer", name)
	}
	return nil
}
