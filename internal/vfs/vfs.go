// Package vfs is the interface between fenec and the file system: the few calls the product makes, so that tests can run
// it over a file system that fails and loses power at any of them (package crashfs).
//
// OS is the real file system. Everything here is safe for concurrent use and starts no goroutine.
package vfs

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// ErrLocked is returned by Lock if another holder, in this process or another, has the lock.
var ErrLocked = errors.New("already locked by another process")

// FS is a file system. Names are paths as in package os. Errors match os.ErrNotExist, os.ErrExist and os.ErrPermission
// with errors.Is.
type FS interface {
	// OpenFile opens name like os.OpenFile. os.O_APPEND is not supported: writes have an offset.
	OpenFile(name string, flag int, perm os.FileMode) (File, error)
	// Rename moves old to new, replacing new. It is durable once SyncDir has covered the directory.
	Rename(old, new string) error
	Remove(name string) error
	// ReadDir returns the base names in a directory, sorted.
	ReadDir(name string) ([]string, error)
	Stat(name string) (Info, error)
	// MkdirAll creates a directory and its missing parents.
	MkdirAll(name string, perm os.FileMode) error
	// SyncDir makes the names in a directory durable: files created, renamed and removed in it.
	SyncDir(name string) error
	// Free returns how many bytes this process may still write to the file system of the directory name. Another
	// process may use them first, and a quota may be smaller.
	Free(name string) (int64, error)
	// Lock takes the advisory exclusive lock on a file or directory, or returns ErrLocked at once. A name that does not
	// exist is created as an empty file. Close releases the lock, as does the end of the process.
	Lock(name string) (io.Closer, error)
}

// Info describes a file or directory.
type Info struct {
	Size int64 // bytes; undefined for a directory
	Dir  bool
}

// File is an open file, read and written at offsets.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes the file's bytes and size durable. Times and modes may lag, so that it costs an fdatasync if there is
	// one. After it has failed, what reached the disk is unknown, and a later success does not cover it.
	Sync() error
	// DropCache drops clean pages of the file from the system's cache, so that they are read from the device again.
	// After a failed Sync this shows what is on disk, so that the rest can be written again: ext4 keeps with a page
	// which blocks it lies in, so that one it could not write before is written there and yet reads as zeros. It is a
	// hint to the system.
	DropCache() error
	Truncate(size int64) error
	// Size returns the length in bytes.
	Size() (int64, error)
}

// IsFull reports whether err means that the disk, or the quota on it, is full.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Reason returns the cause of a file system error without the path that package os adds: clients must not see paths of
// the server.
func Reason(err error) string {
	var path *os.PathError
	var link *os.LinkError
	var call *os.SyscallError
	switch {
	case errors.As(err, &path):
		return path.Err.Error()
	case errors.As(err, &link):
		return link.Err.Error()
	case errors.As(err, &call):
		return call.Err.Error()
	}
	return err.Error()
}
