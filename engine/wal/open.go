package wal

import (
	"errors"
	"os"
	"path/filepath"

	"fenec/engine/fail"
	"fenec/internal/vfs"
)

// SideSuffix is what the name of a file being filled has behind the name it is to get.
const SideSuffix = ".new"

const filePerm = 0o600

// Create makes a new file with the records, on disk under its name when it returns, and opens it. It is os.ErrExist
// where the name is taken.
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
// A record that a crash cut short, at the end of the file with no whole one behind it, is cut off, and the log is told.
// A derived record that is damaged in its payload is passed over, and the log is told too. fail.Damaged is a file that
// cannot be read otherwise and names the offset: other damage before the end, a header or a kind that is not known.
// What replay answers comes back as fail.Damaged too unless it is classified. The file is then left as it is. A file
// left half filled under its side name by a crash is removed.
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
	end, err := replayAll(data, h, replay, func(damage error) {
		o.Log.Warn().Err(damage).Msg("what was derived is damaged: it is passed over, and made again when it is needed")
	})
	if err != nil {
		return nil, err
	}
	if torn := int64(len(data)) - end; torn > 0 {
		o.Log.Warn().Int64("offset", end).Int64("bytes", torn).
			Msg("the file ends in a record that a crash cut short: it is cut off")
		if !o.ReadOnly {
			// No sync: should a crash take the cut back, the tail is as torn as before, whatever was written over it.
			if err := f.Truncate(end); err != nil {
				return nil, storageError("cut", err)
			}
		}
	}
	l := newLog(path, o, f, h.salt, end)
	l.inherited = true
	return l, nil
}

// replayAll hands every record of data to replay and answers where they end: at the end of data, or where a torn tail
// begins. Those that are damaged and can be spared it hands to spared.
func replayAll(data []byte, fh fileHeader, replay func(kind Kind, data []byte, from, to int) error, spared func(damage error)) (int64, error) {
	off := int64(fileHeaderSize)
	for off < int64(len(data)) {
		h, whole, ok := recordAt(data, fh.salt, off)
		if !ok {
			err := judgeDamage(data, fh, off, whole)
			if err == nil || !whole || !h.sparable(off, len(data)) {
				return off, err
			}
			spared(err)
			off = h.end(off)
			continue
		}
		if err := checkKind(h, off); err != nil {
			return off, err
		}
		if err := replay(Kind(h.kind), data, int(off)+HeaderSize, int(h.end(off))); err != nil {
			return off, unreadable(off, err)
		}
		off = h.end(off)
	}
	return off, nil
}

// checkKind refuses a record of a kind that this version does not know.
func checkKind(h header, off int64) error {
	if h.kind > 0xff || !Kind(h.kind).known() {
		return fail.New(fail.Damaged, "the record at offset %d is of kind %d, which this fenec does not know", off, h.kind)
	}
	return nil
}

// unreadable is what replay said of the record at off.
func unreadable(off int64, err error) error {
	kind := fail.KindOf(err)
	if kind == 0 {
		kind = fail.Damaged
	}
	return fail.New(kind, "the record at offset %d cannot be read: %w", off, err)
}

// judgeDamage tells a torn tail, which is nil, from corruption: nothing of a write cut short by a crash was followed by
// another, nor synced before the file had its name.
func judgeDamage(data []byte, fh fileHeader, off int64, headerWhole bool) error {
	part := "header"
	if headerWhole {
		part = "payload"
	}
	if off < fh.base {
		return fail.New(fail.Damaged, "the record at offset %d is damaged in its %s, within the image the file began with", off, part)
	}
	if next := nextRecord(data, fh.salt, off+1); next >= 0 {
		return fail.New(fail.Damaged, "the record at offset %d is damaged in its %s: whole records follow from offset %d", off, part, next)
	}
	return nil
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
