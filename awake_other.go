//go:build !linux

package main

// keepAwake does nothing where a process cannot be started over in its place.
func keepAwake() {}
