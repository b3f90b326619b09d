package wal

import (
	"errors"
	"os"

	"fenec/internal/vfs"
)

// side is a file being filled under its side name. Writes are buffered; the header is written last, when the length is
// known.
type side struct {
	fs     vfs.FS
	name   string
	file   vfs.File
	salt   uint32
	buffer []byte
	offset int64 // of the next record
}

func newSide(path string, o Options) (*side, error) {
	salt, err := newSalt(o.Rand)
	if err != nil {
		return nil, err
	}
	s := &side{fs: o.FS, name: path + SideSuffix, salt: salt}
	if s.file, err = o.FS.OpenFile(s.name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, filePerm); err != nil {
		return nil, storageError("created", err)
	}
	s.buffer = fileHeader{salt: salt}.encode()
	s.offset = fileHeaderSize
	return s, nil
}

// append adds a record and fills its header.
func (s *side) append(kind Kind, rec []byte) error {
	if n := len(rec) - HeaderSize; n < 0 || n > MaxPayload || !kind.staged() {
		panic("wal: appended an invalid record")
	}
	seal(rec, kind, checksum(rec[HeaderSize:]), s.salt, s.offset, unknown)
	if len(s.buffer)+len(rec) > gatherSize {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.offset += int64(len(rec))
	if len(rec) <= gatherSize {
		s.buffer = append(s.buffer, rec...)
		return nil
	}
	if _, err := s.file.WriteAt(rec, s.offset-int64(len(rec))); err != nil {
		return storageError("written", err)
	}
	return nil
}

func (s *side) flush() error {
	if len(s.buffer) == 0 {
		return nil
	}
	if _, err := s.file.WriteAt(s.buffer, s.offset-int64(len(s.buffer))); err != nil {
		return storageError("written", err)
	}
	s.buffer = s.buffer[:0]
	return nil
}

// sync makes what was appended so far durable.
func (s *side) sync() error {
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return storageError("synced", err)
	}
	return nil
}

// finish writes the header and syncs the whole file.
func (s *side) finish() error {
	if err := s.flush(); err != nil {
		return err
	}
	if _, err := s.file.WriteAt(fileHeader{base: s.offset, salt: s.salt}.encode(), 0); err != nil {
		return storageError("written", err)
	}
	return s.sync()
}

// rename gives the file its final name. The rename is durable once the directory is synced.
func (s *side) rename(path string) error {
	if err := s.fs.Rename(s.name, path); err != nil {
		return storageError("renamed", err)
	}
	return nil
}

// remove closes and deletes the file.
func (s *side) remove() error {
	err := errors.Join(s.file.Close(), s.fs.Remove(s.name))
	if err != nil {
		return storageError("removed", err)
	}
	return nil
}
