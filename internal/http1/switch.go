package http1

import "net"

// switchTo sends the head of a 101 and lets the handler have the connection. It does not count towards Server.MaxConnections
// meanwhile.
func (c *conn) switchTo(r *Request, a *Answer) {
	defer func() {
		if reason := recover(); reason != nil {
			c.logPanic(reason)
		}
	}()
	r.ctx.seal()
	c.releaseHeld()
	if c.write(appendHead(c.head[:0], a, r, -1, c.now, false)) != nil {
		return
	}
	r.ctx.end()
	c.server.open.Add(-1)
	defer c.server.open.Add(1)
	c.idle = false
	a.Switch(&switched{Conn: c.nc, conn: c})
}

// switched is a connection that a handler has taken over. What was read ahead is read first.
type switched struct {
	net.Conn
	conn *conn
}

// Read implements net.Conn.
func (s *switched) Read(p []byte) (int, error) {
	if c := s.conn; c.start < c.end {
		n := copy(p, c.buf[c.start:c.end])
		c.start += n
		return n, nil
	}
	return s.Conn.Read(p)
}
