package http1

import (
	"io"
	"time"
)

// body is the body of a message under way and how far it has been read.
type body struct {
	in      *inbound
	state   bodyState
	left    int64 // bytes to come, of the body or of the current chunk
	total   int64 // bytes returned
	framing int   // bytes of trailers and chunk lines read
	err     error // what ended it: io.EOF if it was read whole
	late    int   // the status of a timeout's Error
	bad     int   // the status of a framing Error
}

type bodyState uint8

const (
	bodyLength    bodyState = iota // counted by Content-Length
	bodyToEnd                      // ends with the connection
	bodyChunkSize                  // before a chunk's size line
	bodyChunk                      // inside a chunk's data
	bodyChunkEnd                   // the line end after a chunk's data
	bodyTrailer                    // after the last chunk
)

// broken reports whether the body failed before its end.
func (b *body) broken() bool { return b.err != nil && b.err != io.EOF }

// ended reports whether the body was read to its end.
func (b *body) ended() bool { return b.err == io.EOF }

// fail ends the body with an error.
func (b *body) fail(status int, format string, args ...any) error {
	b.err = refuse(status, format, args...)
	return b.err
}

// read reads some of the body. Each wait is bounded by until, or if that is
// zero by silence, if that is over zero.
func (b *body) read(p []byte, until time.Time, silence time.Duration) (int, error) {
	for b.err == nil {
		switch {
		case b.state >= bodyChunkSize && b.state != bodyChunk:
			if err := b.readLine(until, silence); err != nil {
				return 0, err
			}
			continue
		case b.state == bodyChunk && b.left == 0:
			b.state = bodyChunkEnd
			continue
		case b.state == bodyLength && b.left == 0:
			b.err = io.EOF
			continue
		case len(p) == 0:
			return 0, nil
		}
		if b.state != bodyToEnd && int64(len(p)) > b.left {
			p = p[:b.left]
		}
		n, err := b.take(p, until, silence)
		if err != nil {
			return 0, err
		}
		b.total += int64(n)
		if b.state != bodyToEnd {
			if b.left -= int64(n); b.left == 0 && b.state == bodyLength {
				b.err = io.EOF
			}
		}
		return n, nil
	}
	return 0, b.err
}

// take reads bytes of the body from the buffer, or else from the connection.
func (b *body) take(p []byte, until time.Time, silence time.Duration) (int, error) {
	in := b.in
	if in.start < in.end {
		n := copy(p, in.buf[in.start:in.end])
		in.start += n
		return n, nil
	}
	n, err := in.read(p, waitUntil(until, silence))
	if err == io.EOF && b.state == bodyToEnd {
		b.err = io.EOF
		return 0, io.EOF
	}
	if err != nil {
		return 0, b.lost(err)
	}
	return n, nil
}

func waitUntil(until time.Time, silence time.Duration) time.Time {
	if until.IsZero() && silence > 0 {
		return time.Now().Add(silence)
	}
	return until
}

// lost ends the body after an error of its connection.
func (b *body) lost(err error) error {
	if timedOut(err) {
		return b.fail(b.late, "the body did not come in time")
	}
	return b.fail(b.bad, "the connection ended inside the body")
}
