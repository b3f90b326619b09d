package http1

import "golang.org/x/sys/unix"

// halfClosed is the event of a peer that has closed its sending half.
const halfClosed = unix.POLLRDHUP
