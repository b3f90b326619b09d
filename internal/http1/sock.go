package http1

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// poller reads the state of a connection's socket without waiting and without
// allocating. It is used by one goroutine at a time.
type poller struct {
	socket syscall.RawConn // nil if the connection has no socket
	set    [1]unix.PollFd
	ask    func(fd uintptr)
}

func (p *poller) init(nc net.Conn) {
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok { // TLS
		nc = t.NetConn()
	}
	s, ok := nc.(syscall.Conn)
	if !ok {
		return
	}
	p.socket, _ = s.SyscallConn()
	p.ask = func(fd uintptr) {
		p.set[0].Fd = int32(fd)
		if err := sysPoll(&p.set); err != nil {
			p.set[0].Revents = 0 // unknown: the next use of the socket returns the error
		}
	}
}

// poll returns which of the events hold, and errors and hang-ups; a closed socket
// has an error.
func (p *poller) poll(events int16) int16 {
	p.set[0].Events = events
	if p.socket.Control(p.ask) != nil {
		return unix.POLLERR
	}
	return p.set[0].Revents
}

// quiet reports whether there is nothing to read and the peer has not closed the
// connection.
func (p *poller) quiet() bool { return p.socket == nil || p.poll(unix.POLLIN) == 0 }

// writable reports whether the socket accepts some bytes without waiting.
func (p *poller) writable() bool { return p.poll(unix.POLLOUT)&unix.POLLOUT != 0 }

// unacknowledged reports whether the peer has not acknowledged all bytes sent to it.
func (p *poller) unacknowledged() bool {
	queued := 0
	err := p.socket.Control(func(fd uintptr) { queued = unacknowledged(int(fd)) })
	return err != nil || queued > 0
}

// look reports whether the peer has reset the connection and whether it has
// closed its sending half.
func (p *poller) look() (reset, ended bool) {
	got := p.poll(halfClosed)
	return got&(unix.POLLERR|unix.POLLHUP) != 0, got&halfClosed != 0
}
