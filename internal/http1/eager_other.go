//go:build !linux

package http1

// eager is a wait on the spot, which is not worth its while without ppoll.
type eager struct{}

func (e *eager) init() {}

func (c *conn) await() {}
