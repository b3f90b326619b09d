package http1

import (
	"crypto/tls"
	"errors"
	"io"
	"syscall"
	"time"
)

// temporary reports whether an accept that failed with err may succeed later.
func temporary(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EPERM, syscall.EPROTO} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Refusals returns how many of the descriptors to reserve for connections past the cap while they are refused.
func Refusals(descriptors int) int { return min(maxRefusals, max(descriptors/8, leastRefusals)) }

// handshake does the TLS handshake of a TLS connection.
func (c *conn) handshake() bool {
	t, ok := c.nc.(*tls.Conn)
	if !ok {
		return true
	}
	if t.SetDeadline(time.Now().Add(HandshakeTimeout)) != nil || c.checkEnd() != nil || t.Handshake() != nil {
		return false
	}
	return t.SetDeadline(time.Time{}) == nil
}

// endBy has a connection that is being refused end at a time.
func (c *conn) endBy(end time.Time) {
	c.endAt.CompareAndSwap(0, end.UnixNano())
	c.checkEnd() // an error means that the connection is closed or its time is over
}

// checkEnd sets the read deadline of a connection that has an endAt. It returns io.EOF once that time is over.
func (c *conn) checkEnd() error {
	end := c.endAt.Load()
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
	a := ErrorAnswerRetry(503, "too many connections, send the request again later", 1)
	a.Close = true
	c.refuse(a)
}

// wake ends the wait of an idle connection when a shutdown begins.
func (c *conn) wake() { c.nc.SetReadDeadline(time.Unix(1, 0)) }
