//go:build !linux

package http1

// halfClosed is an event only Linux knows: elsewhere a client that has closed
// its sending half is noticed by the answer to it.
const halfClosed = 0

// unacknowledged is asked only of a peer that has closed its sending half, which is not known here.
func unacknowledged(int) int { return 0 }
