//go:build !linux

package http1

import "syscall"

// look finds nothing out where a socket cannot be asked for its peer's state
// without reading from it: there a client that is gone is noticed by the answer
// to it.
func look(socket syscall.RawConn) (reset, ended bool) {
	return socket.Control(func(uintptr) {}) != nil, false
}
