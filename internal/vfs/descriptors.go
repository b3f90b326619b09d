package vfs

import "golang.org/x/sys/unix"

// Descriptors returns how many files and connections the process may have open.
func Descriptors() int {
	const many = 1 << 20
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return many
	}
	return int(min(limit.Cur, many))
}
