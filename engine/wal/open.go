package wal

import (
	"errors"
	"os"
	"path/filepath"

	"fenec/engine/fail"
	"fenec/internal/vfs"
)

// SideSuffix is appended to a file's name while the file is being filled.
const SideSuffix = ".new"

const filePerm = 0o600

// Create makes a new file with the records and opens it. The file is on disk under its name when Create returns. Create
// fails with os.ErrExist if the name is taken.
func Create(path string, o Options, records ...Record) (*Log, error) {
	o = o.withDefaults()
	switch _, err := o.FS.Stat(path); {
	case err == nil:
		return nil, os.ErrExist
	case !errors.Is(err, os.ErrNotExist):
		return nil, storageError("created", err)
	}
	s, err := newSide(path, o)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if err := s.append(r.Kind, r.Data); err != nil {
			s.remove()
			return nil, err
		}
	}
	if err := s.finish(); err != nil {
		s.remove()
		return nil, err
	}
	if err := s.rename(path); err != nil {
		s.remove()
		return nil, err
	}
	if err := o.FS.SyncDir(filepath.Dir(path)); err != nil {
		s.file.Close()
		_ = o.FS.Remove(path)
		return nil, storageError("created", err)
	}
	return newLog(path, o, s.file, s.salt, s.offset), nil
}

// Open opens a file and replays it: replay is called for each record in order with its kind and its payload, which is
// data[from:to]. data is the whole file, the same slice each time, and replay may keep it.
//
// What a crash or a failed sync kept from the disk at the end of the file is cut off, with a line in the log. A derived
// record whose payload is damaged is skipped, with a line in the log. Open fails with fail.Damaged and the offset for
// other damage before the end and for an unknown header or kind. An error of replay without a kind becomes fail.Damaged
// too. The file is then left as it is. A file that a crash left half filled under its side name is removed.
//
// In a file that was not closed in order, what is not known to be on disk is written again and synced. If that fails,
// the log opens as failed, for reading only.
func Open(path string, o Options, replay func(kind Kind, data []byte, from, to int) error) (*Log, error) {
	o = o.withDefaults()
	flag := os.O_RDWR
	if o.ReadOnly {
		flag = os.O_RDONLY
	}
	f, err := o.FS.OpenFile(path, flag, filePerm)
	if err != nil {
		return nil, storageError("opened", err)
	}
	l, err := open(path, o, f, replay)
	if err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

func open(path string, o Options, f vfs.File, replay func(kind Kind, data []byte, from, to int) error) (*Log, error) {
	if !o.ReadOnly {
		if err := o.FS.Remove(path + SideSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, storageError("opened", err)
		}
	}
	data, err := readAll(f)
	if err != nil {
		return nil, storageError("read", err)
	}
	h, err := parseFileHeader(data)
	if err != nil {
		return nil, err
	}
	r, err := replayAll(data, h, replay, func(damage error) {
		o.Log.Warn().Err(damage).Msg("a derived record is damaged: it is skipped, and rebuilt when it is needed")
	})
	if err != nil {
		return nil, err
	}
	if torn := int64(len(data)) - r.end; torn > 0 {
		o.Log.Warn().Int64("offset", r.end).Int64("bytes", torn).
			Msg("the file ends in records that did not all reach the disk: they are cut off")
		if !o.ReadOnly {
			if err := f.Truncate(r.end); err != nil {
				return nil, storageError("cut", err)
			}
		}
	}
	l := newLog(path, o, f, h.salt, r.end)
	l.marked, l.closed = r.marked, r.marked
	l.synced.offset = r.synced
	if !o.ReadOnly && !r.marked {
		if err := l.repair(data[:r.end]); err != nil {
			l.failLocked(err)
		}
	}
	return l, nil
}

// extent is how far the records of a file reach.
type extent struct {
	end    int64 // of the last record
	synced int64 // the file was on disk at least up to here
	marked bool  // the last record is a mark
}

// replayAll calls replay for every record of data, up to the end of data or to the first record that did not all reach
// the disk. It calls skipped for each damaged record that can be skipped.
func replayAll(data []byte, fh fileHeader, replay func(kind Kind, data []byte, from, to int) error, skipped func(damage error)) (extent, error) {
	f := extent{end: fileHeaderSize, synced: fh.base}
	for f.end < int64(len(data)) {
		off := f.end
		h, whole, ok := recordAt(data, fh.salt, off)
		if !ok {
			err := classifyDamage(data, fh, off, whole)
			if err == nil || !whole || !h.skippable(off, len(data)) {
				f.marked = false
				return f, err
			}
			skipped(err)
			f.end, f.marked = h.end(off), false
			continue
		}
		if err := checkKind(h, off); err != nil {
			return f, err
		}
		f.synced = max(f.synced, h.synced(off))
		f.end, f.marked = h.end(off), h.kind == mark
		if f.marked {
			continue
		}
		if err := replay(h.kind, data, int(off)+HeaderSize, int(f.end)); err != nil {
			return f, unreadable(off, err)
		}
	}
	return f, nil
}

// checkKind fails if this version does not know the record's kind.
func checkKind(h header, off int64) error {
	if !h.kind.known() {
		return fail.New(fail.Damaged, "the record at offset %d is of kind %d, which this version of fenec does not know", off, h.kind)
	}
	return nil
}

// unreadable wraps the error that replay returned for the record at off.
func unreadable(off int64, err error) error {
	kind := fail.KindOf(err)
	if kind == 0 {
		kind = fail.Damaged
	}
	return fail.New(kind, "the record at offset %d cannot be read: %w", off, err)
}

// readAll reads a file into one slice of its exact size.
func readAll(f vfs.File) ([]byte, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil, err
	}
	return data, nil
}
