package main

import (
	"io"
	"math"
	"os"

	"fenec/internal/vfs"
)

// memoryFS is a file system whose files are the heap's: what SQLite's :memory: is to SQLite. It holds what the engine
// needs for one database that only grows.
type memoryFS map[string]*memoryFile

type memoryFile struct{ chunks [][]byte }

const chunkSize = 1 << 20

func (fs memoryFS) OpenFile(name string, flag int, _ os.FileMode) (vfs.File, error) {
	if fs[name] == nil || flag&os.O_TRUNC != 0 {
		if flag&os.O_CREATE == 0 {
			return nil, os.ErrNotExist
		}
		fs[name] = &memoryFile{}
	}
	return fs[name], nil
}

func (fs memoryFS) Rename(from, to string) error {
	fs[to] = fs[from]
	delete(fs, from)
	return nil
}

func (fs memoryFS) Remove(name string) error {
	delete(fs, name)
	return nil
}

func (fs memoryFS) Stat(name string) (vfs.Info, error) {
	f := fs[name]
	if f == nil {
		return vfs.Info{}, os.ErrNotExist
	}
	size, err := f.Size()
	return vfs.Info{Size: size}, err
}

func (fs memoryFS) ReadDir(string) ([]string, error)          { return nil, nil }
func (fs memoryFS) MkdirAll(string, os.FileMode) error        { return nil }
func (fs memoryFS) SyncDir(string) error                      { return nil }
func (fs memoryFS) Free(string) (int64, error)                { return math.MaxInt64, nil }
func (fs memoryFS) Lock(string) (io.Closer, error)            { return io.NopCloser(nil), nil }
func (f *memoryFile) Sync() error                             { return nil }
func (f *memoryFile) DropCache() error                        { return nil }
func (f *memoryFile) Close() error                            { return nil }
func (f *memoryFile) Truncate(int64) error                    { return nil }
func (f *memoryFile) ReadAt(p []byte, off int64) (int, error) { return 0, io.EOF }

func (f *memoryFile) Size() (int64, error) {
	n := 0
	for _, c := range f.chunks {
		n += len(c)
	}
	return int64(n), nil
}

// WriteAt appends: a log is written nowhere but at its end.
func (f *memoryFile) WriteAt(p []byte, _ int64) (int, error) {
	n := len(p)
	for len(p) > 0 {
		last := len(f.chunks) - 1
		if last < 0 || len(f.chunks[last]) == chunkSize {
			f.chunks = append(f.chunks, make([]byte, 0, chunkSize))
			last++
		}
		room := min(len(p), chunkSize-len(f.chunks[last]))
		f.chunks[last] = append(f.chunks[last], p[:room]...)
		p = p[room:]
	}
	return n, nil
}
