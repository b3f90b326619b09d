package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const file = "/t.fenec"

var always = wal.Policy{Always: true}

// inMemory returns a new database on a file system in memory, closed at the end of the test.
func inMemory(tb testing.TB, o Options) *DB {
	tb.Helper()
	if o.FS == nil {
		o.FS = crashfs.New(1)
	}
	db, err := Create(file, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	return db
}

func reopen(tb testing.TB, o Options) *DB {
	tb.Helper()
	db, err := Open(file, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	return db
}

func exec(db *DB, text string, params ...doc.Value) (Result, error) {
	return db.Exec(context.Background(), Everything(), Statement{text, params}, nil)
}

func mustExec(tb rapid.TB, db *DB, text string, params ...doc.Value) Result {
	tb.Helper()
	res, err := exec(db, text, params...)
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return res
}

func wantRows(tb testing.TB, db *DB, text, want string) {
	tb.Helper()
	if got := string(mustExec(tb, db, text).Body); got != want {
		tb.Errorf("%s:\n got %s\nwant %s", text, got, want)
	}
}

func wantKind(tb rapid.TB, err error, want fail.Kind) {
	tb.Helper()
	if got := fail.KindOf(err); got != want {
		tb.Errorf("got the error %v of kind %d, want kind %d", err, got, want)
	}
}

func collections(tb rapid.TB, db *DB) []CollectionInfo {
	tb.Helper()
	all, err := db.Collections(Everything())
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// dump returns the schemas and documents of a database as text.
func dump(tb rapid.TB, db *DB) string {
	tb.Helper()
	out := ""
	for _, c := range collections(tb, db) {
		out += fmt.Sprintf("%s %v %v\n", c.Schema.Name, c.Schema.Fields, c.Schema.Paths)
		out += string(mustExec(tb, db, "get "+c.Schema.Name).Body) + "\n"
	}
	return out
}

func image(tb rapid.TB, db *DB) (b []byte, seq uint64) {
	tb.Helper()
	r, size, seq, err := db.OpenImage()
	if err != nil {
		tb.Fatal(err)
	}
	b, err = io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		tb.Fatal(err)
	}
	if int64(len(b)) != size {
		tb.Fatalf("the image has %d bytes and said it would have %d", len(b), size)
	}
	return b, seq
}

// install installs an image, closes the database and returns its change number.
func install(path string, src io.Reader, o Options) (seq uint64, err error) {
	db, err := InstallImage(path, src, o)
	if err != nil {
		return 0, err
	}
	seq, _ = db.Position()
	return seq, db.Close()
}
