package wal

import (
	"fmt"
	"io"
	"os"
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

func TestARewriteBesideWritersLosesAndDoublesNothing(t *testing.T) {
	for _, policy := range []Policy{{Always: true}, {Every: time.Millisecond}, {}} {
		fs, l := create(t, Options{Sync: policy})
		var (
			lock    sync.Mutex // the engine's
			staged  []string
			writers sync.WaitGroup
		)
		for w := range 4 {
			writers.Go(func() {
				for i := range 200 {
					word := fmt.Sprintf("%d/%d", w, i)
					lock.Lock()
					ticket := l.Stage(Block, room(word))
					staged = append(staged, word)
					lock.Unlock()
					if err := l.Commit(ticket); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 10 {
			lock.Lock()
			image := slices.Clone(staged)
			lock.Unlock()
			r, err := l.Rewrite()
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Append(Image, imageOf(image)); err != nil {
				t.Fatal(err)
			}
			if err := r.Sync(); err != nil {
				t.Fatal(err)
			}
			lock.Lock()
			for _, word := range staged[len(image):] {
				if err := r.Append(Block, room(word)); err != nil {
					t.Fatal(err)
				}
			}
			size := r.Size()
			if err := r.Commit(); err != nil {
				t.Fatal(err)
			}
			if l.Size() != size {
				t.Fatalf("the log has %d bytes after a rewrite of %d", l.Size(), size)
			}
			lock.Unlock()
			checkSnapshot(t, l, func(last Ticket) []string {
				lock.Lock()
				defer lock.Unlock()
				return staged[:last]
			})
		}
		writers.Wait()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if list, err := words(fs, Options{}); err != nil || !slices.Equal(list, staged) {
			t.Fatalf("found %d words, %v, want %d", len(list), err, len(staged))
		}
		if n := fs.OpenFiles(); n != 0 {
			t.Fatalf("%d files are left open", n)
		}
	}
}

// checkSnapshot asserts that a snapshot taken now holds exactly what was staged up to its last ticket.
func checkSnapshot(t *testing.T, l *Log, staged func(last Ticket) []string) {
	t.Helper()
	s, size, err := l.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	image, err := io.ReadAll(io.NewSectionReader(s, 0, size))
	if err != nil {
		t.Fatal(err)
	}
	list, err := words(store(t, image), Options{ReadOnly: true})
	if want := staged(s.Last()); err != nil || !slices.Equal(list, want) {
		t.Fatalf("a snapshot of ticket %d holds %d words, %v, want %d", s.Last(), len(list), err, len(want))
	}
}

func TestARewriteGivenUpLeavesNoTrace(t *testing.T) {
	fs, l := create(t, Options{})
	r, err := l.Rewrite()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Rewrite(); fail.KindOf(err) != fail.Conflict {
		t.Fatalf("a second rewrite returns %v", err)
	}
	if err := r.Append(Image, imageOf([]string{"never"})); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Abort(); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Commit(); err == nil {
		t.Fatal("a rewrite given up commits")
	}
	if names, _ := fs.ReadDir("/data"); len(names) != 1 {
		t.Fatalf("files %q are left", names)
	}
	if r, err = l.Rewrite(); err != nil {
		t.Fatalf("the next rewrite returns %v", err)
	}
	r.Abort()
}

func TestARewriteWhoseDirectoryCannotBeSyncedFailsTheLog(t *testing.T) {
	var lost []Ticket
	fs, l := create(t, Options{Sync: Policy{Always: true}, Failed: func(first Ticket, _ error) { lost = append(lost, first) }})
	r, err := l.Rewrite()
	if err != nil {
		t.Fatal(err)
	}
	ticket := l.Stage(Block, room("pending"))
	if err := r.Append(Block, room("pending")); err != nil {
		t.Fatal(err)
	}
	fs.Hook(func(op crashfs.Op, _ string) error {
		if op == crashfs.SyncDir {
			return syscall.EIO
		}
		return nil
	})
	if err := r.Commit(); fail.KindOf(err) != fail.Storage {
		t.Fatalf("the rewrite returns %v", err)
	}
	if l.Err() == nil {
		t.Fatal("the log accepts records into a file whose rename a crash may undo")
	}
	if len(lost) != 0 {
		t.Fatal("the rewrite called Failed under its caller's lock")
	}
	if err := l.Commit(ticket); fail.KindOf(err) != fail.Storage || !slices.Equal(lost, []Ticket{1}) {
		t.Fatalf("the commit returns %v, Failed was called with %d", err, lost)
	}
	if _, _, err := l.Snapshot(); fail.KindOf(err) != fail.Storage {
		t.Fatalf("a snapshot of a file that lost its name returns %v", err)
	}
	l.Close()
	if n := fs.OpenFiles(); n != 0 {
		t.Fatalf("%d files are left open", n)
	}
}

func TestASnapshotOutlivesWritesARewriteAndTheLog(t *testing.T) {
	fs, l := create(t, Options{})
	last := l.Stage(Block, room("before"))
	if err := l.Commit(last); err != nil {
		t.Fatal(err)
	}
	l.Stage(Block, room("staged-only"))
	s, size, err := l.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if s.Last() != last {
		t.Fatalf("the snapshot ends at ticket %d, want %d", s.Last(), last)
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	r, err := l.Rewrite()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	image, err := io.ReadAll(io.NewSectionReader(s, 0, size))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	list, err := words(store(t, image), Options{})
	if err != nil || !slices.Equal(list, []string{"before"}) {
		t.Fatalf("the snapshot holds %q, %v", list, err)
	}
	if n := fs.OpenFiles(); n != 0 {
		t.Fatalf("%d files are left open", n)
	}
}

func TestASnapshotWaitsForARewriteThatIsTakingThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, l := create(t, Options{})
		defer l.Close()
		for range 3 {
			l.Stage(Block, room("replaced"))
		}
		r, err := l.Rewrite()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Append(Image, imageOf([]string{"new"})); err != nil {
			t.Fatal(err)
		}
		release := make(chan bool)
		fs.Hook(func(op crashfs.Op, _ string) error {
			if op == crashfs.SyncDir {
				<-release
			}
			return nil
		})
		go func() {
			if err := r.Commit(); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait() // the new file has the name, but is not the log's yet
		size := int64(-1)
		go func() {
			s, n, err := l.Snapshot()
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
			size = n
		}()
		synctest.Wait()
		close(release)
		synctest.Wait()
		if want := int64(len(stored(t, fs))); size != want {
			t.Fatalf("the snapshot has %d bytes, the new file %d", size, want)
		}
	})
}

func TestASyncOfAFileThatWasReplacedMeanwhileDecidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, l := create(t, Options{Sync: Policy{Every: time.Second}})
		defer l.Close()
		if err := l.Commit(l.Stage(Block, room("answered"))); err != nil {
			t.Fatal(err)
		}
		release, first := make(chan bool), make(chan bool, 1)
		first <- true
		fs.Hook(func(op crashfs.Op, _ string) error {
			if op != crashfs.Sync {
				return nil
			}
			select {
			case <-first: // the interval's
				<-release
				return syscall.EIO
			default:
				return nil
			}
		})
		time.Sleep(time.Second)
		synctest.Wait()
		r, err := l.Rewrite()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Append(Image, imageOf([]string{"answered"})); err != nil {
			t.Fatal(err)
		}
		if err := r.Commit(); err != nil {
			t.Fatal(err)
		}
		close(release)
		synctest.Wait()
		if err := l.Err(); err != nil {
			t.Fatalf("the log has failed with a file it left: %v", err)
		}
	})
}

func TestALogOpenForReadingChangesNothing(t *testing.T) {
	data, _ := sample(t)
	fs := store(t, data[:len(data)-1])
	side, err := fs.OpenFile(file+SideSuffix, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	side.Close()
	ops := fs.Ops()
	var list []string
	l, err := Open(file, Options{FS: fs, ReadOnly: true}, func(_ Kind, data []byte, from, to int) error {
		list = append(list, strings.Fields(string(data[from:to]))...)
		return nil
	})
	if err != nil || !slices.Equal(list, sampleWords[:4]) {
		t.Fatalf("found %q, %v", list, err)
	}
	if err := l.Commit(l.Stage(Block, room("refused"))); fail.KindOf(err) != fail.ReadOnly {
		t.Fatalf("a commit returns %v", err)
	}
	if _, err := l.Rewrite(); fail.KindOf(err) != fail.ReadOnly {
		t.Fatalf("a rewrite returns %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatalf("the close returns %v", err)
	}
	if fs.Ops() != ops {
		t.Fatal("something was changed")
	}
}

func TestCreateRefusesATakenName(t *testing.T) {
	fs, l := create(t, Options{})
	if err := l.Commit(l.Stage(Block, room("kept"))); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(file, Options{FS: fs}); err != os.ErrExist {
		t.Fatalf("got %v", err)
	}
	l.Close()
	if list, err := words(fs, Options{}); err != nil || len(list) != 1 {
		t.Fatalf("found %q, %v", list, err)
	}
}

func TestWhatReplayRefusesIsSaidWithItsOffset(t *testing.T) {
	data, _ := sample(t)
	_, err := Open(file, Options{FS: store(t, data)}, func(Kind, []byte, int, int) error { return fmt.Errorf("no such operation") })
	if fail.KindOf(err) != fail.Damaged || !strings.Contains(err.Error(), "offset 24") || !strings.Contains(err.Error(), "no such operation") {
		t.Fatalf("got %v", err)
	}
}
