package engine

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"fenec/engine/doc"
	"fenec/internal/vfs"
	"fenec/internal/vfs/crashfs"
)

func intParam(n int64) doc.Value { return doc.Value{Kind: doc.Int, N: uint64(n)} }

func textParam(s string) doc.Value { return doc.Value{Kind: doc.Text, B: []byte(s)} }

// sinkFS drops all writes, so that a benchmark measures the engine and not a file system.
type sinkFS struct{ *crashfs.FS }

type sinkFile struct {
	vfs.File
	size int64
}

func (fs sinkFS) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	f, err := fs.FS.OpenFile(name, flag, perm)
	return &sinkFile{File: f}, err
}

func (f *sinkFile) WriteAt(p []byte, off int64) (int, error) {
	f.size = off + int64(len(p))
	return len(p), nil
}

func (f *sinkFile) Size() (int64, error) { return f.size, nil }

// fiveFields returns a database with a collection like that of an application, with as many documents as rows.
func fiveFields(tb testing.TB, rows int, indexes string) *DB {
	tb.Helper()
	db := inMemory(tb, Options{FS: sinkFS{crashfs.New(1)}})
	mustExec(tb, db, `create collection notes (title text, year int `+indexes+`, rank float, done bool, tag text)`)
	for i := range rows {
		put5(tb, db, int64(i))
	}
	return db
}

const put5Text = `put notes {title: $1, year: $2, rank: $3, done: $4, tag: $5}`

func put5(tb testing.TB, db *DB, i int64) {
	params := []doc.Value{
		textParam(fmt.Sprintf("the title of note %d", i)), intParam(i * 7919 % 100000),
		{Kind: doc.Float, N: 0x3ff8000000000000},
		{Kind: doc.Bool, N: uint64(i & 1)},
		textParam("tag"),
	}
	if _, err := db.Exec(context.Background(), Everything(), Statement{put5Text, params}, nil); err != nil {
		tb.Fatal(err)
	}
}

func BenchmarkPut(b *testing.B) {
	db := fiveFields(b, 0, "")
	params := []doc.Value{
		textParam("the title of a note"), intParam(7),
		{Kind: doc.Float, N: 0x3ff8000000000000},
		{Kind: doc.Bool, N: 1},
		textParam("tag"),
	}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := db.Exec(ctx, Everything(), Statement{put5Text, params}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkGet(b *testing.B, indexes, text string, params ...doc.Value) {
	db := fiveFields(b, 100000, indexes)
	ctx := context.Background()
	var dst []byte
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		res, err := db.Exec(ctx, Everything(), Statement{text, params}, dst[:0])
		if err != nil {
			b.Fatal(err)
		}
		dst = res.Body
	}
}

func BenchmarkGetByID(b *testing.B) {
	benchmarkGet(b, "", `get notes where id = $1`, intParam(77777))
}

func BenchmarkFilterCount(b *testing.B) {
	benchmarkGet(b, "", `get notes where year < 50000 count`)
}

// BenchmarkFilterInterleaved counts in one of three collections that were written alternately.
func BenchmarkFilterInterleaved(b *testing.B) {
	db := fiveFields(b, 0, "")
	mustExec(b, db, `create collection other (title text)`)
	for i := range int64(100000) {
		put5(b, db, i)
		mustExec(b, db, `put other {title: $1}`, textParam(strings.Repeat("words ", 30)))
	}
	ctx := context.Background()
	for b.Loop() {
		if _, err := db.Exec(ctx, Everything(), Statement{`get notes where year < 50000 count`, nil}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFilterRows(b *testing.B) {
	benchmarkGet(b, "", `get notes where year < $1`, intParam(1000))
}

func BenchmarkHashFilter(b *testing.B) {
	benchmarkGet(b, "@hash", `get notes where year = $1`, intParam(7919))
}

func BenchmarkSortedPage(b *testing.B) {
	benchmarkGet(b, "@sorted", `get notes order year desc limit 20`)
}

func BenchmarkUnsortedPage(b *testing.B) {
	benchmarkGet(b, "", `get notes order year desc limit 20`)
}
