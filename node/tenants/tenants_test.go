package tenants

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// over configures a Set over /data of a file system, which syncs every write.
func over(fs *crashfs.FS) Config {
	return Config{
		Dir:    "/data",
		Engine: engine.Options{FS: fs, Sync: wal.Policy{Always: true}},
		Budget: &Budget{MaxOpen: math.MaxInt64},
	}
}

// setOn is a Set over /data of a file system, until the test ends.
func setOn(t *testing.T, fs *crashfs.FS) *Set {
	t.Helper()
	s, err := Open(over(fs))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(fmt.Errorf("close: %w", err))
		}
	})
	return s
}

// readImage returns the bytes of a tenant's image.
func readImage(s *Set, name string) (string, error) {
	image, err := s.OpenImage(name)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(image)
	return string(text), errors.Join(err, image.Close())
}

// endings counts how often it is asked to end.
type endings struct{ asked atomic.Int64 }

func (e *endings) EndSoon() { e.asked.Add(1) }

func TestASetEndsInOrder(t *testing.T) { synctest.Test(t, endsInOrder) }

func endsInOrder(t *testing.T) {
	c := over(crashfs.New(1))
	var streams []*endings
	c.NewStreams = func() Streams {
		streams = append(streams, &endings{})
		return streams[len(streams)-1]
	}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if err := s.create(name, Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete("b", Condition{}); err != nil {
		t.Fatal(err)
	}
	if a, b := streams[0].asked.Load(), streams[1].asked.Load(); a != 0 || b != 1 {
		t.Errorf("with b deleted the streams of a were asked to end %d times, those of b %d", a, b)
	}
	s.EndSoon()
	s.EndSoon()
	if a := streams[0].asked.Load(); a != 1 {
		t.Errorf("EndSoon asked the streams of a to end %d times", a)
	}
	a, err := s.Acquire("a")
	if err != nil {
		t.Fatalf("between EndSoon and Close a is not acquired: %v", err)
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	<-a.Gone()
	synctest.Wait()
	select {
	case <-closed:
		t.Error("Close did not wait for the caller in a")
	default:
	}
	s.Release(a)
	if err := errors.Join(<-closed, s.Close()); err != nil {
		t.Error(err)
	}
	if _, err := s.Acquire("a"); !errors.Is(err, ErrStopping) {
		t.Errorf("a is acquired from a closed Set: %v", err)
	}
	if err := s.create("c", Condition{}); !errors.Is(err, ErrStopping) {
		t.Errorf("c is created in a closed Set: %v", err)
	}
}

func TestASetThatOnlyReadsRefusesChanges(t *testing.T) {
	fs := crashfs.New(1)
	s, err := Open(over(fs))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.create("a", Condition{}), s.Close()); err != nil {
		t.Fatal(err)
	}
	c := over(fs)
	c.Engine.ReadOnly = true
	if s, err = Open(c); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, freeze := s.Freeze("a", "", Condition{})
	_, thaw := s.Thaw("a", "", Condition{})
	_, install := s.Install("b", "", Condition{}, strings.NewReader(""), 0)
	for what, err := range map[string]error{
		"create": s.create("b", Condition{}), "delete": s.Delete("a", Condition{}), "freeze": freeze, "thaw": thaw, "install": install,
	} {
		if fail.KindOf(err) != fail.ReadOnly {
			t.Errorf("%s: got %v, want it refused", what, err)
		}
	}
	if state, err := s.State("a"); err != nil || state != (State{}) {
		t.Errorf("the state of a is %+v, %v", state, err)
	}
}

// create is Create without the lineage.
func (s *Set) create(name string, c Condition) error {
	_, err := s.Create(name, c)
	return err
}
