package wal

import (
	"errors"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// room returns a payload after the room for a record's header.
func room(payload string) []byte { return append(make([]byte, HeaderSize), payload...) }

// kill writes and syncs what is staged and leaves the file as a killed process does.
func kill(t testing.TB, l *Log) {
	t.Helper()
	if err := errors.Join(l.Sync(), l.file.Close()); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, path string, o Options) []string {
	t.Helper()
	var got []string
	l, err := Open(path, o, func(k Kind, data []byte, from, to int) error {
		got = append(got, string(data[from:to]))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestWhatIsCommittedIsThereAfterAReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.fenec")
	o := Options{Sync: Policy{Always: true}}
	l, err := Create(path, o, Record{Image, room("image")})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"a", "", "ccc"} {
		if err := l.Commit(l.Stage(Block, room(s))); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, path, o); len(got) != 4 || got[3] != "ccc" {
		t.Fatalf("got %q", got)
	}
}
