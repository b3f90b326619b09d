package vfs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"fenec/internal/vfs"
	"fenec/internal/vfs/crashfs"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// both runs a test on the real file system and on the in-memory one, each with an empty directory.
func both(t *testing.T, f func(t *testing.T, fs vfs.FS, dir string)) {
	t.Run("real", func(t *testing.T) { f(t, vfs.OS, t.TempDir()) })
	t.Run("memory", func(t *testing.T) {
		fs := crashfs.New(1)
		if err := fs.MkdirAll("/a/b", 0o700); err != nil {
			t.Fatal(err)
		}
		f(t, fs, "/a/b")
	})
}

func TestALockIsHeldByOneUntilItIsClosed(t *testing.T) {
	both(t, func(t *testing.T, fs vfs.FS, dir string) {
		for _, name := range []string{dir, filepath.Join(dir, "file")} {
			held, err := fs.Lock(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fs.Lock(name); !errors.Is(err, vfs.ErrLocked) {
				t.Fatalf("a second lock on %s returns %v", name, err)
			}
			if err := held.Close(); err != nil {
				t.Fatal(err)
			}
			again, err := fs.Lock(name)
			if err != nil {
				t.Fatalf("a released lock returns %v", err)
			}
			again.Close()
		}
		if _, err := fs.Lock(filepath.Join(dir, "none", "file")); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("a lock in an unknown directory returns %v", err)
		}
	})
}

func TestErrorsAreThoseOfPackageOS(t *testing.T) {
	both(t, func(t *testing.T, fs vfs.FS, dir string) {
		name := filepath.Join(dir, "x")
		_, statErr := fs.Stat(name)
		_, openErr := fs.OpenFile(name, os.O_RDWR, 0)
		_, noDirErr := fs.OpenFile(filepath.Join(name, "y"), os.O_RDWR|os.O_CREATE, 0o600)
		_, listErr := fs.ReadDir(name)
		for what, err := range map[string]error{
			"stat": statErr, "open": openErr, "open in no directory": noDirErr, "list": listErr,
			"remove": fs.Remove(name), "rename": fs.Rename(name, name+"2"), "sync": fs.SyncDir(name),
		} {
			if !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s of an unknown name returns %v", what, err)
			}
		}
		f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); !errors.Is(err, os.ErrExist) {
			t.Errorf("an exclusive creation of an existing file returns %v", err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("a sync of a closed file returns %v", err)
		}
		reader, err := fs.OpenFile(name, os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		if _, err := reader.WriteAt([]byte("x"), 0); err == nil {
			t.Error("a file open for reading is written")
		}
	})
}

func TestReasonsAndFullDisks(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
		full bool
	}{
		{&os.PathError{Op: "write", Path: "/secret/place", Err: syscall.ENOSPC}, "no space left on device", true},
		{&os.LinkError{Op: "rename", Old: "/secret/a", New: "/secret/b", Err: syscall.EDQUOT}, "disk quota exceeded", true},
		{os.NewSyscallError("fdatasync", syscall.EIO), "input/output error", false},
		{fmt.Errorf("written: %w", &os.PathError{Op: "write", Path: "/secret/place", Err: syscall.EIO}), "input/output error", false},
		{errors.New("something else"), "something else", false},
	} {
		if got := vfs.Reason(c.err); got != c.want {
			t.Errorf("%v has the reason %q, want %q", c.err, got, c.want)
		}
		if got := vfs.IsFull(c.err); got != c.full {
			t.Errorf("%v is full: %v", c.err, got)
		}
	}
}

func TestFreeSpaceIsThatOfTheFileSystem(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"the real one": vfs.OS, "the one in memory": crashfs.New(1)} {
		dir := "/"
		if fs == vfs.OS {
			dir = t.TempDir()
		}
		if free, err := fs.Free(dir); free <= 0 || err != nil {
			t.Errorf("%s: %s has %d bytes free, %v", name, dir, free, err)
		}
		if _, err := fs.Free(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: an unknown directory returns %v", name, err)
		}
	}
}

// TestTheMemoryFileSystemDoesWhatTheRealOneDoes makes the same calls on both and compares every result.
func TestTheMemoryFileSystemDoesWhatTheRealOneDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root, err := os.MkdirTemp("", "vfs")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(root)
		twins := [2]*twin{{fs: vfs.OS, dir: root}, {fs: crashfs.New(1), dir: "/"}}
		for _, w := range twins {
			w.files = map[string]vfs.File{}
			defer w.closeAll()
		}
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		size := rapid.Int64Range(0, 40)
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			call := rapid.IntRange(0, 7).Draw(t, "call")
			n, m, off, length := name.Draw(t, "name"), name.Draw(t, "other"), size.Draw(t, "offset"), size.Draw(t, "length")
			flag := rapid.SampledFrom([]int{0, os.O_CREATE, os.O_TRUNC, os.O_CREATE | os.O_EXCL}).Draw(t, "flag")
			real, memory := twins[0].do(call, n, m, flag, off, length), twins[1].do(call, n, m, flag, off, length)
			if real != memory {
				t.Fatalf("call %d on %s and %s, flag %d, offset %d, length %d: real %s, memory %s", call, n, m, flag, off, length, real, memory)
			}
		}
		real, memory := twins[0].listing(), twins[1].listing()
		if !slices.Equal(real, memory) {
			t.Fatalf("real holds %q, memory %q", real, memory)
		}
	})
}

type twin struct {
	fs    vfs.FS
	dir   string
	files map[string]vfs.File
}

func (w *twin) closeAll() {
	for _, f := range w.files {
		f.Close()
	}
}

// do makes one call and says what came of it.
func (w *twin) do(call int, name, other string, flag int, off, length int64) string {
	path, f := filepath.Join(w.dir, name), w.files[name]
	if f == nil && call > 3 {
		call = 0
	}
	outcome := func(err error) string {
		for _, known := range []error{os.ErrNotExist, os.ErrExist} {
			if errors.Is(err, known) {
				return known.Error()
			}
		}
		return fmt.Sprint(err == nil)
	}
	switch call {
	case 0:
		opened, err := w.fs.OpenFile(path, os.O_RDWR|flag, 0o600)
		if err == nil {
			if f != nil {
				f.Close()
			}
			w.files[name] = opened
		}
		return outcome(err)
	case 1:
		return outcome(w.fs.Rename(path, filepath.Join(w.dir, other)))
	case 2:
		return outcome(w.fs.Remove(path))
	case 3:
		info, err := w.fs.Stat(path)
		return fmt.Sprint(info, outcome(err))
	case 4:
		n, err := f.WriteAt(slices.Repeat([]byte{byte(off + length)}, int(length)), off)
		return fmt.Sprint(n, outcome(err))
	case 5:
		return outcome(f.Truncate(off))
	case 6:
		b := make([]byte, length)
		n, err := f.ReadAt(b, off)
		return fmt.Sprint(b, n, err)
	default:
		size, err := f.Size()
		return fmt.Sprint(size, outcome(err), outcome(f.Sync()))
	}
}

// listing is every file's name and content.
func (w *twin) listing() (all []string) {
	names, err := w.fs.ReadDir(w.dir)
	if err != nil {
		return []string{err.Error()}
	}
	for _, name := range names {
		f, err := w.fs.OpenFile(filepath.Join(w.dir, name), os.O_RDONLY, 0)
		if err != nil {
			return append(all, err.Error())
		}
		size, _ := f.Size()
		b := make([]byte, size)
		_, _ = f.ReadAt(b, 0)
		f.Close()
		all = append(all, fmt.Sprintf("%s %x", name, b))
	}
	return all
}
