//go:build linux || darwin || freebsd

package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func (osFS) Free(name string) (int64, error) {
	for {
		var s unix.Statfs_t
		err := unix.Statfs(name, &s)
		switch {
		case err == nil:
			return int64(s.Bavail) * int64(s.Bsize), nil
		case !errors.Is(err, unix.EINTR):
			return 0, &os.PathError{Op: "statfs", Path: name, Err: err}
		}
	}
}
