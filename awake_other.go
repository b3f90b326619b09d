//go:build !linux

package main

// keepAwake does nothing on systems other than Linux.
func keepAwake() {}
