package engine

import (
	"strings"
	"testing"
	"time"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"
)

// TestExpireDeletesInBlocksOfBoundedSize counts the documents of each block.
func TestExpireDeletesInBlocksOfBoundedSize(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	fs := crashfs.New(1)
	o := Options{FS: fs, Clock: func() time.Time { return now }}
	db := inMemory(t, o)
	mustExec(t, db, `create collection c (at timestamp @ttl(1s))`)
	mustExec(t, db, `create collection d (at timestamp @ttl(1s))`)
	for _, name := range []string{"c", "d"} {
		mustExec(t, db, `put `+name+` [`+strings.Repeat(`{at: now()},`, 699)+`{at: now()}, {}]`)
	}
	wantExpired(t, db, 0)
	now = now.Add(time.Second)
	wantRows(t, db, `get c`, `[{"id":701,"at":null}]`)
	db.Close()
	db = reopen(t, o)
	wantExpired(t, db, ExpireBlock)
	wantExpired(t, db, 1400-ExpireBlock)
	wantExpired(t, db, 0)
	if n := db.Stats().Documents; n != 2 {
		t.Errorf("%d documents are left, want 2", n)
	}
}

func wantExpired(t *testing.T, db *DB, want int) {
	t.Helper()
	if got, err := db.Expire(); got != want || err != nil {
		t.Errorf("%d documents were deleted, %v, want %d", got, err, want)
	}
}

// TestExpireWritesNothingIfWritesAreRefused expires documents of databases that refuse writes.
func TestExpireWritesNothingIfWritesAreRefused(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs, Sync: always})
	mustExec(t, db, `create collection c (at timestamp @ttl(1s))`)
	mustExec(t, db, `put c [{at: 0}, {}]`)
	if _, err := db.Freeze(); err != nil {
		t.Fatal(err)
	}
	wantExpired(t, db, 0)
	db.Close()
	wantExpired(t, db, 0)
	db = reopen(t, Options{FS: fs, ReadOnly: true})
	wantExpired(t, db, 0)
	wantRows(t, db, `get c`, `[{"id":2,"at":null}]`)
	db.Close()
	db = reopen(t, Options{FS: fs, Sync: always})
	fs.SetSpace(0)
	if _, err := db.Expire(); fail.KindOf(err) != fail.Full {
		t.Errorf("a full disk: %v", err)
	}
	fs.SetSpace(-1)
	wantExpired(t, db, 0)
	wantRows(t, db, `get c`, `[{"id":2,"at":null}]`)
	db.Close()
	wantExpired(t, reopen(t, Options{FS: fs}), 1)
}

// TestAUniqueIndexBuiltConcurrentlyLeavesOutExpiredRows declares the index over documents whose live ones have distinct values.
func TestAUniqueIndexBuiltConcurrentlyLeavesOutExpiredRows(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (u int, at timestamp @ttl(1s))`)
	mustExec(t, db, `put c [{u: 1, at: 0}, {u: 1}, {u: 1, at: 0}, {u: 2}]`)
	mustExec(t, db, `create index on c (u) @unique`)
	_, err := exec(db, `put c {u: 1}`)
	wantKind(t, err, fail.Conflict)
	mustExec(t, db, `put c {u: 1, at: 0}`)
	mustExec(t, db, `set c {u: 3} where u = 1`)
	mustExec(t, db, `put c {u: 1}`)
}

// TestAClockSetBackNeverDuplicatesAUniqueValue takes the value of an expired row, with every kind of statement, and sets the
// clock back to before the row expired.
func TestAClockSetBackNeverDuplicatesAUniqueValue(t *testing.T) {
	for _, c := range []struct {
		name, declared string // of the field u
		writes         []string
		want           string // with the clock set back
		stored         int
	}{
		{"an insert takes it", "@unique", []string{`insert c {u: "a"}`}, `[{"id":2,"u":"b"},{"id":3,"u":"a"}]`, 2},
		{"a put takes it", "@unique", []string{`put c {u: "a"}`}, `[{"id":2,"u":"b"},{"id":3,"u":"a"}]`, 2},
		{"an upsert takes it", "@unique", []string{`put c {id: 2, u: "a"}`}, `[{"id":2,"u":"a"}]`, 1},
		{"a set takes it", "@unique", []string{`set c {u: "a"}`}, `[{"id":2,"u":"a"}]`, 1},
		{"its own id is taken", "@unique", []string{`insert c {id: 1, u: "a"}`}, `[{"id":1,"u":"a"},{"id":2,"u":"b"}]`, 2},
		{"its id is taken with another value", "@unique", []string{`insert c {id: 1, u: "c"}`, `put c {u: "a"}`}, `[{"id":1,"u":"c"},{"id":2,"u":"b"},{"id":3,"u":"a"}]`, 3},
		{"two whose time is over", "@unique", []string{`put c {u: "a", at: 0}`}, `[{"id":2,"u":"b"},{"id":3,"u":"a"}]`, 2},
		{"the newcomer's time is over", "@unique", []string{`put c {u: "b", at: 0}`}, `[{"id":1,"u":"a"},{"id":2,"u":"b"}]`, 2},
		{"an index made later, two whose time is over", "", []string{`put c {u: "a", at: 0}`, `create index on c (u) @unique`}, `[{"id":2,"u":"b"}]`, 1},
		{"an index made later, one whose time is over", "", []string{`put c {u: "a"}`, `create index on c (u) @unique`}, `[{"id":2,"u":"b"},{"id":3,"u":"a"}]`, 2},
		{"a path", "json", []string{`put c {j: {k: "a"}}`}, `[{"id":2,"u":"b"},{"id":3,"u":null}]`, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.UnixMilli(1000)
			db := inMemory(t, Options{Clock: func() time.Time { return now }})
			if c.declared == "json" {
				mustExec(t, db, `create collection c (u text, j json, at timestamp @ttl(1s))`)
				mustExec(t, db, `create index on c (j.k) @unique`)
				mustExec(t, db, `put c [{u: "a", j: {k: "a"}, at: 0}, {u: "b"}]`)
			} else {
				mustExec(t, db, `create collection c (u text `+c.declared+`, at timestamp @ttl(1s))`)
				mustExec(t, db, `put c [{u: "a", at: 0}, {u: "b"}]`)
			}
			for _, w := range c.writes {
				mustExec(t, db, w)
			}
			if got := db.Stats().Documents; got != c.stored {
				t.Errorf("%d rows are stored, want %d", got, c.stored)
			}
			now = time.UnixMilli(500)
			wantRows(t, db, `get c select id, u`, c.want)
		})
	}
}

// TestARefusedWriteRestoresTheExpiredRowItReplaced takes the value of an expired row in a block that fails.
func TestARefusedWriteRestoresTheExpiredRowItReplaced(t *testing.T) {
	now := time.UnixMilli(1000)
	db := inMemory(t, Options{Clock: func() time.Time { return now }})
	mustExec(t, db, `create collection c (u text @unique, at timestamp @ttl(1s))`)
	mustExec(t, db, `put c [{u: "a", at: 0}, {u: "b"}]`)
	_, _, err := db.Batch(t.Context(), Everything(), []Statement{{Text: `put c {u: "a"}`}, {Text: `insert c {id: 2}`}})
	wantKind(t, err, fail.Conflict)
	now = time.UnixMilli(500)
	wantRows(t, db, `get c select id, u`, `[{"id":1,"u":"a"},{"id":2,"u":"b"}]`)
	_, err = exec(db, `put c {u: "a"}`)
	wantKind(t, err, fail.Conflict)
}

// TestAUniqueIndexIsCheckedAtTheTimeOfItsBlock sets the clock back after an index is built and before its block.
func TestAUniqueIndexIsCheckedAtTheTimeOfItsBlock(t *testing.T) {
	now, looks := time.UnixMilli(1000), 0
	db := inMemory(t, Options{Clock: func() time.Time {
		if looks--; looks == 0 {
			defer func() { now = time.UnixMilli(500) }()
		}
		return now
	}})
	mustExec(t, db, `create collection c (u text, at timestamp @ttl(1s))`)
	mustExec(t, db, `put c [{u: "a", at: 0}, {u: "a"}]`)
	looks = 1
	_, err := exec(db, `create index on c (u) @unique`)
	wantKind(t, err, fail.Conflict)
	wantRows(t, db, `get c select id, u`, `[{"id":1,"u":"a"},{"id":2,"u":"a"}]`)
}
