//go:build !linux || race

package http1

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// sysRead reads from a socket that does not block. It returns 0 at the end of the stream.
func sysRead(fd uintptr, p []byte) (int, error) {
	for {
		if n, err := syscall.Read(int(fd), p); err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

// sysWrite writes to a socket that does not block.
func sysWrite(fd uintptr, p []byte) (int, error) {
	for {
		if n, err := syscall.Write(int(fd), p); err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

// sysPoll sets the events that hold on a socket, without waiting.
func sysPoll(set *[1]unix.PollFd) error {
	_, err := unix.Poll(set[:], 0)
	return err
}
