package http1

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// look asks a socket, without waiting, whether its peer has reset the
// connection and whether it has closed its sending half.
func look(socket syscall.RawConn) (reset, ended bool) {
	err := socket.Control(func(fd uintptr) {
		set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		if _, err := unix.Poll(set, 0); err != nil {
			return
		}
		reset = set[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		ended = set[0].Revents&unix.POLLRDHUP != 0
	})
	return reset || err != nil, ended
}
