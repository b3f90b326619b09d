//go:build !linux

package http1

// halfClosed is an event of Linux. Elsewhere a client that has closed is detected
// when the answer is written to it.
const halfClosed = 0

// unacknowledged is called only for a peer that has closed its sending half, which cannot be detected here.
func unacknowledged(int) int { return 0 }
