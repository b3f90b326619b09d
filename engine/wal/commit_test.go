package wal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"
)

func create(t testing.TB, o Options) (*crashfs.FS, *Log) {
	t.Helper()
	fs := crashfs.New(1)
	if err := fs.MkdirAll("/data", 0o700); err != nil {
		t.Fatal(err)
	}
	o.FS = fs
	l, err := Create(file, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return fs, l
}

func TestWritersThatArriveTogetherShareOneWriteAndOneSync(t *testing.T) {
	fs, l := create(t, Options{Sync: Policy{Always: true}})
	writes, syncs := fs.Count(crashfs.Write), fs.Count(crashfs.Sync)
	leading, release := make(chan bool, 1), make(chan bool)
	fs.Hook(func(op crashfs.Op, _ string) error {
		if op == crashfs.Sync {
			select {
			case leading <- true:
				<-release
			default:
			}
		}
		return nil
	})
	var committers sync.WaitGroup
	commit := func(ticket Ticket) {
		committers.Go(func() {
			if err := l.Commit(ticket); err != nil {
				t.Error(err)
			}
		})
	}
	commit(l.Stage(Block, room("first")))
	<-leading
	for i := range 15 {
		commit(l.Stage(Block, room(fmt.Sprint(i))))
	}
	close(release)
	committers.Wait()
	writes, syncs = fs.Count(crashfs.Write)-writes, fs.Count(crashfs.Sync)-syncs
	if writes != 2 || syncs != 2 {
		t.Fatalf("16 commits took %d writes and %d syncs, want 2 of each", writes, syncs)
	}
}

func TestALargeGroupIsWrittenWholeAndInOrder(t *testing.T) {
	fs, l := create(t, Options{Sync: Policy{Always: true}})
	var want []string
	for i, size := range []int{10, gatherSize + 5, 3, gatherSize / 2, gatherSize / 2, gatherSize - HeaderSize, 1} {
		word := strings.Repeat(string(rune('a'+i)), size)
		want = append(want, word)
		l.Stage(Block, room(word))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if list, err := words(fs, Options{}); err != nil || !slices.Equal(list, want) {
		t.Fatalf("found %d words, %v", len(list), err)
	}
}

func TestFailedIsCalledOnceAndBeforeAnyCommitReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		undo := make(chan bool)
		var lost []Ticket
		fs, l := create(t, Options{Sync: Policy{Always: true}, Failed: func(first Ticket, err error) {
			lost = append(lost, first)
			<-undo
		}})
		if err := l.Commit(l.Stage(Block, room("kept"))); err != nil {
			t.Fatal(err)
		}
		fs.FailFrom(fs.Ops()+1, syscall.EIO)
		var committers sync.WaitGroup
		answers := make(chan error, 8)
		for range 8 {
			ticket := l.Stage(Block, room("lost"))
			committers.Go(func() { answers <- l.Commit(ticket) })
		}
		synctest.Wait()
		if len(answers) != 0 {
			t.Fatal("a commit failed before its block was undone")
		}
		if l.Err() == nil {
			t.Fatal("the log says it accepts records while Failed runs")
		}
		close(undo)
		committers.Wait()
		for range 8 {
			if err := <-answers; fail.KindOf(err) != fail.Storage {
				t.Fatalf("a commit returned %v", err)
			}
		}
		if !slices.Equal(lost, []Ticket{2}) {
			t.Fatalf("Failed was called with tickets %d, want 2 once", lost)
		}
	})
}

func TestAfterAFailedSyncNothingIsWrittenOrSyncedAgain(t *testing.T) {
	fs, l := create(t, Options{Sync: Policy{Always: true}})
	fs.FailAt(fs.Ops()+2, syscall.EIO) // the write, then the sync
	if err := l.Commit(l.Stage(Block, room("lost"))); !errors.Is(err, syscall.EIO) {
		t.Fatalf("a failed sync returns %v", err)
	}
	writes, syncs := fs.Count(crashfs.Write), fs.Count(crashfs.Sync)
	if err := l.Commit(l.Stage(Block, room("later"))); !errors.Is(err, syscall.EIO) {
		t.Fatalf("a commit after it returns %v", err)
	}
	if err := l.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("a sync after it returns %v", err)
	}
	if _, err := l.Rewrite(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("a rewrite after it returns %v", err)
	}
	if err := l.Close(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("the close returns %v", err)
	}
	if fs.Count(crashfs.Write) != writes || fs.Count(crashfs.Sync) != syncs {
		t.Fatal("the file was written or synced after a failed sync")
	}
	if size := int64(len(stored(t, fs))); l.Size() != size {
		t.Fatalf("the log says %d bytes, the file has %d", l.Size(), size)
	}
	if list, err := words(fs, Options{}); err != nil || len(list) != 0 {
		t.Fatalf("the file holds %q, %v: what was not acknowledged must be cut off", list, err)
	}
}

func TestAFullDiskLosesNothingAcknowledgedOnceSpaceIsFreed(t *testing.T) {
	fs, l := create(t, Options{Sync: Policy{Always: true}})
	fs.SetSpace(1000)
	var answered []string
	for i := range 100 {
		word := fmt.Sprint("word", i)
		err := l.Commit(l.Stage(Block, room(word)))
		if err == nil {
			answered = append(answered, word)
		} else if fail.KindOf(err) != fail.Full {
			t.Fatalf("a full disk returns %v", err)
		}
	}
	if len(answered) == 0 || len(answered) == 100 {
		t.Fatalf("%d of 100 were acknowledged", len(answered))
	}
	if err := l.Close(); fail.KindOf(err) != fail.Full {
		t.Fatalf("the close returns %v", err)
	}
	fs.SetSpace(-1)
	if list, err := words(fs, Options{}); err != nil || !slices.Equal(list, answered) {
		t.Fatalf("found %q, %v, want %q", list, err, answered)
	}
}

func TestAnIntervalSyncsAfterTheWritersAndOnlyIfThereIsSomething(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = 250 * time.Millisecond
		fs, l := create(t, Options{Sync: Policy{Every: every}})
		defer l.Close() // the bubble ends before cleanups
		before := fs.Count(crashfs.Sync)
		syncs := func() int {
			synctest.Wait()
			return fs.Count(crashfs.Sync) - before
		}
		for i := range 10 {
			if err := l.Commit(l.Stage(Block, room(fmt.Sprint(i)))); err != nil {
				t.Fatal(err)
			}
		}
		if n := syncs(); n != 0 {
			t.Fatalf("%d syncs before the time", n)
		}
		time.Sleep(every)
		if n := syncs(); n != 1 {
			t.Fatalf("%d syncs at the time, want 1", n)
		}
		time.Sleep(time.Hour)
		if n := syncs(); n != 1 {
			t.Fatalf("%d syncs after an idle hour, want 1", n)
		}
		if err := l.Close(); err != nil || syncs() != 1 {
			t.Fatalf("the close returns %v and leaves %d syncs, want the 1: all was synced", err, syncs())
		}
		list, err := words(fs.CrashKeeping(func(int) int { return 0 }), Options{})
		if err != nil || len(list) != 10 {
			t.Fatalf("a crash after the open found %q, %v", list, err)
		}
	})
}

func TestAnIntervalsFailedSyncStopsWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost []Ticket
		fs, l := create(t, Options{
			Sync:   Policy{Every: time.Second},
			Failed: func(first Ticket, _ error) { lost = append(lost, first) },
		})
		defer l.Close()
		if err := l.Commit(l.Stage(Block, room("answered"))); err != nil {
			t.Fatal(err)
		}
		fs.FailAt(fs.Ops()+1, syscall.EIO)
		time.Sleep(time.Second)
		synctest.Wait()
		if err := l.Err(); fail.KindOf(err) != fail.Storage {
			t.Fatalf("the log says %v", err)
		}
		if err := l.Commit(1); err != nil {
			t.Fatalf("a commit that has succeeded now returns: %v", err)
		}
		if err := l.Commit(l.Stage(Block, room("late"))); !errors.Is(err, syscall.EIO) {
			t.Fatalf("a commit after it returns %v", err)
		}
		if !slices.Equal(lost, []Ticket{2}) {
			t.Fatalf("Failed was called with tickets %d, want 2 once", lost)
		}
	})
}

func TestAnOpenPutsOnDiskWhatAKilledProcessLeftUnsynced(t *testing.T) {
	fs, killed := create(t, Options{})
	if err := killed.Commit(killed.Stage(Block, room("written"))); err != nil {
		t.Fatal(err)
	}
	syncs := fs.Count(crashfs.Sync)
	l, err := Open(file, Options{FS: fs}, func(Kind, []byte, int, int) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 2 {
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if n := fs.Count(crashfs.Sync) - syncs; n != 1 {
		t.Fatalf("%d syncs, want 1 for what was left and none more", n)
	}
	list, err := words(fs.CrashKeeping(func(int) int { return 0 }), Options{})
	if err != nil || !slices.Equal(list, []string{"written"}) {
		t.Fatalf("a crash after the open found %q, %v", list, err)
	}
}

func TestADatabaseThatWasOnlyReadClosesWithoutASync(t *testing.T) {
	data, _ := sample(t)
	fs := store(t, data)
	if _, err := words(fs, Options{}); err != nil { // closes it in order
		t.Fatal(err)
	}
	ops, closed := fs.Ops(), stored(t, fs)
	if _, err := words(fs, Options{Sync: Policy{Always: true}}); err != nil || fs.Ops() != ops {
		t.Fatalf("%d operations, %v", fs.Ops()-ops, err)
	}
	if !bytes.Equal(stored(t, fs), closed) {
		t.Fatal("the file was changed")
	}
}

func TestEachCloseReturnsTheSameAndLaterWritesFail(t *testing.T) {
	fs, l := create(t, Options{Sync: Policy{Every: time.Hour}})
	l.Stage(Block, room("staged"))
	var closers sync.WaitGroup
	for range 4 {
		closers.Go(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	closers.Wait()
	if err := l.Commit(l.Stage(Block, room("late"))); fail.KindOf(err) != fail.Closed {
		t.Fatalf("a commit after the close returns %v", err)
	}
	if list, err := words(fs, Options{}); err != nil || !slices.Equal(list, []string{"staged"}) {
		t.Fatalf("found %q, %v", list, err)
	}
	if n := fs.OpenFiles(); n != 0 {
		t.Fatalf("%d files are open", n)
	}
}

func TestPolicies(t *testing.T) {
	for text, want := range map[string]Policy{
		"always": {Always: true}, "off": {}, "250": {Every: 250 * time.Millisecond},
		"300ms": {Every: 300 * time.Millisecond}, "5s": {Every: 5 * time.Second},
	} {
		got, err := ParsePolicy(text)
		if err != nil || got != want {
			t.Errorf("%s reads as %+v, %v", text, got, err)
		}
		if again, err := ParsePolicy(got.String()); err != nil || again != want {
			t.Errorf("%s is written %s, which reads as %+v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "0", "-5", "sometimes", "1.5.2", "0s"} {
		if p, err := ParsePolicy(text); err == nil {
			t.Errorf("%q reads as %+v", text, p)
		}
	}
}
