// Package crashfs is an in-memory file system for tests that fails and loses power at chosen operations.
//
// Besides the current state it keeps the state on disk: of a file what Sync covered, of a directory the names SyncDir
// covered. Crash returns the file system as power loss would leave it: what is on disk, and a prefix of everything newer,
// file by file and directory by directory. Directories themselves are durable once created.
//
// Every change counts as one operation: creating or emptying a file, a write, a truncation, a sync, a rename, a removal,
// a directory sync. Operations are numbered from 1, and any of them can be made to fail. Without faults it is a plain
// in-memory file system. It is safe for concurrent use and starts no goroutine.
package crashfs

import (
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"fenec/internal/vfs"
)

// FS is an in-memory file system. It starts with the directory "/", and relative names are in it.
type FS struct {
	faults faults

	mu     sync.RWMutex
	random *rand.Rand
	dirs   map[string]*dir
	locked map[string]bool
	space  int64 // bytes that files may still grow by; negative for no limit
	open   int
}

// dir is a directory: its current names, those on disk, and the changes between the two.
type dir struct {
	names    map[string]*inode
	durable  map[string]*inode
	unsynced []func(names map[string]*inode)
}

// change applies a change of names. It is on disk after the next SyncDir.
func (d *dir) change(c func(names map[string]*inode)) {
	c(d.names)
	d.unsynced = append(d.unsynced, c)
}

// New returns an empty file system. The seed decides what a crash keeps and how much of a failed write is applied.
func New(seed uint64) *FS {
	return &FS{
		random: rand.New(rand.NewPCG(seed, 0)),
		dirs:   map[string]*dir{"/": newDir()},
		locked: map[string]bool{},
		space:  -1,
	}
}

func newDir() *dir {
	return &dir{names: map[string]*inode{}, durable: map[string]*inode{}}
}

// split cleans a name and splits it into directory and base.
func split(name string) (dir, base string) {
	clean := filepath.Join("/", name)
	return filepath.Dir(clean), filepath.Base(clean)
}

func pathError(op, name string, err error) error {
	return &os.PathError{Op: op, Path: name, Err: err}
}

// lookupLocked returns the directory and the inode of a file, nil for each that does not exist.
func (fs *FS) lookupLocked(name string) (d *dir, base string, n *inode) {
	parent, base := split(name)
	if d = fs.dirs[parent]; d != nil {
		n = d.names[base]
	}
	return d, base, n
}

// OpenFile opens a file like os.OpenFile. Creating or emptying one is an operation.
func (fs *FS) OpenFile(name string, flag int, _ os.FileMode) (vfs.File, error) {
	fs.mu.RLock()
	d, _, n := fs.lookupLocked(name)
	isDir := fs.dirs[filepath.Join("/", name)] != nil
	fs.mu.RUnlock()
	creates := n == nil && flag&os.O_CREATE != 0
	switch {
	case isDir && flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE) != 0:
		return nil, pathError("open", name, syscall.EISDIR)
	case d == nil, n == nil && !creates:
		return nil, pathError("open", name, os.ErrNotExist)
	case n != nil && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, pathError("open", name, os.ErrExist)
	}
	if creates || flag&os.O_TRUNC != 0 {
		if err := fs.faults.check(Create, name); err != nil {
			return nil, pathError("open", name, err)
		}
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	d, base, n := fs.lookupLocked(name)
	if n == nil {
		n = &inode{fs: fs}
		d.change(func(names map[string]*inode) { names[base] = n })
	} else if flag&os.O_TRUNC != 0 {
		n.truncateLocked(0)
	}
	fs.open++
	return &file{inode: n, name: name, writable: flag&(os.O_WRONLY|os.O_RDWR) != 0}, nil
}

// Rename moves a file. Within one directory a crash leaves it under exactly one of the two names.
func (fs *FS) Rename(old, new string) error {
	if err := fs.faults.check(Rename, new); err != nil {
		return &os.LinkError{Op: "rename", Old: old, New: new, Err: err}
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	from, oldBase, n := fs.lookupLocked(old)
	to, newBase, replaced := fs.lookupLocked(new)
	if n == nil || to == nil {
		return &os.LinkError{Op: "rename", Old: old, New: new, Err: os.ErrNotExist}
	}
	if replaced != nil && replaced != n {
		fs.freeLocked(int64(len(replaced.data)))
	}
	if from == to {
		from.change(func(names map[string]*inode) {
			delete(names, oldBase)
			names[newBase] = n
		})
		return nil
	}
	to.change(func(names map[string]*inode) { names[newBase] = n })
	from.change(func(names map[string]*inode) { delete(names, oldBase) })
	return nil
}

// Remove removes a file or an empty directory.
func (fs *FS) Remove(name string) error {
	fs.mu.RLock()
	_, _, n := fs.lookupLocked(name)
	d := fs.dirs[filepath.Join("/", name)]
	fs.mu.RUnlock()
	if n == nil && d == nil {
		return pathError("remove", name, os.ErrNotExist)
	}
	if err := fs.faults.check(Remove, name); err != nil {
		return pathError("remove", name, err)
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if d != nil {
		if len(d.names) > 0 {
			return pathError("remove", name, syscall.ENOTEMPTY)
		}
		delete(fs.dirs, filepath.Join("/", name))
		return nil
	}
	parent, base, n := fs.lookupLocked(name)
	if n == nil {
		return pathError("remove", name, os.ErrNotExist)
	}
	fs.freeLocked(int64(len(n.data)))
	parent.change(func(names map[string]*inode) { delete(names, base) })
	return nil
}

// ReadDir returns the names in a directory, sorted.
func (fs *FS) ReadDir(name string) ([]string, error) {
	fs.mu.RLock()
	defer fs.mu.RUnlock()
	path := filepath.Join("/", name)
	d := fs.dirs[path]
	if d == nil {
		return nil, pathError("open", name, os.ErrNotExist)
	}
	names := slices.Collect(maps.Keys(d.names))
	for other := range fs.dirs {
		if other != "/" && filepath.Dir(other) == path {
			names = append(names, filepath.Base(other))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Stat returns the Info of a file or directory.
func (fs *FS) Stat(name string) (vfs.Info, error) {
	fs.mu.RLock()
	defer fs.mu.RUnlock()
	if fs.dirs[filepath.Join("/", name)] != nil {
		return vfs.Info{Dir: true}, nil
	}
	_, _, n := fs.lookupLocked(name)
	if n == nil {
		return vfs.Info{}, pathError("stat", name, os.ErrNotExist)
	}
	return vfs.Info{Size: int64(len(n.data))}, nil
}

// MkdirAll creates a directory and its parents. They are durable at once.
func (fs *FS) MkdirAll(name string, _ os.FileMode) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for path := filepath.Join("/", name); fs.dirs[path] == nil; path = filepath.Dir(path) {
		if _, _, n := fs.lookupLocked(path); n != nil {
			return pathError("mkdir", name, syscall.ENOTDIR)
		}
		fs.dirs[path] = newDir()
	}
	return nil
}

// SyncDir makes the names in a directory durable.
func (fs *FS) SyncDir(name string) error {
	if err := fs.faults.check(SyncDir, name); err != nil {
		return pathError("sync", name, err)
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	d := fs.dirs[filepath.Join("/", name)]
	if d == nil {
		return pathError("open", name, os.ErrNotExist)
	}
	d.durable = maps.Clone(d.names)
	d.unsynced = nil
	return nil
}

// Free returns the space left by SetSpace, or the maximum if there is no limit.
func (fs *FS) Free(name string) (int64, error) {
	fs.mu.RLock()
	defer fs.mu.RUnlock()
	switch {
	case fs.dirs[filepath.Join("/", name)] == nil:
		return 0, pathError("statfs", name, os.ErrNotExist)
	case fs.space < 0:
		return math.MaxInt64, nil
	}
	return fs.space, nil
}

// Lock takes the exclusive lock on a name, or returns vfs.ErrLocked.
func (fs *FS) Lock(name string) (io.Closer, error) {
	fs.mu.RLock()
	d, _, n := fs.lookupLocked(name)
	exists := n != nil || fs.dirs[filepath.Join("/", name)] != nil
	fs.mu.RUnlock()
	if !exists {
		if d == nil {
			return nil, pathError("open", name, os.ErrNotExist)
		}
		f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		f.Close()
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	path := filepath.Join("/", name)
	if fs.locked[path] {
		return nil, vfs.ErrLocked
	}
	fs.locked[path] = true
	return &lock{fs: fs, path: path}, nil
}

type lock struct {
	fs   *FS
	path string
	once sync.Once
}

func (l *lock) Close() error {
	l.once.Do(func() {
		l.fs.mu.Lock()
		defer l.fs.mu.Unlock()
		delete(l.fs.locked, l.path)
	})
	return nil
}

// OpenFiles returns the number of open files.
func (fs *FS) OpenFiles() int {
	fs.mu.RLock()
	defer fs.mu.RUnlock()
	return fs.open
}
