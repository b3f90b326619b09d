package replication

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// closedConn is a connection whose other end has sent a frame and has closed it. The frame can be read once a write has failed.
type closedConn struct {
	net.Conn
	in     io.Reader
	failed chan struct{}
	closed atomic.Bool
}

func (c *closedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *closedConn) SetWriteDeadline(time.Time) error { return nil }

func (c *closedConn) Write([]byte) (int, error) {
	close(c.failed)
	return 0, syscall.EPIPE
}

func (c *closedConn) Read(b []byte) (int, error) {
	<-c.failed
	time.Sleep(time.Millisecond)
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	return c.in.Read(b)
}

func (c *closedConn) Close() error {
	c.closed.Store(true)
	return nil
}

// counting counts frames.
type counting int

func (c *counting) handle(frame) error     { *c++; return nil }
func (c *counting) fill(dst []byte) []byte { return endFrame(beginFrame(dst, kindAck, 1), 0) }
func (c *counting) sent()                  {}
func (c *counting) tick()                  {}

func TestWhatHasComeIsReadThoughNothingCanBeSent(t *testing.T) {
	for drains, want := range map[bool]counting{true: 1, false: 0} {
		synctest.Test(t, func(t *testing.T) {
			b := endFrame(beginFrame(nil, kindWrites, 1), 0)
			l := newLink(&closedConn{in: bytes.NewReader(b), failed: make(chan struct{})})
			l.drains = drains
			var got counting
			if err := l.run(&got); err == nil || got != want {
				t.Errorf("of a link that drains (%v) %d frames were read, want %d; %v", drains, got, want, err)
			}
		})
	}
}
