package engine

import (
	"errors"
	"io"
	"path/filepath"

	"fenec/engine/fail"
	"fenec/internal/vfs"
)

// lockName is the file in a directory of databases that the process which opens them holds a lock on.
const lockName = ".lock"

// LockDir makes this process the only one that opens the databases of dir, until the Closer is closed.
func LockDir(fs vfs.FS, dir string) (io.Closer, error) {
	return lock(fs, filepath.Join(dir, lockName), "the directory")
}

// LockFile is LockDir for a single database, with a lock file next to it.
func LockFile(fs vfs.FS, path string) (io.Closer, error) {
	return lock(fs, path+lockName, "the file")
}

func lock(fs vfs.FS, name, what string) (io.Closer, error) {
	l, err := fs.Lock(name)
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fail.New(fail.Conflict, "%s is in use by another process", what)
	}
	return l, err
}
