package crashfs

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"fenec/internal/vfs"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func put(t *testing.T, fs *FS, name, content string, sync bool) vfs.File {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(content), 0); err != nil {
		t.Fatal(err)
	}
	if sync {
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// content returns the content of a file, "none" if it does not exist.
func content(t *testing.T, fs *FS, name string) string {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_RDONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return "none"
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func nothing(int) int { return 0 }
func all(n int) int   { return n }

func TestACrashKeepsWhatWasSynced(t *testing.T) {
	for _, c := range []struct {
		name    string
		do      func(fs *FS)
		nothing string // content of file x if nothing unsynced survives
		all     string // if all of it survives
	}{
		{"a file whose directory was not synced", func(fs *FS) { put(t, fs, "x", "abc", true) }, "none", "abc"},
		{"a file whose bytes were not synced", func(fs *FS) {
			put(t, fs, "x", "abc", false)
			fs.SyncDir("/")
		}, "", "abc"},
		{"a file synced, then written", func(fs *FS) {
			f := put(t, fs, "x", "abc", true)
			fs.SyncDir("/")
			f.WriteAt([]byte("BCD"), 1)
		}, "abc", "aBCD"},
		{"a file synced, then cut", func(fs *FS) {
			f := put(t, fs, "x", "abc", true)
			fs.SyncDir("/")
			f.Truncate(1)
		}, "abc", "a"},
		{"a file synced, then replaced by one that was", func(fs *FS) {
			put(t, fs, "x", "old", true)
			fs.SyncDir("/")
			put(t, fs, "y", "new", true)
			fs.Rename("y", "x")
		}, "old", "new"},
		{"a file removed", func(fs *FS) {
			put(t, fs, "x", "abc", true)
			fs.SyncDir("/")
			fs.Remove("x")
		}, "abc", "none"},
	} {
		fs := New(1)
		c.do(fs)
		if got := content(t, fs.CrashKeeping(nothing), "x"); got != c.nothing {
			t.Errorf("%s: with nothing kept there is %q, want %q", c.name, got, c.nothing)
		}
		if got := content(t, fs.CrashKeeping(all), "x"); got != c.all {
			t.Errorf("%s: with all kept there is %q, want %q", c.name, got, c.all)
		}
	}
}

func TestACrashKeepsAnyPrefixAndOnlyAPrefix(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(400) {
		fs := New(seed)
		f := put(t, fs, "x", "ab", true)
		fs.SyncDir("/")
		f.WriteAt([]byte("cd"), 2)
		f.WriteAt([]byte("XY"), 0)
		seen[content(t, fs.Crash(), "x")] = true
	}
	want := []string{"ab", "abc", "abcd", "Xbcd", "XYcd", "ab\x00\x00", "abc\x00"}
	for _, w := range want {
		if !seen[w] {
			t.Errorf("no seed leaves %q", w)
		}
		delete(seen, w)
	}
	for got := range seen {
		t.Errorf("a seed leaves %q", got)
	}
}

func TestTheSameSeedLeavesTheSame(t *testing.T) {
	leave := func() (all []string) {
		fs := New(7)
		for i := range 10 {
			put(t, fs, fmt.Sprint(i), "some bytes of it", i%2 == 0)
		}
		fs.SyncDir("/")
		after := fs.Crash()
		names, _ := after.ReadDir("/")
		for _, name := range names {
			all = append(all, name+content(t, after, name))
		}
		return all
	}
	if a, b := leave(), leave(); !slices.Equal(a, b) || len(a) == 0 {
		t.Fatalf("%q and then %q", a, b)
	}
}

func TestWhatASyncFailedToKeepNoLaterOneDoes(t *testing.T) {
	lost := false
	for seed := range uint64(20) {
		fs := New(seed)
		f := put(t, fs, "x", "abcdef", false)
		fs.SyncDir("/")
		fs.FailAt(fs.Ops()+1, syscall.EIO)
		if err := f.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatalf("the sync returns %v", err)
		}
		f.WriteAt([]byte("g"), 6)
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		if got := content(t, fs, "x"); got != "abcdefg" {
			t.Fatalf("the file shows %q", got)
		}
		got := content(t, fs.CrashKeeping(all), "x")
		lost = lost || got != "abcdefg"
		if err := f.DropCache(); err != nil {
			t.Fatal(err)
		}
		if shown := content(t, fs, "x"); shown != got {
			t.Fatalf("read again the file shows %q, and a crash leaves %q", shown, got)
		}
		f.WriteAt([]byte("abcdefg"), 0) // which is written to disk now
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		if got := content(t, fs.CrashKeeping(nothing), "x"); got != "abcdefg" {
			t.Fatalf("written again after its pages were dropped the file is %q", got)
		}
	}
	if !lost {
		t.Fatal("nothing was lost with any seed")
	}
}

// TestAPageThatIsCutOffIsNotLostForEver truncates a page that a failed sync has lost, and writes it again.
func TestAPageThatIsCutOffIsNotLostForEver(t *testing.T) {
	for seed := range uint64(20) {
		fs := New(seed)
		f := put(t, fs, "x", strings.Repeat("a", 100), true)
		fs.SyncDir("/")
		f.WriteAt([]byte(strings.Repeat("b", 3*pageSize)), 100)
		fs.FailAt(fs.Ops()+1, syscall.EIO)
		f.Sync()
		f.Truncate(100)
		f.WriteAt([]byte(strings.Repeat("c", 2*pageSize)), 100)
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		want := strings.Repeat("a", 100) + strings.Repeat("c", 2*pageSize)
		if got := content(t, fs.CrashKeeping(nothing), "x"); got != want {
			t.Fatalf("seed %d: a later sync left %d bytes, of them %d as they were written", seed, len(got), strings.Count(got, "c"))
		}
	}
}

func TestOperationsFailWhereTheyAreTold(t *testing.T) {
	fs := New(1)
	f := put(t, fs, "x", "abc", true)
	if n := fs.Ops(); n != 3 || fs.Count(Create) != 1 || fs.Count(Write) != 1 || fs.Count(Sync) != 1 {
		t.Fatalf("creating, writing and syncing count as %d operations", n)
	}
	fs.FailAt(4, syscall.EIO)
	if n, err := f.WriteAt([]byte("defghi"), 3); !errors.Is(err, syscall.EIO) || content(t, fs, "x") != "abcdefghi"[:3+n] {
		t.Fatalf("operation 4 returns %d, %v and leaves %q", n, err, content(t, fs, "x"))
	}
	if err := f.Sync(); err != nil {
		t.Fatalf("operation 5 returns %v", err)
	}
	fs.PowerOffAt(6)
	for what, err := range map[string]error{
		"truncate": f.Truncate(0), "sync": f.Sync(), "rename": fs.Rename("x", "y"), "remove": fs.Remove("x"), "sync of /": fs.SyncDir("/"),
	} {
		if !errors.Is(err, ErrPower) {
			t.Errorf("%s without power returns %v", what, err)
		}
	}
	fs.Heal()
	if err := fs.Rename("x", "y"); err != nil {
		t.Fatal(err)
	}
}

func TestADiskFillsAndIsFreed(t *testing.T) {
	fs := New(1)
	f := put(t, fs, "x", "abc", true)
	fs.SetSpace(4)
	n, err := f.WriteAt([]byte(strings.Repeat("y", 10)), 2)
	if n != 5 || !vfs.IsFull(err) {
		t.Fatalf("a write past the space returns %d, %v", n, err)
	}
	if _, err := f.WriteAt([]byte("zz"), 0); err != nil {
		t.Fatalf("a write that grows nothing returns %v", err)
	}
	if free, err := fs.Free("/"); free != 0 || err != nil {
		t.Fatalf("a full disk has %d bytes free, %v", free, err)
	}
	if err := f.Truncate(3); err != nil {
		t.Fatal(err)
	}
	if free, err := fs.Free("/"); free != 4 || err != nil {
		t.Fatalf("after 4 bytes were freed the disk has %d bytes free, %v", free, err)
	}
	if n, err := f.WriteAt([]byte("abcdef"), 3); n != 4 || !vfs.IsFull(err) {
		t.Fatalf("a write after 4 bytes were freed returns %d, %v", n, err)
	}
}

func TestWhatACrashLeavesIsUnlockedAndClosed(t *testing.T) {
	fs := New(1)
	put(t, fs, "x", "abc", true)
	if _, err := fs.Lock("/"); err != nil {
		t.Fatal(err)
	}
	fs.PowerOffAt(1)
	after := fs.Crash()
	if n := after.OpenFiles(); n != 0 {
		t.Fatalf("%d files are open", n)
	}
	if _, err := after.Lock("/"); err != nil {
		t.Fatalf("the lock returns %v", err)
	}
	if _, err := after.OpenFile("y", os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		t.Fatalf("a new file returns %v", err)
	}
	if fs.OpenFiles() != 1 {
		t.Fatal("the file system that crashed was changed")
	}
}
