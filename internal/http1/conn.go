package http1

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// conn is one client's connection and everything it reuses between requests.
type conn struct {
	inbound
	outbound
	server *Server
	poller poller
	remote netip.AddrPort
	began  time.Time
	now    time.Time // when the last answer was written, or the connection began

	parser headParser
	req    Request
	whole  []byte       // a body that did not come with its head
	held   [2]Holding   // by the request under way: of the budget of bodies, and of another
	idle   bool         // between requests: a shutdown may end the wait
	endAt  atomic.Int64 // when a refused connection ends, in Unix nanoseconds; 0 without a limit

	scratch []byte // headRoom bytes, then the buffer of Request.Scratch
	usual   int    // the longest body lately that fits the scratch buffer
	head    []byte // heads, and small bodies after them
	id      [16]byte
}

func newConn(s *Server, nc net.Conn) *conn {
	now := time.Now()
	c := &conn{server: s, began: now, now: now}
	c.inbound = inbound{nc: nc, buf: make([]byte, readBuffer), awake: c.awoke}
	c.outbound.init(nc)
	c.poller.init(nc)
	c.req.conn, c.req.ctx.conn = c, c
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		p := a.AddrPort()
		c.remote = netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return c
}

// awoke ends the wait of an idle connection once the server is closing, and of a refused one at its endAt.
func (c *conn) awoke() error {
	if c.idle && c.server.draining.Load() {
		return io.EOF
	}
	return c.checkEnd()
}

// serve answers the connection's requests until it ends.
func (c *conn) serve() {
	for {
		if err := c.readHead(); err != nil {
			var bad *Error
			if errors.As(err, &bad) {
				c.refuse(bad.Answer())
			}
			return
		}
		if !c.answer() {
			return
		}
	}
}

// readHead reads and checks the next request's head. Errors other than *Error
// end the connection without an answer.
func (c *conn) readHead() error {
	c.begin()
	if c.server.draining.Load() && c.start == c.end {
		return io.EOF
	}
	until := c.now.Add(c.server.idle())
	c.idle = true
	blank := true // one empty line before a request is skipped
	for {
		if have := c.buf[c.start:c.end]; blank && len(have) >= 2 && have[0] == '\r' && have[1] == '\n' {
			c.start += 2
			blank = false
		}
		if c.start < c.end {
			longest := c.server.longestHead()
			n, bad := c.parser.parse(c.buf[c.start:min(c.end, c.start+longest)])
			switch {
			case bad != nil && c.parser.pos < MaxHead:
				return bad
			case bad != nil, n == 0 && c.end-c.start >= longest:
				return errLongHead()
			case n > 0:
				return c.accept(n)
			}
			if c.idle {
				c.idle = false
				until = time.Now().Add(HeadTimeout)
			}
		}
		if c.room() {
			c.parser.reset()
		}
		if err := c.fill(until); err != nil {
			return c.headLost(err)
		}
	}
}

// headLost converts an error of the connection before a whole head was read.
func (c *conn) headLost(err error) error {
	switch {
	case c.idle:
		return err
	case c.end-c.start >= MaxHead:
		return errLongHead()
	case timedOut(err):
		return refuse(408, "the head did not come within %v", HeadTimeout)
	case err == io.EOF:
		return refuse(400, "the connection ended inside the head")
	}
	return err
}

// longestHead returns how long a head may be before its sender is known.
func (s *Server) longestHead() int {
	if s.Trusts == nil {
		return MaxHead
	}
	return MaxHead + RouterRoom
}

func errLongHead() *Error { return refuse(431, "the head is over %d bytes", MaxHead) }

// begin resets the connection for the next request.
func (c *conn) begin() {
	c.rest()
	if cap(c.parser.headers) > 256 {
		c.parser.headers = nil
	}
	c.parser.reset()
	if cap(c.head) > keepBuffer {
		c.head = nil
	}
	if cap(c.scratch) > 2*keepBuffer {
		c.scratch = nil
	}
	r := &c.req
	r.Method, r.Target, r.Path, r.Query, r.Headers, r.Head, r.Host, r.ID = "", nil, nil, nil, nil, nil, nil, nil
	r.Minor, r.Remote, r.MadeID = 1, c.remote, false
	r.length, r.chunked, r.close, r.expects = 0, false, false, false
	r.whole, r.taken = nil, false
	r.body = body{in: &c.inbound, late: 408, bad: 400}
	r.ctx.reset()
}

// accept takes the head of n bytes at the start of the buffer as the request.
func (c *conn) accept(n int) error {
	c.idle = false
	head := c.buf[c.start : c.start+n : c.start+n]
	c.start += n
	c.pinned = true
	r := &c.req
	err := r.read(&c.parser, head)
	if r.MadeID = r.ID == nil; r.MadeID {
		r.ID = c.makeID()
	}
	switch {
	case n > MaxHead && (err != nil || !c.server.Trusts(r)):
		return errLongHead()
	case err != nil:
		return err
	}
	switch {
	case r.chunked:
		r.body.state = bodyChunkSize
	case r.length == 0:
		r.body.err, r.expects = io.EOF, false
	default:
		r.body.left = r.length
	}
	if r.body.err == nil {
		r.ctx.bodyBegins()
	}
	return nil
}

// probe sends as many of the bytes as possible without waiting.
func (c *conn) probe(p []byte) (int, error) {
	switch {
	case c.raw != nil:
		return c.writeNow(p)
	case !c.poller.writable():
		return 0, nil
	}
	return c.to.Write(p)
}

func (c *conn) makeID() []byte {
	n := rand.Uint64()
	for i := range c.id {
		c.id[i] = "0123456789abcdef"[n&15]
		n >>= 4
	}
	return c.id[:]
}
