package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Sync is fdatasync: it covers the bytes and a larger size but not the times, which would cost a second journal write
// each.
func (f osFile) Sync() error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	closed := conn.Control(func(fd uintptr) {
		for {
			failed = unix.Fdatasync(int(fd))
			if !errors.Is(failed, unix.EINTR) {
				return
			}
		}
	})
	if closed != nil {
		failed = os.ErrClosed
	}
	if failed != nil {
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: failed}
	}
	return nil
}
