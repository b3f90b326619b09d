//go:build !linux

package http1

// halfClosed is an event only Linux knows: elsewhere a client that has closed
// its sending half is noticed by the answer to it.
const halfClosed = 0
