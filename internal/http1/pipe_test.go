package http1

import (
	"net"
	"sync"
)

// pipes is a listener of in-memory connections, whose deadlines run on the time
// of a synctest bubble.
type pipes struct {
	conns chan net.Conn
	close sync.Once
	ended chan struct{}
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.close.Do(func() { close(p.ended) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}
