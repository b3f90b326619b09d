package engine

import (
	"strings"
	"testing"
	"time"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"
)

// TestExpireDeletesInBlocksOfBoundedSize counts them.
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

// TestExpireWritesNothingWhereNoWriteMay has something to delete in databases that take none.
func TestExpireWritesNothingWhereNoWriteMay(t *testing.T) {
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

// TestAUniqueIndexBuiltBesideTheDatabaseLeavesOutWhatIsGone declares one over documents of which the living differ.
func TestAUniqueIndexBuiltBesideTheDatabaseLeavesOutWhatIsGone(t *testing.T) {
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
