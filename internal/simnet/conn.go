package simnet

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// windowSize is how many bytes a connection holds in each direction that are not read yet. A writer waits for room.
const windowSize = 64 << 10

// pair is a connection with both its ends.
type pair struct {
	from, to       *Host
	client, server *conn
	open           atomic.Int32 // ends that are not closed
}

func newPair(from, to *Host, fromAddr, toAddr net.Addr) *pair {
	p := &pair{from: from, to: to}
	p.open.Store(2)
	there, back := newStream(), newStream()
	p.client = &conn{pair: p, in: back, out: there, local: fromAddr, remote: toAddr}
	p.server = &conn{pair: p, in: there, out: back, local: toAddr, remote: fromAddr}
	return p
}

// reset ends the connection at both ends at once; what is not read yet is lost.
func (p *pair) reset() {
	p.client.in.fail(syscall.ECONNRESET)
	p.server.in.fail(syscall.ECONNRESET)
}

// conn is one end of a connection.
type conn struct {
	pair          *pair
	in, out       *stream
	local, remote net.Addr
	once          sync.Once
}

func (c *conn) Read(b []byte) (int, error) { return c.in.read(b) }

func (c *conn) Write(b []byte) (int, error) { return c.out.write(b) }

// Close ends both directions: the other end reads what was written and then io.EOF, and its writes fail.
func (c *conn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		err = nil
		c.in.close(net.ErrClosed, syscall.EPIPE)
		c.out.close(io.EOF, net.ErrClosed)
		if c.pair.open.Add(-1) == 0 {
			c.pair.from.network.forget(c.pair)
		}
	})
	return err
}

func (c *conn) LocalAddr() net.Addr { return c.local }

func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error { return c.in.setDeadline(&c.in.reader, t) }

func (c *conn) SetWriteDeadline(t time.Time) error { return c.out.setDeadline(&c.out.writer, t) }

// stream is one direction of a connection.
type stream struct {
	mu      sync.Mutex
	changed sync.Cond
	data    []byte
	held    bool // nothing arrives
	reader  side
	writer  side
}

// side is the reader or the writer of a stream.
type side struct {
	err      error // ends it; a reader reads the rest first if it is io.EOF
	late     bool  // the deadline is over
	deadline *time.Timer
}

func newStream() *stream {
	s := new(stream)
	s.changed.L = &s.mu
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch err := s.reader.err; {
		case err != nil && err != io.EOF:
			return 0, err
		case s.reader.late:
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case len(s.data) > 0 && !s.held:
			n := copy(b, s.data)
			s.data = s.data[n:]
			s.changed.Broadcast()
			return n, nil
		case err != nil && !s.held:
			return 0, err
		}
		s.changed.Wait()
	}
}

// hold makes nothing of the stream arrive, or lets it arrive again.
func (s *stream) hold(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	s.changed.Broadcast()
}

func (s *stream) write(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.writer.err != nil:
			return n, s.writer.err
		case s.writer.late:
			return n, os.ErrDeadlineExceeded
		}
		more := min(len(b)-n, windowSize-len(s.data))
		s.data = append(s.data, b[n:n+more]...)
		n += more
		s.changed.Broadcast()
		if n == len(b) {
			return n, nil
		}
		s.changed.Wait()
	}
}

// close ends the stream for its reader and its writer, unless they have ended.
func (s *stream) close(reader, writer error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader.err == nil || reader == net.ErrClosed {
		s.reader.err = reader
	}
	if s.writer.err == nil {
		s.writer.err = writer
	}
	s.stopLocked()
}

// fail ends the stream at both ends and drops what is in it.
func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = nil
	for _, one := range []*side{&s.reader, &s.writer} {
		if one.err == nil || one.err == io.EOF {
			one.err = err
		}
	}
	s.stopLocked()
}

func (s *stream) stopLocked() {
	for _, one := range []*side{&s.reader, &s.writer} {
		if one.err != nil && one.err != io.EOF && one.deadline != nil { // a silence may hold io.EOF
			one.deadline.Stop()
		}
	}
	s.changed.Broadcast()
}

func (s *stream) setDeadline(one *side, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.err == net.ErrClosed {
		return net.ErrClosed
	}
	if one.deadline != nil {
		one.deadline.Stop()
		one.deadline = nil
	}
	one.late = false
	switch left := time.Until(t); {
	case t.IsZero():
	case left <= 0:
		one.late = true
	default:
		var timer *time.Timer
		timer = time.AfterFunc(left, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if one.deadline == timer {
				one.late = true
				s.changed.Broadcast()
			}
		})
		one.deadline = timer
	}
	s.changed.Broadcast()
	return nil
}
