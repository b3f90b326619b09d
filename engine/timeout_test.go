package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"
)

// TestATimeoutNamesTheActivity limits statements to a number of seconds on a clock that advances by one second each time it is
// read.
func TestATimeoutNamesTheActivity(t *testing.T) {
	const rows = 10_000
	now := time.Unix(0, 0)
	db := inMemory(t, Options{Clock: func() time.Time { now = now.Add(time.Second); return now }})
	mustExec(t, db, "create collection c (n int @sorted, h text @hash, u int @unique, m int)")
	mustExec(t, db, "create collection d (n int, c int @hash, v vector<2>)")
	var c, d []string
	for i := range rows {
		c = append(c, fmt.Sprintf(`{n: %d, h: "h%d", u: %d, m: %d}`, i, i, i, i%7))
		d = append(d, fmt.Sprintf("{n: %d, c: %d, v: [%d, 1]}", i, i+1, i%150))
	}
	mustExec(t, db, "put c ["+strings.Join(c, ",")+"]")
	mustExec(t, db, "put d ["+strings.Join(d, ",")+"]")
	for _, tc := range []struct {
		statement string
		seconds   int
		want      string
	}{
		{"get c where m = 9", 3, "scanning c, 8 192 of 10 000 rows tested"},
		{"get c order m", 4, "sorting 10 000 rows of c"},
		{"get c where n = 5", 3, "building the index @sorted on n of c, 4 096 of 10 000 documents read"},
		{"get c select max(n)", 4, "building the index @sorted on n of c, 8 192 of 10 000 documents read"},
		{"get c order n limit 1", 3, "building the index @sorted on n of c, 4 096 of 10 000 documents read"},
		{`get c where h = "h1"`, 3, "building the index @hash on h of c, 4 096 of 10 000 documents read"},
		{"get c where id = 1 lookup d on c", 3, "building the index @hash on c of d, 4 096 of 10 000 documents read"},
		{"set c {m: 1}", 4, "writing c, 4 095 rows done"},
		{"set c {m: 1} where id > 0", 7, "checking the unique values written to c, 8 191 of 10 000 rows done"},
		{"create index on d (n) @sorted", 1, "building the index @sorted on n of d, 4 096 of 10 000 documents read"},
		{"create index on d (n) @unique", 3, "checking that no two documents of d share n, 4 096 of 10 000 done"},
		{"create index on d (v) @hnsw(l2)", 3, "building the index @hnsw on v of d, 0 of 150 vectors linked"},
		{"create index on d (v) @hnsw(l2)", 5, "building the index @hnsw on v of d, 128 of 150 vectors linked"},
		{"compact", 1, "rewriting the file, 8 192 of 10 000 documents of c done"},
	} {
		t.Run(tc.statement, func(t *testing.T) {
			db.opts.StatementTimeout = time.Duration(tc.seconds) * time.Second
			defer func() { db.opts.StatementTimeout = 0 }()
			_, err := exec(db, tc.statement)
			want := fmt.Sprintf("the statement ran out of time after %v: it was %s", db.opts.StatementTimeout, tc.want)
			if fail.KindOf(err) != fail.Timeout || err.Error() != want {
				t.Errorf("%v\nwant %s", err, want)
			}
		})
	}
	// The stopped statements have changed nothing.
	wantRows(t, db, "get c select id where n = 5", `[{"id":6}]`)
	wantRows(t, db, "get c select max(n)", `[{"max(n)":9999}]`)
	wantRows(t, db, "get c select id, m where id = 1 lookup d on c", `[{"id":1,"m":0,"d":[{"id":1,"n":0,"c":1,"v":[0,1]}]}]`)
	wantRows(t, db, `get c where h = "h1" count`, `[{"count":1}]`)
	mustExec(t, db, "create index on d (n) @unique")
}

func TestAWritesTimeoutIncludesBuildingAUniqueIndex(t *testing.T) {
	now := time.Unix(0, 0)
	o := Options{FS: crashfs.New(1), Clock: func() time.Time { now = now.Add(time.Second); return now }}
	db := inMemory(t, o)
	mustExec(t, db, "create collection c (u int @unique, m int)")
	var rows []string
	for i := range 10_000 {
		rows = append(rows, fmt.Sprintf("{u: %d, m: %d}", i, i))
	}
	mustExec(t, db, "put c ["+strings.Join(rows, ",")+"]")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = reopen(t, o)
	limit := func(seconds int, run func() error, doing string) {
		t.Helper()
		db.opts.StatementTimeout = time.Duration(seconds) * time.Second
		err := run()
		db.opts.StatementTimeout = 0
		if want := fmt.Sprintf("the statement ran out of time after %ds: it was %s", seconds, doing); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	limit(3, func() error {
		_, err := exec(db, "put c {u: 7}")
		return err
	}, "building the index @unique on u of c, 4 096 of 10 001 documents read")
	batch := func() error {
		_, _, err := db.Batch(context.Background(), Everything(), []Statement{{Text: "put c {m: 10000}"}, {Text: "create index on c (m) @unique"}})
		return err
	}
	limit(3, batch, "building the index @unique on u of c, 4 096 of 10 001 documents read")
	_, err := exec(db, "put c {u: 7}")
	wantKind(t, err, fail.Conflict)
	limit(4, batch, "building the index @unique on m of c, 4 096 of 10 001 documents read")
	limit(6, batch, "checking that no two documents of c share m, 4 096 of 10 001 done")
	wantRows(t, db, "get c count", `[{"count":10000}]`)
}
