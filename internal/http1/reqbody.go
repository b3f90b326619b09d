package http1

import (
	"io"
	"time"
)

// Body reads the whole body, of at most limit bytes, or MaxBody if limit is not
// positive. A client that waits for a 100 Continue gets one. The error is an
// *Error with status 413, 400, 408 or 503; the connection closes after it,
// whatever the answer. A second call returns the same as the first.
func (r *Request) Body(limit int64) ([]byte, error) {
	if limit <= 0 {
		limit = MaxBody
	}
	b := &r.body
	switch {
	case b.broken():
		return nil, b.err
	case r.taken:
		return r.whole, nil
	case b.total > 0:
		return nil, refuse(400, "part of the body was read as a stream")
	case !r.chunked && r.length > limit:
		return nil, b.fail(413, "the body is %d bytes, over the limit of %d", r.length, limit)
	}
	if err := r.invite(); err != nil {
		return nil, err
	}
	in := &r.conn.inbound
	if r.Arrived() {
		end := in.start + int(r.length)
		r.whole, r.taken = in.buf[in.start:end:end], true
		in.start = end
		b.left, b.total, b.err = 0, r.length, io.EOF
		r.ctx.bodyEnded()
		return r.whole, nil
	}
	whole, err := r.gather(limit)
	if err != nil {
		r.conn.held[heldBody].release()
		return nil, err
	}
	r.whole, r.taken = whole, true
	r.ctx.bodyEnded()
	return whole, nil
}

// Arrived reports whether the whole body came with the head, so that reading it neither waits nor needs memory.
func (r *Request) Arrived() bool {
	in := &r.conn.inbound
	return r.taken || !r.chunked && r.length <= int64(in.end-in.start)
}

// gather reads a body that did not come with its head into conn.whole.
func (r *Request) gather(limit int64) ([]byte, error) {
	b, c := &r.body, r.conn
	whole := c.whole[:0]
	if cap(whole) == 0 {
		whole = make([]byte, 0, min(max(r.length, readBuffer), keepBuffer))
	}
	until := time.Now().Add(BodyTimeout)
	for {
		if len(whole) == cap(whole) {
			// At most twice what has arrived, so that a length alone takes no
			// memory; a byte past the limit, to detect a longer body.
			size := 2 * int64(cap(whole))
			if !r.chunked {
				size = min(size, r.length)
			}
			size = min(size, limit+1)
			waited, ok := c.roomForBody(size)
			if !ok {
				b.err = &Error{Status: 503, Message: "the memory for request bodies is in use, send the request again", Retry: 1}
				return nil, b.err
			}
			until = until.Add(waited)
			whole = append(make([]byte, 0, size), whole...)
		}
		n, err := b.read(whole[len(whole):cap(whole)], until, 0)
		whole = whole[:len(whole)+n]
		// The bytes that arrived extend the deadline by their time at BodyRate, up to BodyTimeout from now.
		until = until.Add(time.Duration(n) * time.Second / BodyRate)
		if latest := time.Now().Add(BodyTimeout); until.After(latest) {
			until = latest
		}
		if int64(len(whole)) > limit {
			return nil, b.fail(413, "the body is over the limit of %d bytes", limit)
		}
		if b.ended() {
			if cap(whole) <= keepBuffer {
				c.whole = whole
			}
			return whole, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// BodyReader returns a reader of the body, of any size; each wait for the client
// is bounded by BodyTimeout. Its errors are those of Body, and io.EOF.
func (r *Request) BodyReader() io.Reader { return (*bodyReader)(r) }

type bodyReader Request

func (b *bodyReader) Read(p []byte) (int, error) {
	r := (*Request)(b)
	if err := r.invite(); err != nil {
		return 0, err
	}
	n, err := r.body.read(p, time.Time{}, BodyTimeout)
	if r.body.err != nil {
		r.ctx.bodyEnded()
	}
	return n, err
}

// invite sends the 100 Continue that a client waits for, unless its body is
// arriving already.
func (r *Request) invite() error {
	if !r.expects {
		return nil
	}
	r.expects = false
	c := r.conn
	if r.body.err != nil || c.start < c.end {
		return nil
	}
	if err := r.ctx.invite(); err != nil {
		return r.body.fail(400, "the client disconnected before its body")
	}
	return nil
}
