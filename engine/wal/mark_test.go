package wal

import (
	"bytes"
	"errors"
	"sync"
	"syscall"
	"testing"

	"fenec/internal/vfs"
	"fenec/internal/vfs/crashfs"
)

func TestAMarkSaysThatAllIsOnDisk(t *testing.T) {
	fs, l := create(t, Options{})
	opened := func() *Log {
		t.Helper()
		again, err := Open(file, Options{FS: fs, ReadOnly: true}, func(Kind, []byte, int, int) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		again.Close()
		return again
	}
	want := func(what string, marked bool) {
		t.Helper()
		if got := opened(); got.Closed() != marked || marked && got.OnDisk() < got.Size()-HeaderSize {
			t.Errorf("%s: closed in order %v, %d bytes of %d on disk", what, got.Closed(), got.OnDisk(), got.Size())
		}
	}
	want("as created", false)
	l.Mark()
	want("marked", true)
	size := l.Size()
	l.Mark()
	if l.Size() != size {
		t.Error("a second mark is written after the first")
	}
	if err := l.Commit(l.Stage(Block, room("one"))); err != nil {
		t.Fatal(err)
	}
	want("written to", false)
	l.Mark()
	want("marked while it is not on disk", false)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	want("synced", false)
	l.Mark()
	want("marked again", true)
	// The mark is optional: if the disk is full, the file is closed without it.
	if err := errors.Join(l.Commit(l.Stage(Block, room("two"))), l.Sync()); err != nil {
		t.Fatal(err)
	}
	fs.SetSpace(3)
	if err := l.Close(); err != nil {
		t.Errorf("with a full disk the log closes with %v", err)
	}
	want("closed with a full disk", false)
	if got := contents(t, file, Options{FS: fs}); len(got) != 2 {
		t.Errorf("there is %q", got)
	}
}

func TestALogThatFailedIsNotMarked(t *testing.T) {
	fs, l := create(t, Options{})
	fs.FailAt(fs.Ops()+2, syscall.EIO)
	if err := errors.Join(l.Commit(l.Stage(Block, room("one"))), l.Sync()); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	before := stored(t, fs)
	l.Mark()
	l.Close()
	if !bytes.Equal(stored(t, fs), before) {
		t.Error("it is marked")
	}
}

// reportsOnce is a file that has lost a page, which only one sync reports.
type reportsOnce struct {
	vfs.File
	mu   sync.Mutex
	lost bool
}

func (f *reportsOnce) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost {
		f.lost = false
		return syscall.EIO
	}
	return nil
}

func TestOneSyncThatFailsFailsThoseBesideItAndAfterIt(t *testing.T) {
	f := &disk{File: &reportsOnce{lost: true}}
	errs := make(chan error)
	for range 4 {
		go func() { errs <- f.Sync() }()
	}
	for range 4 {
		if err := <-errs; !errors.Is(err, syscall.EIO) {
			t.Errorf("a sync concurrent with one that failed returns %v", err)
		}
	}
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("a sync after one that failed returns %v", err)
	}
}

// TestWhatCannotBeWrittenAgainIsRead opens a file that was not closed in order on a disk that accepts no writes.
func TestWhatCannotBeWrittenAgainIsRead(t *testing.T) {
	fs, l := create(t, Options{})
	if err := l.Commit(l.Stage(Block, room("one"))); err != nil {
		t.Fatal(err)
	}
	fs.Hook(func(op crashfs.Op, _ string) error {
		if op == crashfs.Write {
			return syscall.EIO
		}
		return nil
	})
	var list []string
	failed := 0
	again, err := Open(file, Options{FS: fs, Failed: func(Ticket, error) { failed++ }}, func(_ Kind, data []byte, from, to int) error {
		list = append(list, string(data[from:to]))
		return nil
	})
	if err != nil || len(list) != 1 {
		t.Fatalf("opened with %q, %v", list, err)
	}
	for range 2 {
		if err := again.Commit(again.Stage(Block, room("two"))); !errors.Is(err, syscall.EIO) {
			t.Errorf("a commit returns %v", err)
		}
	}
	if err := again.Close(); !errors.Is(err, syscall.EIO) || failed != 1 {
		t.Errorf("closed with %v, and Failed was called %d times", err, failed)
	}
	fs.Hook(nil)
	if got := contents(t, file, Options{FS: fs}); len(got) != 1 {
		t.Errorf("there is %q", got)
	}
}
