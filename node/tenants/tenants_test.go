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

// over returns the configuration of a Set over /data of a file system, which syncs every write.
func over(fs *crashfs.FS) Config {
	return Config{
		Dir:    "/data",
		Engine: engine.Options{FS: fs, Sync: wal.Policy{Always: true}},
		Budget: &Budget{MaxOpen: math.MaxInt64},
	}
}

// setOn opens a Set over /data of a file system until the test ends.
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

func TestEndSoonEndsStreamsAndCloseWaitsForCallers(t *testing.T) { synctest.Test(t, checkEnd) }

// checkEnd checks the streams and callers of two tenants through a delete, EndSoon and Close.
func checkEnd(t *testing.T) {
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
		t.Errorf("after the delete of b: got %d requests to end the streams of a and %d of b, expected 0 and 1", a, b)
	}
	s.EndSoon()
	s.EndSoon()
	if a := streams[0].asked.Load(); a != 1 {
		t.Errorf("after EndSoon: got %d requests to end the streams of a, expected 1", a)
	}
	a, err := s.Acquire("a")
	if err != nil {
		t.Fatalf("got %v for an Acquire between EndSoon and Close, expected the tenant", err)
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
		t.Errorf("got %v for an Acquire of a closed Set, expected ErrStopping", err)
	}
	if err := s.create("c", Condition{}); !errors.Is(err, ErrStopping) {
		t.Errorf("got %v for a create in a closed Set, expected ErrStopping", err)
	}
}

func TestAReadOnlySetRefusesChanges(t *testing.T) {
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
			t.Errorf("%s: got %v, expected a refusal of kind ReadOnly", what, err)
		}
	}
	if state, err := s.State("a"); err != nil || state != (State{}) {
		t.Errorf("got the state %+v, %v of a, expected the zero State", state, err)
	}
}

// create calls Create and returns only its error.
func (s *Set) create(name string, c Condition) error {
	_, err := s.Create(name, c)
	return err
}
