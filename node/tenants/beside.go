package tenants

import (
	"errors"
	"io"
	"os"

	"fenec/engine/wal"
)

// readBeside returns the content of a small file, at most limit bytes of it; nil if there is no such file.
func (s *Set) readBeside(path string, limit int64) ([]byte, error) {
	f, err := s.fs.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	text := make([]byte, min(size, limit))
	if _, err := f.ReadAt(text, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return text, nil
}

// storeBeside replaces a small file: a side file, synced, renamed, and the directory synced. If it fails, renamed reports whether the
// new content may be on disk all the same.
func (s *Set) storeBeside(path string, text []byte) (renamed bool, err error) {
	side := path + wal.SideSuffix
	if err = s.writeSide(side, text); err == nil {
		if err = s.fs.Rename(side, path); err == nil {
			return true, s.fs.SyncDir(s.dir)
		}
	}
	s.fs.Remove(side) // it may not exist
	return false, err
}

// writeSide writes the text to a file and syncs it.
func (s *Set) writeSide(path string, text []byte) error {
	f, err := openForWriting(s.fs, path)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(text, 0); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
