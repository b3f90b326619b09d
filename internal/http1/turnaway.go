package http1

import (
	"crypto/tls"
	"errors"
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

// handshake does the TLS handshake where there is one.
func (c *conn) handshake() bool {
	t, ok := c.nc.(*tls.Conn)
	if !ok {
		return true
	}
	if t.SetDeadline(time.Now().Add(HandshakeTimeout)) != nil || t.Handshake() != nil {
		return false
	}
	return t.SetDeadline(time.Time{}) == nil
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
