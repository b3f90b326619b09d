package tenants

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/engine/wal"
	"fenec/internal/http1"
	"fenec/internal/vfs"
)

const (
	fileSuffix = ".fenec"
	holdSuffix = ".frozen"
	probeName  = ".fenec-probe" // of the file that tests whether the directory can be written
)

// openDirectory locks the directory and removes what an interrupted operation left in it.
func (s *Set) openDirectory(dir string) error {
	s.dir = dir
	readOnly := s.config.Engine.ReadOnly
	if !readOnly {
		if err := s.fs.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("cannot create the directory %s: %s", dir, vfs.Reason(err))
		}
	}
	info, err := s.fs.Stat(dir)
	if err != nil {
		return fmt.Errorf("cannot read the directory %s: %s", dir, vfs.Reason(err))
	}
	if !info.Dir {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if s.lock, err = engine.LockDir(s.fs, dir); s.mustLock(err) {
		return s.errUnwritable(err)
	}
	if readOnly {
		return nil
	}
	if err = s.probe(); err == nil {
		err = s.clearLeftovers()
	}
	if err != nil {
		err = errors.Join(err, s.unlock())
	}
	return err
}

// mustLock reports whether the Set must not start without the lock. One that only reads runs without it if the lock file
// cannot be created: then no process can write there, and neither does the Set.
func (s *Set) mustLock(err error) bool {
	return err != nil && (!s.config.Engine.ReadOnly || fail.KindOf(err) == fail.Conflict)
}

func (s *Set) unlock() error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Close()
}

// probe tests whether files can be created in the directory, so that a Set that cannot store anything fails at its start
// and not at the first write.
func (s *Set) probe() error {
	name := filepath.Join(s.dir, probeName)
	f, err := openForWriting(s.fs, name)
	if err == nil {
		err = errors.Join(f.Close(), s.fs.Remove(name))
	}
	if err != nil {
		return s.errUnwritable(err)
	}
	return nil
}

func (s *Set) errUnwritable(err error) error {
	if fail.KindOf(err) == fail.Conflict {
		return fmt.Errorf("cannot serve %s: %w", s.dir, err)
	}
	return fmt.Errorf("cannot write in the directory %s: %s; --http-read-only serves it without", s.dir, vfs.Reason(err))
}

// openFile opens or creates the one database of a Set over a file.
func (s *Set) openFile(file string) error {
	s.dir = filepath.Dir(file)
	var err error
	if s.lock, err = engine.LockFile(s.fs, file); s.mustLock(err) {
		return fmt.Errorf("cannot lock %s: %s", file, vfs.Reason(err))
	}
	o, changes := s.engineOptions("")
	db, err := s.openOrCreate(file, o)
	if err != nil {
		hint := ""
		if fail.KindOf(err) == fail.Damaged {
			hint = "; `fenec check` reports what can be saved"
		}
		return errors.Join(fmt.Errorf("cannot open %s: %s%s", file, vfs.Reason(err), hint), s.unlock())
	}
	s.single = s.newTenant("", db, changes)
	s.compactIfDue(s.single)
	return nil
}

func (s *Set) openOrCreate(path string, o engine.Options) (*engine.DB, error) {
	_, err := s.fs.Stat(path)
	if errors.Is(err, os.ErrNotExist) && !o.ReadOnly {
		return engine.Create(path, o)
	}
	return engine.Open(path, o)
}

// leftovers are the suffixes of files that an interrupted operation leaves: a hold, a database and an image that were being
// written.
var leftovers = []string{
	holdSuffix + wal.SideSuffix, followsSuffix + wal.SideSuffix, fileSuffix + wal.SideSuffix, fileSuffix + ".incoming",
}

// clearLeftovers removes the files that an interrupted operation left, and holds and roles without a tenant.
func (s *Set) clearLeftovers() error {
	files, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return storageError("the directory cannot be read", err)
	}
	for _, file := range files {
		if !s.isLeftover(file) {
			continue
		}
		if err := s.fs.Remove(filepath.Join(s.dir, file)); err != nil {
			return storageError("a leftover file cannot be removed", err)
		}
	}
	return nil
}

func (s *Set) isLeftover(file string) bool {
	for _, end := range []string{holdSuffix, followsSuffix} {
		if name, ok := strings.CutSuffix(file, end); ok && http1.ValidTenant(name) {
			found, err := s.exists(name)
			return err == nil && !found
		}
	}
	if side, ok := strings.CutSuffix(file, wal.SideSuffix); ok {
		if _, _, _, ok := forkedFile(side); ok {
			return true
		}
	}
	for _, end := range leftovers {
		if name, ok := strings.CutSuffix(file, end); ok && http1.ValidTenant(name) {
			return true
		}
	}
	return false
}

func (s *Set) path(name string) string { return filepath.Join(s.dir, name+fileSuffix) }

// tenantOf returns the tenant that a file of the directory belongs to. ok is false for other files.
func tenantOf(file string) (name string, ok bool) {
	name, ok = strings.CutSuffix(file, fileSuffix)
	return name, ok && http1.ValidTenant(name)
}

// Names returns the tenants on disk, damaged ones included, sorted.
func (s *Set) Names() ([]string, error) {
	files, err := s.readDir()
	if err != nil {
		return nil, err
	}
	names := files[:0]
	for _, file := range files {
		if name, ok := tenantOf(file); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Disk returns how many tenants there are on disk, and how many bytes the files of the directory have.
func (s *Set) Disk() (tenants int, bytes int64, err error) {
	files, err := s.readDir()
	if err != nil {
		return 0, 0, err
	}
	for _, file := range files {
		if _, ok := tenantOf(file); ok {
			tenants++
		}
		if info, err := s.fs.Stat(filepath.Join(s.dir, file)); err == nil && !info.Dir {
			bytes += info.Size // a file that was deleted meanwhile takes no space
		}
	}
	return tenants, bytes, nil
}

func (s *Set) readDir() ([]string, error) {
	files, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return nil, storageError("the directory of the tenants cannot be read", err)
	}
	return files, nil
}

// exists reports whether there is a tenant of that name, damaged or not.
func (s *Set) exists(name string) (bool, error) {
	_, err := s.fs.Stat(s.path(name))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	}
	return false, fail.New(fail.Storage, "the directory of the tenants cannot be read: %s", vfs.Reason(err))
}

// CheckExists returns an error, an *Absent, if there is no tenant of that name.
func (s *Set) CheckExists(name string) error {
	found, err := s.exists(name)
	if err == nil && !found {
		err = &Absent{name}
	}
	return err
}

// openForWriting creates or truncates a file that only its owner may read.
func openForWriting(fs vfs.FS, name string) (vfs.File, error) {
	return fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
}

// storageError classifies a failed call of the file system.
func storageError(what string, err error) error {
	kind := fail.Storage
	if vfs.IsFull(err) {
		kind = fail.Full
	}
	return fail.New(kind, "%s: %s", what, vfs.Reason(err))
}

// classified returns an error of the file system with its kind; an error with a kind keeps it.
func classified(what string, err error) error {
	if fail.KindOf(err) != 0 {
		return err
	}
	return storageError(what, err)
}
