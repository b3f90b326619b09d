package http1

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// socket is a TCP connection that reads and writes by sysRead and sysWrite.
type socket struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out exchange
}

// exchange is one direction of a socket. Its function is made once, so that a read or write allocates nothing.
type exchange struct {
	mu  sync.Mutex
	p   []byte
	n   int
	err error
	try func(fd uintptr) bool // sets n and err; false if the socket is not ready
}

func (e *exchange) init(call func(fd uintptr, p []byte) (int, error)) {
	e.try = func(fd uintptr) bool {
		e.n, e.err = call(fd, e.p)
		return e.err != syscall.EAGAIN
	}
}

// newSocket returns nc as a socket, or unchanged if it is not a TCP connection.
func newSocket(nc net.Conn) net.Conn {
	t, ok := nc.(*net.TCPConn)
	if !ok {
		return nc
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return nc
	}
	s := &socket{TCPConn: t, raw: raw}
	s.in.init(sysRead)
	s.out.init(sysWrite)
	return s
}

// Read reads at least a byte, waiting until the read deadline.
func (s *socket) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	e := &s.in
	e.mu.Lock()
	defer e.mu.Unlock()
	e.p = p
	err := s.raw.Read(e.try)
	e.p = nil
	switch {
	case err != nil:
		return 0, err
	case e.err != nil:
		return 0, s.failed("read", e.err)
	case e.n == 0:
		return 0, io.EOF
	}
	return e.n, nil
}

// Write writes all of p, waiting until the write deadline.
func (s *socket) Write(p []byte) (int, error) {
	e := &s.out
	e.mu.Lock()
	defer e.mu.Unlock()
	written := 0
	for written < len(p) {
		e.p = p[written:]
		err := s.raw.Write(e.try)
		e.p = nil
		switch {
		case err != nil:
			return written, err
		case e.err != nil:
			return written, s.failed("write", e.err)
		}
		written += e.n
	}
	return written, nil
}

func (s *socket) failed(call string, err error) error {
	return &net.OpError{Op: call, Net: "tcp", Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: os.NewSyscallError(call, err)}
}
