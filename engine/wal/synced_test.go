package wal

import (
	"errors"
	"slices"
	"testing"
	"time"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"
)

// syncedCalls collects the calls of Options.Synced.
type syncedCalls struct{ tickets []Ticket }

func (s *syncedCalls) synced(last Ticket) { s.tickets = append(s.tickets, last) }

func (s *syncedCalls) want(t *testing.T, what string, want ...Ticket) {
	t.Helper()
	if !slices.Equal(s.tickets, want) {
		t.Errorf("%s: Synced was called with %v, want %v", what, s.tickets, want)
	}
}

func TestSyncedIsCalledForEachSync(t *testing.T) {
	var s syncedCalls
	_, l := create(t, Options{Sync: Policy{Always: true}, Synced: s.synced})
	for _, text := range []string{"one", "two"} {
		if err := l.Commit(l.Stage(Block, room(text))); err != nil {
			t.Fatal(err)
		}
	}
	s.want(t, "as it is answered", 1, 2)
	rw, err := l.Rewrite()
	if err != nil {
		t.Fatal(err)
	}
	l.Stage(Block, room("three"))
	if err := errors.Join(rw.Append(Image, room("all")), rw.Commit()); err != nil {
		t.Fatal(err)
	}
	s.want(t, "with a rewrite", 1, 2, 3)
}

func TestWhatIsWrittenIsSyncedAtAWish(t *testing.T) {
	for name, policy := range map[string]Policy{"off": {}, "an interval": {Every: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			var s syncedCalls
			fs, l := create(t, Options{Sync: policy, Synced: s.synced})
			syncs := fs.Count(crashfs.Sync)
			if err := l.SyncWritten(); err != nil || fs.Count(crashfs.Sync) != syncs {
				t.Errorf("with nothing to sync: %v, %d syncs", err, fs.Count(crashfs.Sync)-syncs)
			}
			if err := l.Commit(l.Stage(Block, room("one"))); err != nil {
				t.Fatal(err)
			}
			s.want(t, "before", nil...)
			if err := l.SyncWritten(); err != nil {
				t.Fatal(err)
			}
			s.want(t, "after", 1)
			after := fs.CrashKeeping(func(int) int { return 0 })
			if got := contents(t, file, Options{FS: after}); len(got) != 1 || got[0] != "one" {
				t.Errorf("after a crash there is %q", got)
			}
		})
	}
}

func TestASyncAtAWishThatFailsStopsTheLog(t *testing.T) {
	var s syncedCalls
	fs, l := create(t, Options{Synced: s.synced})
	if err := l.Commit(l.Stage(Block, room("one"))); err != nil {
		t.Fatal(err)
	}
	fs.FailAt(fs.Ops()+1, errors.New("the disk fails"))
	for range 2 {
		if err := l.SyncWritten(); fail.KindOf(err) != fail.Storage {
			t.Errorf("got %v, want a storage error", err)
		}
	}
	s.want(t, "a sync that failed", nil...)
	if err := l.Commit(l.Stage(Block, room("two"))); fail.KindOf(err) != fail.Storage {
		t.Errorf("a record after it: %v", err)
	}
}

// What a killed process has written may not be on disk yet, and a sync alone does not prove that it is. A log open for
// reading, which cannot write it again, never counts it as on disk.
func TestWhatAKilledProcessLeftIsSyncedByWhoMayWriteIt(t *testing.T) {
	fs, l := create(t, Options{})
	if err := l.Commit(l.Stage(Block, room("one"))); err != nil {
		t.Fatal(err)
	}
	end := l.Size()
	for _, readOnly := range []bool{true, false} {
		var s syncedCalls
		again, err := Open(file, Options{FS: fs, ReadOnly: readOnly, Synced: s.synced}, func(Kind, []byte, int, int) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := again.SyncWritten(); err != nil {
				t.Fatal(err)
			}
		}
		s.want(t, "opened", nil...)
		if got := again.OnDisk(); readOnly != (got < end) {
			t.Errorf("%d bytes of %d are known to be on disk, open for reading %v", got, end, readOnly)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := contents(t, file, Options{FS: fs.CrashKeeping(func(int) int { return 0 })}); len(got) != 1 {
		t.Errorf("after a crash there is %q", got)
	}
}
