package http1

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// socketOf is the socket below a connection, TLS or not; nil where there is
// none.
func socketOf(nc net.Conn) syscall.RawConn {
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

// quiet reports, without waiting, whether nothing waits to be read on a socket
// and its peer has not closed it.
func quiet(socket syscall.RawConn) bool {
	ok := false
	err := socket.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		ok = err == unix.EAGAIN
	})
	return ok && err == nil
}
