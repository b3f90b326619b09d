package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

func (f osFile) DropCache() error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = unix.Fadvise(int(fd), 0, 0, unix.FADV_DONTNEED) }); err != nil {
		return os.ErrClosed
	}
	if failed != nil {
		return &os.PathError{Op: "fadvise", Path: f.Name(), Err: failed}
	}
	return nil
}
