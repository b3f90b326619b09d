package http1

import (
	"time"
)

// discardable reports whether what is left of the body may be read away, so
// that the connection can be kept.
func (c *conn) discardable(r *Request) bool {
	if r.body.err != nil {
		return !c.broken
	}
	return !r.expects && (r.chunked || r.body.left <= maxDiscard)
}

// discard reads the rest of the body away and reports whether it ended within
// its bounds.
func (c *conn) discard(r *Request) bool {
	var sink [4 << 10]byte
	until := time.Now().Add(lingerTime)
	for read := 0; r.body.err == nil; {
		n, _ := c.readBody(r, sink[:], until)
		if read += n; read > maxDiscard {
			return false
		}
	}
	return !c.broken
}

// refuse answers a head that cannot be served; the connection ends.
func (c *conn) refuse(bad *Error) {
	r := &c.req
	if r.ID == nil {
		r.ID = c.makeID()
	}
	r.Method, r.Minor = "", 1
	a := bad.Answer()
	c.broken = true
	if c.send(r, &a, true) == nil {
		c.linger(r)
	}
}

// linger closes the sending half and reads what the client is still sending for
// a moment: closed with bytes unread, the socket would be reset, and the client
// could lose the answer. A client that was answered in full has nothing under
// way.
func (c *conn) linger(r *Request) {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || !c.broken && r.body.err != nil && c.start == c.end || half.CloseWrite() != nil {
		return
	}
	var sink [8 << 10]byte
	until := time.Now().Add(lingerTime)
	for read := 0; read < lingerBytes; {
		n, err := c.read(sink[:], until)
		if err != nil {
			return
		}
		read += n
	}
}
