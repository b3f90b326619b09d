package tenants

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/engine/wal"
	"fenec/internal/http1"
	"fenec/internal/vfs"
	"fenec/replication"

	"github.com/go-json-experiment/json"
)

// A copy whose primary died may have changes that the promoted copy never received. When it follows that one, an image replaces
// it; before that, its changes past the fork are written to a file beside it, one line each as change data capture sends them. If the
// lines are no longer kept, because a compact has folded them into the image of the file, the whole file is kept instead. Only
// DELETE, and the deletion of the tenant, remove these files.

const (
	forkedMark  = ".forked-"
	linesSuffix = ".ndjson"
)

// copyBuffer is how many bytes of a file are copied at a time.
const copyBuffer = 256 << 10

// keepForked writes what a copy has after a change that it shares with its primary to a file; ok is false if it shares none.
func (s *Set) keepForked(name string, common uint64, ok bool) error {
	t, err := s.Acquire(name)
	if err != nil {
		return err
	}
	defer s.Release(t)
	seq, history := t.DB.Position()
	if ok && seq <= common || seq == 0 {
		return nil
	}
	base := filepath.Join(s.dir, name+forkedMark+history)
	lines, err := uint64(0), error(nil)
	if ok && t.Feed.Check(common) == nil {
		lines, err = s.writeLines(t, base+linesSuffix, common)
	} else if err = s.writeCopy(t, base+fileSuffix); err == nil {
		lines = max(seq-common, 1)
	}
	if err != nil {
		return classified("the changes that the primary does not have cannot be kept", err)
	}
	if lines > 0 {
		s.metrics.forked.Add(int(lines))
		s.log.Warn().Str("tenant", name).Str("history", history).Uint64("after", common).Uint64("changes", lines).
			Msg("changes that the new primary never received are kept beside the tenant's file; see /_admin/tenants/<t>/forked")
	}
	return nil
}

// writeLines writes the lines of the changes after a change, and returns how many there are. Without one there is no file.
func (s *Set) writeLines(t *Tenant, path string, since uint64) (lines uint64, err error) {
	side := path + wal.SideSuffix
	f, err := openForWriting(s.fs, side)
	if err != nil {
		return 0, err
	}
	w := &fileWriter{file: f}
	lines, err = replication.WriteLines(w, t.Feed, since)
	return lines, s.finishSide(f, side, path, err, lines > 0)
}

// writeCopy writes a copy of the tenant's whole file.
func (s *Set) writeCopy(t *Tenant, path string) error {
	image, size, _, err := t.DB.OpenImage()
	if err != nil {
		return err
	}
	defer image.Close()
	side := path + wal.SideSuffix
	f, err := openForWriting(s.fs, side)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(&fileWriter{file: f}, io.LimitReader(image, size-engine.ImageTrailer), make([]byte, copyBuffer))
	return s.finishSide(f, side, path, err, true)
}

// finishSide makes a side file durable under its name, or removes it after an error or if it is not to be kept.
func (s *Set) finishSide(f vfs.File, side, path string, err error, keep bool) error {
	if err == nil && keep {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil && keep {
		if err = s.fs.Rename(side, path); err == nil {
			return s.fs.SyncDir(s.dir)
		}
	}
	s.fs.Remove(side) // if that fails, opening the directory removes it
	return err
}

// fileWriter writes to a file from its start on.
type fileWriter struct {
	file vfs.File
	at   int64
}

func (w *fileWriter) Write(p []byte) (int, error) {
	n, err := w.file.WriteAt(p, w.at)
	w.at += int64(n)
	return n, err
}

// Forked is a branch of a tenant that its primary does not have, kept in a file.
type Forked struct {
	History string
	From    uint64 // the first change past the fork; 0 if it is not known, because the file is a whole copy
	To      uint64 // the last change, likewise
	Changes uint64
	Bytes   int64
	Whole   bool // the file is a whole copy of the tenant's, and not lines

	path string
}

// forkedFile splits the name of a file that holds a branch. ok is false for other files.
func forkedFile(file string) (tenant, history string, whole, ok bool) {
	tenant, rest, ok := strings.Cut(file, forkedMark)
	if !ok || !http1.ValidTenant(tenant) {
		return "", "", false, false
	}
	history, lines := strings.CutSuffix(rest, linesSuffix)
	if !lines {
		history, whole = strings.CutSuffix(rest, fileSuffix)
	}
	return tenant, history, whole, lines || whole
}

// Forked returns the branches of a tenant that are kept, by history.
func (s *Set) Forked(name string) ([]Forked, error) {
	if err := s.CheckExists(name); err != nil {
		return nil, err
	}
	files, err := s.readDir()
	if err != nil {
		return nil, err
	}
	var out []Forked
	for _, file := range files {
		tenant, history, whole, ok := forkedFile(file)
		if !ok || tenant != name {
			continue
		}
		f := Forked{History: history, Whole: whole, path: filepath.Join(s.dir, file)}
		if err := s.describe(&f); err != nil {
			return nil, classified("a kept branch cannot be read", err)
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Forked) int { return strings.Compare(a.History, b.History) })
	return out, nil
}

// describe reads how many changes a branch has.
func (s *Set) describe(f *Forked) error {
	r, err := s.openBranch(f.path)
	if err != nil {
		return err
	}
	defer r.Close()
	if f.Bytes = r.size; f.Whole {
		return nil
	}
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var change struct {
			Seq uint64 `json:"seq"`
		}
		// The rest of a line is not looked at.
		if err := json.UnmarshalRead(bytes.NewReader(line), &change); err != nil {
			return err
		}
		if f.Changes++; f.From == 0 {
			f.From = change.Seq
		}
		f.To = change.Seq
	}
}

// Branch is the content of a kept branch. Its reader closes it.
type Branch struct {
	io.Reader
	io.Closer
	size int64
}

// Size returns how many bytes it has.
func (b *Branch) Size() int64 { return b.size }

func (s *Set) openBranch(path string) (*Branch, error) {
	f, err := s.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Branch{io.NewSectionReader(f, 0, size), f, size}, nil
}

// OpenForked returns the content of one kept branch.
func (s *Set) OpenForked(name, history string) (*Branch, *Forked, error) {
	f, err := s.findForked(name, history)
	if err != nil {
		return nil, nil, err
	}
	b, err := s.openBranch(f.path)
	if err != nil {
		return nil, nil, classified("a kept branch cannot be read", err)
	}
	return b, f, nil
}

func (s *Set) findForked(name, history string) (*Forked, error) {
	all, err := s.Forked(name)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].History == history {
			return &all[i], nil
		}
	}
	return nil, fail.New(fail.NotFound, "no branch of history %s of tenant %s is kept", history, name)
}

// DeleteForked removes a kept branch.
func (s *Set) DeleteForked(name, history string) error {
	if err := s.CheckWritable(); err != nil {
		return err
	}
	f, err := s.findForked(name, history)
	if err != nil {
		return err
	}
	if err = s.fs.Remove(f.path); err == nil || errors.Is(err, os.ErrNotExist) {
		err = s.fs.SyncDir(s.dir)
	}
	if err != nil {
		return storageError("a kept branch cannot be removed", err)
	}
	return nil
}

// removeForked removes all kept branches of a tenant that is deleted.
func (s *Set) removeForked(name string) error {
	files, err := s.readDir()
	if err != nil {
		return err
	}
	for _, file := range files {
		if tenant, _, _, ok := forkedFile(file); ok && tenant == name {
			if err := s.fs.Remove(filepath.Join(s.dir, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return storageError("a kept branch cannot be removed", err)
			}
		}
	}
	return nil
}
