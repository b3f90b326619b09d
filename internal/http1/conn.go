package http1

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"syscall"
	"time"
	"unsafe"
)

// conn is one client's connection and everything it reuses between requests.
type conn struct {
	server *Server
	nc     net.Conn        // what is read and written, TLS included
	raw    syscall.RawConn // the socket below it; nil where there is none
	remote netip.AddrPort
	began  time.Time

	buf        []byte // what has been read is buf[start:end]
	start, end int
	parser     headParser
	req        Request
	whole      []byte // a body that did not come with its head
	framing    int    // bytes of chunk lines of the current body

	out    []byte // headRoom bytes, then the scratch buffer
	head   []byte // heads, and small bodies beside them
	id     [16]byte
	vector net.Buffers

	armed    time.Time // the read deadline the socket has; never later than needed
	idleness bool      // between requests: a shutdown may end the wait
	broken   bool      // where the current request ends is not known
	promised bool      // "HTTP/1.1 " of the current answer is out already

	direct directWriter
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, nc: nc, began: time.Now(), buf: make([]byte, readBuffer)}
	c.req.conn, c.req.ctx.conn = c, c
	socket := nc
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok {
		socket = t.NetConn()
	}
	if s, ok := socket.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn()
	}
	if socket == nc && c.raw != nil {
		c.direct.init(c.raw)
	}
	switch a := nc.RemoteAddr().(type) {
	case *net.TCPAddr:
		p := a.AddrPort()
		c.remote = netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return c
}

// serve answers the connection's requests until it ends.
func (c *conn) serve() {
	for {
		if err := c.readHead(); err != nil {
			var bad *Error
			if errors.As(err, &bad) {
				c.refuse(bad)
			}
			return
		}
		if !c.answer() {
			return
		}
	}
}

// readHead reads and judges the next request's head. Errors other than *Error
// end the connection without a word.
func (c *conn) readHead() error {
	c.begin()
	until := time.Now().Add(c.server.idle())
	c.idleness = true
	for {
		if c.start < c.end {
			n, bad := c.parser.parse(c.buf[c.start:c.end])
			if bad != nil {
				return bad
			}
			if n > MaxHead || n == 0 && c.end-c.start >= MaxHead {
				return refuse(431, "the head is over %d bytes", MaxHead)
			}
			if n > 0 {
				head := c.buf[c.start : c.start+n : c.start+n]
				c.start += n
				return c.accept(head)
			}
			if c.idleness {
				c.idleness = false
				until = time.Now().Add(HeadTimeout)
			}
		}
		if c.room() {
			c.parser.reset()
		}
		if c.idleness && c.server.draining.Load() {
			return io.EOF
		}
		n, err := c.read(c.buf[c.end:], until)
		c.end += n
		if n > 0 {
			continue
		}
		switch {
		case c.idleness:
			return err
		case errors.Is(err, os.ErrDeadlineExceeded):
			return refuse(408, "the head did not come within %v", HeadTimeout)
		case err == io.EOF:
			return refuse(400, "the connection ended inside the head")
		default:
			return err
		}
	}
}

// begin forgets the request before.
func (c *conn) begin() {
	if c.start == c.end {
		c.start, c.end = 0, 0
		if len(c.buf) > keepBuffer {
			c.buf = make([]byte, readBuffer)
		}
	}
	if cap(c.parser.headers) > 256 {
		c.parser.headers = nil
	}
	c.parser.reset()
	r := &c.req
	r.Method, r.Target, r.Path, r.Query, r.Host, r.ID = "", nil, nil, nil, nil, nil
	r.length, r.chunked, r.close, r.expects = 0, false, false, false
	r.body = body{}
	r.ctx.reset()
	c.broken, c.promised, c.framing = false, false, 0
}

func (c *conn) accept(head []byte) error {
	c.idleness = false
	r := &c.req
	r.Remote = c.remote
	err := r.read(&c.parser, head)
	if r.ID == nil {
		r.ID = c.makeID()
	}
	if err != nil {
		return err
	}
	if r.chunked {
		r.body.state = bodyChunkSize
	} else if r.body.left = r.length; r.length == 0 {
		r.body.err, r.expects = io.EOF, false
	}
	return nil
}

func (c *conn) makeID() []byte {
	n := rand.Uint64()
	for i := range c.id {
		c.id[i] = "0123456789abcdef"[n&15]
		n >>= 4
	}
	return c.id[:]
}

// room makes space to read into, and reports whether the bytes at hand moved.
func (c *conn) room() (moved bool) {
	if c.end < len(c.buf) {
		return false
	}
	if c.req.Head == nil && c.start > 0 {
		c.end = copy(c.buf, c.buf[c.start:c.end])
		c.start = 0
		return true
	}
	// What a request under way points into stays where it is.
	grown := make([]byte, max(readBuffer, 2*(c.end-c.start)))
	c.end = copy(grown, c.buf[c.start:c.end])
	c.buf, c.start = grown, 0
	return true
}

// read reads once, waiting until the time given at most. The socket's deadline
// is set only where it would come too late: one that comes early is noticed and
// set anew, so a busy connection does not set one for every request.
func (c *conn) read(p []byte, until time.Time) (int, error) {
	for {
		if c.armed.IsZero() || until.Before(c.armed) {
			if err := c.nc.SetReadDeadline(until); err != nil {
				return 0, err
			}
			c.armed = until
			if c.idleness && c.server.draining.Load() {
				return 0, io.EOF
			}
		}
		n, err := c.nc.Read(p)
		if n > 0 {
			return n, nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		c.armed = time.Time{}
		if !time.Now().Before(until) || c.idleness && c.server.draining.Load() {
			return 0, err
		}
	}
}

// answer has the handler serve the request and writes what it answers. It
// reports whether the connection goes on.
func (c *conn) answer() bool {
	r := &c.req
	a, ok := c.call(r)
	if !ok {
		a = ErrorAnswer(500, "the request could not be served")
		a.Close = true
	}
	closing := a.Close || c.broken || r.close || c.server.draining.Load() || !c.discardable(r)
	err := c.send(r, &a, closing)
	r.ctx.end()
	if err != nil {
		return false
	}
	if !closing && r.body.err == nil {
		closing = !c.discard(r)
	}
	if closing {
		c.linger(r)
		return false
	}
	r.Head = nil
	return true
}

// call runs the handler; a panic of it is logged and is no answer.
func (c *conn) call(r *Request) (a Answer, ok bool) {
	defer func() {
		if !ok {
			c.logPanic(recover())
		}
	}()
	return c.server.Handler.Serve(r), true
}

func (c *conn) logPanic(reason any) {
	c.server.Log.Error().Interface("panic", reason).Bytes("request_id", c.req.ID).
		Str("method", c.req.Method).Bytes("path", c.req.Path).Bytes("stack", debug.Stack()).Msg("a handler panicked")
}

// send writes the answer.
func (c *conn) send(r *Request, a *Answer, closing bool) error {
	c.head = c.head[:0]
	if a.Raw != nil {
		if a.Stream == nil {
			return c.write(a.Raw)
		}
		return c.stream(r, a, writePlain, a.Raw)
	}
	if a.Stream == nil {
		return c.sendWhole(r, a, closing)
	}
	length, mode := int64(-1), writeChunked
	if a.Length > 0 {
		length, mode = a.Length, writeLength
	} else if r.Minor == 0 {
		mode = writePlain
	}
	c.head = appendHead(c.head, a, r, length, closing)
	if r.Method == "HEAD" || bodiless(a.Status) {
		return c.write(c.head)
	}
	return c.stream(r, a, mode, c.head)
}

func (c *conn) sendWhole(r *Request, a *Answer, closing bool) error {
	c.head = appendHead(c.head, a, r, int64(len(a.Body)), closing)
	body := a.Body
	if r.Method == "HEAD" || bodiless(a.Status) {
		body = nil
	}
	switch {
	case len(body) == 0:
		return c.write(c.head)
	case c.scratched(body) && len(c.head) <= headRoom:
		at := headRoom - len(c.head)
		copy(c.out[at:], c.head)
		return c.write(c.out[at : headRoom+len(body)])
	case len(body) <= copyBody:
		c.head = append(c.head, body...)
		return c.write(c.head)
	default:
		return c.writeBoth(c.head, body)
	}
}

// scratch is where a handler builds a body: the room before it takes the head,
// so both go out in one write.
func (c *conn) scratch() []byte {
	if c.out == nil {
		c.out = make([]byte, headRoom, readBuffer)
	}
	return c.out[headRoom:headRoom]
}

func (c *conn) scratched(body []byte) bool {
	return cap(c.out) > headRoom && unsafe.SliceData(body) == unsafe.SliceData(c.out[headRoom:cap(c.out)])
}

// stream writes the head and lets the handler write the body.
func (c *conn) stream(r *Request, a *Answer, mode writerMode, head []byte) error {
	w := &Writer{conn: c, mode: mode, left: a.Length, held: append(make([]byte, 0, streamBlock+64), head...)}
	if mode == writeChunked || mode == writePlain && a.Raw == nil {
		r.ctx.stream.Store(true)
		r.ctx.check()
	}
	err := c.pump(a, w)
	if err != nil {
		return err
	}
	return w.finish()
}

var errPanicked = errors.New("the stream's author panicked")

func (c *conn) pump(a *Answer, w *Writer) (err error) {
	ok := false
	defer func() {
		if !ok {
			c.logPanic(recover())
			err = errPanicked
		}
	}()
	err = a.Stream(w)
	ok = true
	return err
}
