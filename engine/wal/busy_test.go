package wal

import (
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"
)

// reopen creates, closes and opens a log again, so that its file is open under its own name.
func reopen(t *testing.T, o Options) (*crashfs.FS, *Log) {
	t.Helper()
	fs, l := create(t, o)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	o.FS = fs
	l, err := Open(file, o, func(Kind, []byte, int, int) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return fs, l
}

// hold blocks the next operation of that kind on the name until the channel is closed.
func hold(fs *crashfs.FS, op crashfs.Op, name string) (release chan bool) {
	release = make(chan bool)
	held := false
	fs.Hook(func(o crashfs.Op, n string) error {
		if o == op && n == name && !held {
			held = true
			<-release
		}
		return nil
	})
	return release
}

func TestARewriteWaitsForTheWriteUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, l := reopen(t, Options{})
		r, err := l.Rewrite()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Append(Image, imageOf([]string{"in-flight"})); err != nil {
			t.Fatal(err)
		}
		release := hold(fs, crashfs.Write, file)
		answers := make(chan error, 2)
		ticket := l.Stage(Block, room("in-flight"))
		go func() { answers <- l.Commit(ticket) }()
		synctest.Wait()
		renames := fs.Count(crashfs.Rename)
		go func() { answers <- r.Commit() }()
		synctest.Wait()
		if fs.Count(crashfs.Rename) != renames {
			t.Error("the file was replaced under a write")
		}
		close(release)
		for range 2 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if list, err := words(fs, Options{}); err != nil || !slices.Equal(list, []string{"in-flight"}) {
			t.Errorf("found %q, %v", list, err)
		}
	})
}

func TestARewriteOfALogThatHasFailedIsGivenUp(t *testing.T) {
	fs, l := reopen(t, Options{Sync: Policy{Always: true}})
	if err := l.Commit(l.Stage(Block, room("answered"))); err != nil {
		t.Fatal(err)
	}
	r, err := l.Rewrite()
	if err != nil {
		t.Fatal(err)
	}
	fs.FailAt(fs.Ops()+1, syscall.EIO)
	if err := l.Commit(l.Stage(Block, room("lost"))); err == nil {
		t.Fatal("a failed write is acknowledged")
	}
	if err := r.Commit(); fail.KindOf(err) != fail.Storage {
		t.Fatalf("the rewrite returns %v", err)
	}
	l.Close()
	if list, err := words(fs, Options{}); err != nil || !slices.Equal(list, []string{"answered"}) {
		t.Fatalf("found %q, %v", list, err)
	}
	if n := fs.OpenFiles(); n != 0 {
		t.Fatalf("%d files are left open", n)
	}
}

func TestWhatARewriteHoldsIsSettledByIt(t *testing.T) {
	fs, l := reopen(t, Options{Sync: Policy{Always: true}})
	defer l.Close()
	r, err := l.Rewrite()
	if err != nil {
		t.Fatal(err)
	}
	ticket := l.Stage(Block, room("staged"))
	if err := r.Append(Block, room("staged")); err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(); err != nil {
		t.Fatal(err)
	}
	ops := fs.Ops()
	if err := l.Commit(ticket); err != nil {
		t.Fatal(err)
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	if fs.Ops() != ops {
		t.Fatal("what the rewrite wrote and synced is written or synced again")
	}
}

func TestCloseWaitsForARewriteThatIsTakingThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, l := reopen(t, Options{})
		r, err := l.Rewrite()
		if err != nil {
			t.Fatal(err)
		}
		release := hold(fs, crashfs.SyncDir, "/data")
		answers := make(chan error, 2)
		go func() { answers <- r.Commit() }()
		synctest.Wait()
		go func() { answers <- l.Close() }()
		synctest.Wait()
		close(release)
		for range 2 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if n := fs.OpenFiles(); n != 0 {
			t.Errorf("%d files are left open", n)
		}
	})
}

func TestAnIntervalsFailedSyncTakesNothingBackFromAWriteUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost []Ticket
		fs, l := reopen(t, Options{
			Sync:   Policy{Every: time.Second},
			Failed: func(first Ticket, _ error) { lost = append(lost, first) },
		})
		if err := l.Commit(l.Stage(Block, room("answered"))); err != nil {
			t.Fatal(err)
		}
		release := make(chan bool)
		fs.Hook(func(op crashfs.Op, _ string) error {
			switch op {
			case crashfs.Write:
				<-release
			case crashfs.Sync:
				return syscall.EIO
			}
			return nil
		})
		ticket := l.Stage(Block, room("under way"))
		answer := make(chan error, 1)
		go func() { answer <- l.Commit(ticket) }()
		time.Sleep(time.Second)
		synctest.Wait()
		close(release)
		if err := <-answer; err != nil {
			t.Errorf("the write under way returns %v", err)
		}
		synctest.Wait()
		if !slices.Equal(lost, []Ticket{ticket + 1}) {
			t.Errorf("Failed was called with %d, want %d: the one before is written and acknowledged", lost, ticket+1)
		}
		l.Close()
	})
}
