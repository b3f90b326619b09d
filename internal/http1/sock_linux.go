package http1

import "golang.org/x/sys/unix"

// halfClosed is the event of a peer that has closed its sending half.
const halfClosed = unix.POLLRDHUP

// unacknowledged returns how many bytes sent on a socket its peer has not acknowledged.
func unacknowledged(fd int) int {
	n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return n
}
