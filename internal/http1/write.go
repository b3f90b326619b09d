package http1

import (
	"net"
	"syscall"
	"time"
)

// directWriter tries a write on a socket at once, so that a deadline need be
// set only for a client that does not keep up.
type directWriter struct {
	raw syscall.RawConn
	p   []byte
	n   int
	err error
	try func(fd uintptr) bool
}

func (d *directWriter) init(raw syscall.RawConn) {
	d.raw = raw
	d.try = func(fd uintptr) bool {
		for {
			d.n, d.err = syscall.Write(int(fd), d.p)
			if d.err != syscall.EINTR {
				return true
			}
		}
	}
}

// write writes what fits into the socket's buffer.
func (d *directWriter) write(p []byte) (int, error) {
	d.p, d.n, d.err = p, 0, nil
	err := d.raw.Write(d.try)
	d.p = nil
	if err != nil {
		return 0, err
	}
	if d.n < 0 {
		d.n = 0
	}
	if d.err == syscall.EAGAIN {
		d.err = nil
	}
	return d.n, d.err
}

// answerStart is what every answer begins with.
const answerStart = "HTTP/1.1 "

// write writes all of p.
func (c *conn) write(p []byte) error {
	p = c.kept(p)
	if c.direct.raw != nil {
		n, err := c.direct.write(p)
		if err != nil || n == len(p) {
			return err
		}
		p = p[n:]
	}
	return c.writeSlow(p)
}

// kept drops the start of the answer where a probe has sent it.
func (c *conn) kept(p []byte) []byte {
	if c.promised && len(p) >= len(answerStart) {
		c.promised = false
		return p[len(answerStart):]
	}
	return p
}

// writeSlow writes under a deadline that moves on as the client takes bytes.
func (c *conn) writeSlow(p []byte) error {
	for len(p) > 0 {
		if err := c.nc.SetWriteDeadline(time.Now().Add(WriteTimeout)); err != nil {
			return err
		}
		n, err := c.nc.Write(p[:min(len(p), 1<<20)])
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return c.nc.SetWriteDeadline(time.Time{})
}

// writeBoth writes two pieces, together where the system can.
func (c *conn) writeBoth(a, b []byte) error {
	a = c.kept(a)
	if c.direct.raw == nil || len(b) > 1<<20 {
		if err := c.write(a); err != nil {
			return err
		}
		return c.write(b)
	}
	if err := c.nc.SetWriteDeadline(time.Now().Add(WriteTimeout)); err != nil {
		return err
	}
	c.vector = append(c.vector[:0], a, b)
	v := c.vector
	if _, err := (*net.Buffers)(&v).WriteTo(c.nc); err != nil {
		return err
	}
	return c.nc.SetWriteDeadline(time.Time{})
}

// probe sends the start of the answer ahead of it.
func (c *conn) probe() {
	if c.direct.raw == nil {
		return
	}
	if n, err := c.direct.write([]byte(answerStart)); err == nil && n == len(answerStart) {
		c.promised = true
	}
}
