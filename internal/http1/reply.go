package http1

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"
	"unsafe"
)

// answer calls the handler and writes its answer. It reports whether the
// connection is kept.
func (c *conn) answer() bool {
	r := &c.req
	a, ok := c.call(r)
	if !ok {
		a = ErrorAnswer(500, "the request could not be served")
		a.Close = true
	} else if a.Switch != nil {
		c.switchTo(r, &a)
		return false
	} else if a.Raw == nil && (a.Status < 200 || a.Status > 599) {
		a = ErrorAnswer(500, "the handler returned no answer")
	}
	closing := a.Close || !r.KeepAlive()
	c.skip, c.now = r.ctx.seal(), time.Now()
	err := c.send(r, &a, closing)
	if a.Stream != nil {
		c.now = time.Now()
	}
	r.ctx.end()
	r.whole = nil
	c.releaseHeld()
	if err != nil {
		return false
	}
	if closing || !r.discard() {
		c.linger(r)
		return false
	}
	return true
}

// call runs the handler. If it panics, the panic is logged and ok is false.
func (c *conn) call(r *Request) (a Answer, ok bool) {
	defer func() {
		if !ok {
			c.logPanic(recover())
		}
	}()
	return c.server.Handler.Serve(r), true
}

func (c *conn) logPanic(reason any) {
	c.server.Log.Error().Str("panic", fmt.Sprint(reason)).Bytes("request", c.req.ID).
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
	c.head = appendHead(c.head, a, r, length, c.now, closing)
	if r.Method == "HEAD" || bodiless(a.Status) {
		return c.write(c.head)
	}
	return c.stream(r, a, mode, c.head)
}

func (c *conn) sendWhole(r *Request, a *Answer, closing bool) error {
	c.head = appendHead(c.head, a, r, int64(len(a.Body)), c.now, closing)
	body := a.Body
	if r.Method == "HEAD" || bodiless(a.Status) {
		body = nil
	}
	if n := len(body); n > c.usual && n <= keepBuffer-headRoom {
		c.usual = n + n/4 // so that the next one like it fits the scratch buffer
	}
	switch {
	case len(body) == 0:
		return c.write(c.head)
	case c.scratched(body) && len(c.head) <= headRoom:
		at := headRoom - len(c.head)
		copy(c.scratch[at:], c.head)
		return c.write(c.scratch[at : headRoom+len(body)])
	case len(body) <= copyBody:
		c.head = append(c.head, body...)
		return c.write(c.head)
	default:
		return c.writeAll(c.head, body, nil)
	}
}

// Scratch returns a buffer of length 0 that the handler may append the answer's
// body to. Returned as Answer.Body, it is sent with its head in one write and is
// not copied.
func (r *Request) Scratch() []byte { return r.Grow(0) }

// Grow is Scratch with room for at least n bytes. Up to 64 KiB of room is kept for
// the connection's next requests.
func (r *Request) Grow(n int) []byte {
	c := r.conn
	if want := headRoom + max(n, c.usual); cap(c.scratch) < want {
		c.scratch = make([]byte, headRoom, max(want, readBuffer))
	}
	return c.scratch[headRoom:headRoom]
}

// scratched reports whether a body lies in the scratch buffer.
func (c *conn) scratched(body []byte) bool {
	return cap(c.scratch) > headRoom && unsafe.SliceData(body) == unsafe.SliceData(c.scratch[headRoom:cap(c.scratch)])
}

// stream writes the head and has the handler write the body.
func (c *conn) stream(r *Request, a *Answer, mode writerMode, head []byte) error {
	w := &Writer{conn: c, mode: mode, left: a.Length, held: append(c.head[:0], head...)}
	if a.Length == 0 {
		r.ctx.streaming()
	}
	if c.poller.socket == nil {
		w.wakeup = make(chan struct{}, 1)
	}
	if a.Apart {
		c.server.open.Add(-1)
		defer c.server.open.Add(1)
	}
	err := c.pump(a, w)
	if err == nil {
		err = w.finish()
	}
	if err != nil && !w.sent {
		instead := ErrorAnswer(500, "the answer could not be written")
		if a.Raw != nil {
			instead = ErrorAnswer(502, "the node's answer ended before its first byte")
		}
		c.head = w.held[:0]
		c.sendWhole(r, &instead, true)
	}
	return err
}

var errPanicked = errors.New("the handler's stream panicked")

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
