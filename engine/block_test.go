package engine

import (
	"context"
	"testing"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"
)

func statements1(texts ...string) (out []Statement) {
	for _, text := range texts {
		out = append(out, Statement{Text: text})
	}
	return out
}

func TestABatchLandsWholeOrNotAtAll(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (n int @unique, tag text @hash)`)
	mustExec(t, db, `put c [{n: 1, tag: "a"}, {n: 2, tag: "b"}]`)
	before, seq := dump(t, db), db.Stats().Seq
	cases := map[string]struct {
		texts []string
		at    int
		kind  fail.Kind
	}{
		"a taken unique value puts the writes before it back":    {[]string{`put c {n: 3}`, `del c where n = 1`, `put c {n: 2}`}, 2, fail.Conflict},
		"a new collection is put back too":                       {[]string{`create collection d (x int)`, `put d {x: 1}`, `put d {y: 1}`}, 2, fail.NotFound},
		"a dropped collection comes back with its documents":     {[]string{`drop collection c`, `create collection c (z text)`, `put c {z: "x"}`, `get nothing`}, 3, fail.NotFound},
		"an index that cannot be is put back":                    {[]string{`put c {n: 9, tag: "a"}`, `create index on c (tag) @unique`}, 1, fail.Conflict},
		"require refuses everything of its block":                {[]string{`put c {n: 4}`, `set c {tag: "x"} where n > 1 require 1`}, 1, fail.Require},
		"a statement that does not parse keeps all from running": {[]string{`put c {n: 5}`, `put c {`}, 1, fail.Invalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, at, err := db.Batch(context.Background(), Everything(), statements1(tc.texts...))
			wantKind(t, err, tc.kind)
			if at != tc.at {
				t.Errorf("it failed at statement %d, want %d: %v", at, tc.at, err)
			}
			if after := dump(t, db); after != before {
				t.Errorf("the database changed:\n%s\nwas:\n%s", after, before)
			}
			if got := db.Stats().Seq; got != seq {
				t.Errorf("the change counter is %d, was %d", got, seq)
			}
			wantRows(t, db, `get c where tag = "b"`, `[{"id":2,"n":2,"tag":"b"}]`)
			wantRows(t, db, `get c where n = 1`, `[{"id":1,"n":1,"tag":"a"}]`)
		})
	}
	mustExec(t, db, `put c {n: 6}`)
	wantRows(t, db, `get c where n = 6 select id`, `[{"id":3}]`)
	after := dump(t, db)
	db.Close()
	if got := dump(t, reopen(t, Options{FS: fs})); got != after {
		t.Errorf("reopened:\n%s\nwas:\n%s", got, after)
	}
}

func TestABatchReadsItsOwnWrites(t *testing.T) {
	db := inMemory(t, Options{})
	results, _, err := db.Batch(context.Background(), Everything(), statements1(
		`create collection c (n int @sorted)`, `put c [{n: 2}, {n: 1}]`, `get c order n select n`, `set c {n: n + 1}`, `get c where n >= 3 count`))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(results[2].Body); got != `[{"n":1},{"n":2}]` {
		t.Errorf("the read within the batch answered %s", got)
	}
	if got := string(results[4].Body); got != `{"count":1}` && got != `[{"count":1}]` {
		t.Errorf("the count within the batch answered %s", got)
	}
	for i, r := range results {
		if r.Seq != 5 {
			t.Errorf("result %d names change %d, want 5", i, r.Seq)
		}
	}
}

func TestIDsAreNeverReused(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (n int)`)
	mustExec(t, db, `put c [{n: 1}, {n: 2}, {n: 3}]`)
	mustExec(t, db, `put c {id: 10, n: 4}`)
	mustExec(t, db, `del c where id >= 3`)
	next := func(db *DB, want string) {
		t.Helper()
		mustExec(t, db, `put c {n: 9}`)
		wantRows(t, db, `get c where n = 9 select id`, want)
		mustExec(t, db, `del c where n = 9`)
	}
	next(db, `[{"id":11}]`)
	db.Close()
	db = reopen(t, Options{FS: fs})
	next(db, `[{"id":12}]`)
	seq := db.Stats().Seq
	mustExec(t, db, `compact`)
	next(db, `[{"id":13}]`)
	db.Close()
	db = reopen(t, Options{FS: fs})
	next(db, `[{"id":14}]`)
	if got := db.Stats().Seq; got != seq+4 {
		t.Errorf("the change counter is %d after compact and reopen, want %d", got, seq+4)
	}
	mustExec(t, db, `put c {id: 9223372036854775807, n: 5}`)
	_, err := exec(db, `put c {n: 6}`)
	wantKind(t, err, fail.Conflict)
}

func TestUniqueValuesAreCheckedAtTheEndOfTheStatement(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int @unique, j json)`)
	mustExec(t, db, `create index on c (j.key) @unique`)
	mustExec(t, db, `put c [{n: 1, j: {key: "a"}}, {n: 2, j: {key: "b"}}, {n: null}, {n: null}]`)
	mustExec(t, db, `set c {n: 3 - n} where n is not null`)
	wantRows(t, db, `get c where n is not null select id, n`, `[{"id":1,"n":2},{"id":2,"n":1}]`)
	_, err := exec(db, `put c {j: {key: "a"}}`)
	wantKind(t, err, fail.Conflict)
	if _, at, err := db.Batch(context.Background(), Everything(), statements1(`del c where n = 2`, `put c {n: 2, j: {key: "a"}}`)); err != nil {
		t.Errorf("a block may free a value and take it again, it failed at %d: %v", at, err)
	}
}
