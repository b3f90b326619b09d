// Package vfs is the seam between fenec and the file system: the few calls the product makes, as interfaces, so that
// tests can run it over a file system that fails and loses power at any of them (package crashfs).
//
// OS is the real one. Everything here is safe for concurrent use; nothing starts a goroutine.
package vfs

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// ErrLocked is what Lock answers where another holder, in this process or another, has the lock.
var ErrLocked = errors.New("already locked by another process")

// FS is a file system. Names are paths as package os takes them; errors answer to errors.Is with os.ErrNotExist,
// os.ErrExist and os.ErrPermission.
type FS interface {
	// OpenFile opens name as os.OpenFile does. os.O_APPEND is not supported: writes carry their offset.
	OpenFile(name string, flag int, perm os.FileMode) (File, error)
	// Rename moves old to new, replacing new. It is durable once SyncDir has covered the directory.
	Rename(old, new string) error
	Remove(name string) error
	// ReadDir lists the base names in a directory, sorted.
	ReadDir(name string) ([]string, error)
	Stat(name string) (Info, error)
	// MkdirAll creates a directory and its missing parents.
	MkdirAll(name string, perm os.FileMode) error
	// SyncDir makes the names in a directory durable: what was created, renamed and removed in it.
	SyncDir(name string) error
	// Free is how many bytes this process may still write to the file system that holds the directory name. Another process
	// may take them first, and a quota may end sooner.
	Free(name string) (int64, error)
	// Lock takes the advisory exclusive lock on a file or directory, or answers ErrLocked at once. A name that does
	// not exist is created as an empty file. The lock ends with Close, and with the process.
	Lock(name string) (io.Closer, error)
}

// Info describes a file or directory.
type Info struct {
	Size int64 // bytes; of a directory, nothing in particular
	Dir  bool
}

// File is an open file, read and written at offsets.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes the file's bytes and size durable. Times and modes may lag, so that it costs an fdatasync where there
	// is one. After it has failed, what reached the disk is unknown, and a later success says nothing about it.
	Sync() error
	// DropCache has what the system holds of the file and takes for written read from the device again. After a failed
	// Sync that is the way to find out what is there, and to write it again: ext4 keeps with a page which blocks it lies
	// in, so that one it could not write before is written there and yet reads as zeros. It is a hint to the system.
	DropCache() error
	Truncate(size int64) error
	// Size is the length in bytes.
	Size() (int64, error)
}

// IsFull reports whether err says that the disk, or the quota on it, is used up.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Reason is the cause of a file system's error as a person reads it, without the path that package os adds: paths of
// the server are nothing its clients should see.
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
