package vfs

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A process that is started has a copy of each descriptor for a moment.
func TestALockIsReleasedThoughACopyOfItsDescriptorIsOpen(t *testing.T) {
	name := filepath.Join(t.TempDir(), ".lock")
	held, err := OS.Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(held.(lock).Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := OS.Lock(name); err == nil {
		t.Fatal("a lock was taken twice")
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OS.Lock(name)
	if err != nil {
		t.Fatalf("after it was released: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
