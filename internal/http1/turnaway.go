package http1

import (
	"crypto/tls"
	"errors"
	"io"
	"syscall"
	"time"
)

// passing reports whether an accept that failed so may well succeed later.
func passing(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EPERM, syscall.EPROTO} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Refusals returns how many of the descriptors that there are should go to connections past the cap, for as long as it
// takes to refuse them.
func Refusals(descriptors int) int { return min(maxRefusals, max(descriptors/8, leastRefusals)) }

// handshake does the TLS handshake where there is one.
func (c *conn) handshake() bool {
	t, ok := c.nc.(*tls.Conn)
	if !ok {
		return true
	}
	if t.SetDeadline(time.Now().Add(HandshakeTimeout)) != nil || c.hurries() != nil || t.Handshake() != nil {
		return false
	}
	return t.SetDeadline(time.Time{}) == nil
}

// hurry has a connection that is being refused end at a time.
func (c *conn) hurry(end time.Time) {
	c.hurried.CompareAndSwap(0, end.UnixNano())
	c.hurries() // a connection that is closed needs no end
}

// hurries sets the read deadline of a connection that hurries. Its error is that the time is over.
func (c *conn) hurries() error {
	end := c.hurried.Load()
	if end == 0 {
		return nil
	}
	if at := time.Unix(0, end); time.Now().Before(at) {
		return c.nc.SetReadDeadline(at)
	}
	return io.EOF
}

// turnAway answers a connection past the cap.
func (c *conn) turnAway() {
	if !c.handshake() {
		return
	}
	c.begin()
	a := ErrorAnswerRetry(503, "there are too many connections", 1)
	a.Close = true
	c.refuse(a)
}

// wake ends the wait of an idle connection as a shutdown begins.
func (c *conn) wake() { c.nc.SetReadDeadline(time.Unix(1, 0)) }
