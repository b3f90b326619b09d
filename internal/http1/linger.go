package http1

import "time"

// discardable reports whether the rest of the body may be discarded, so that the
// connection can be kept.
func (r *Request) discardable() bool {
	if r.body.err != nil {
		return r.body.ended()
	}
	return !r.expects && (r.chunked || r.body.left <= maxDiscard)
}

// discard reads the rest of the body and reports whether it ended within its
// bounds.
func (r *Request) discard() bool {
	if r.body.err != nil {
		return r.body.ended()
	}
	in := &r.conn.inbound
	if have := int64(in.end - in.start); !r.chunked && r.body.left <= have {
		in.start += int(r.body.left)
		return true
	}
	sink := make([]byte, 4<<10)
	until := time.Now().Add(lingerTime)
	for read := 0; r.body.err == nil; {
		n, _ := r.body.read(sink, until, 0)
		if read += n; read > maxDiscard {
			return false
		}
	}
	return r.body.ended()
}

// refuse answers an invalid head, or a connection past the cap, and ends the
// connection.
func (c *conn) refuse(a Answer) {
	r := &c.req
	if r.ID == nil {
		r.ID = c.makeID()
	}
	r.body.fail(400, "the request was refused")
	c.now = time.Now()
	if c.send(r, &a, true) == nil {
		c.linger(r)
	}
}

// linger closes the sending half and for up to lingerTime reads what the client
// still sends: closing a socket with unread bytes resets it, and the client could
// lose the answer. If everything was read, there is no need to.
func (c *conn) linger(r *Request) {
	quiet := r.body.ended() && c.start == c.end && r.ctx.quiet()
	half, ok := c.nc.(interface{ CloseWrite() error })
	if quiet || !ok || half.CloseWrite() != nil {
		return
	}
	sink := make([]byte, 16<<10)
	until := time.Now().Add(lingerTime)
	c.idle = true // a shutdown does not wait for this
	for read := 0; read < lingerBytes; {
		n, err := c.read(sink, until)
		if err != nil {
			return
		}
		read += n
	}
}
