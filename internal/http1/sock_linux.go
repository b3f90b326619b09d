package http1

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// look asks a socket, without waiting, whether its peer has reset the
// connection and whether it has closed its sending half.
func look(raw syscall.RawConn) (reset, ended bool) {
	err := raw.Control(func(fd uintptr) {
		set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		if _, err := unix.Poll(set, 0); err != nil {
			return
		}
		reset = set[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		ended = set[0].Revents&unix.POLLRDHUP != 0
	})
	return reset || err != nil, ended
}

// quiet reports whether nothing waits to be read on a socket and its peer has
// not closed it.
func quiet(raw syscall.RawConn) bool {
	var b [1]byte
	ok := false
	err := raw.Control(func(fd uintptr) {
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		ok = err == unix.EAGAIN
	})
	return ok && err == nil
}

// socket is the socket below a connection, TLS or not; nil where there is none.
func socket(nc net.Conn) syscall.RawConn {
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = t.NetConn()
	}
	if s, ok := nc.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}
