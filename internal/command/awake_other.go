//go:build !linux

package command

// keepAwake does nothing on systems other than Linux.
func keepAwake() {}
