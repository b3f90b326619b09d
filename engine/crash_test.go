package engine

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"fenec/engine/fail"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"
)

// work is a sequence of blocks of every kind, with a compact in the middle.
var work = strings.Split(strings.TrimSpace(`
create collection c (n int @unique, tag text @sorted, j json)
put c [{n: 1, tag: "one"}, {n: 2, tag: "two", j: {deep: [1, 2.5, "x"]}}]
create collection d (x int)
put d {x: 1}
set c {tag: "new"} where n = 1
del c where n = 2
create index on c (j.deep) @hash
put c [{n: 2}, {n: 3}, {n: 4}]
drop collection d
compact
put c {n: 5, tag: "five"}
set c {n: n + 10}
create collection d (y text)
put d {y: "again"}
alter collection c add field extra int @sorted
set c {extra: 1 - n, j.deep: 7} where n > 12
alter collection c rename field j to meta
alter collection c drop field tag
compact
alter collection c drop field extra
create collection e (at timestamp @ttl(1s), x int)
put e [{at: 0}, {at: 0}, {x: 1}]
expire
put c {n: 6, meta: {deep: 8}}
del c where n > 13
`), "\n")

// step runs one line of the work.
func step(db *DB, text string) (Result, error) {
	if text == "expire" {
		_, err := db.Expire()
		return Result{}, err
	}
	return exec(db, text)
}

// states returns the content of the database after each number of statements of the work, from none to all.
func states(t *testing.T) []string {
	t.Helper()
	db := inMemory(t, Options{})
	out := []string{dump(t, db)}
	for _, text := range work {
		if _, err := step(db, text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		out = append(out, dump(t, db))
	}
	return out
}

// runWork runs the work until the first error and returns how many statements were acknowledged.
func runWork(fs *crashfs.FS, o Options) (acknowledged int, err error) {
	o.FS = fs
	db, err := Create(file, o)
	if err != nil {
		return -1, err
	}
	defer db.Close()
	for i, text := range work {
		if _, err := step(db, text); err != nil {
			return i, err
		}
	}
	return len(work), nil
}

// TestACrashAtAnyOperationKeepsAcknowledgedWrites loses power at every operation in turn, with several choices of
// what the disk keeps. The file then opens as after some statement, never before the last acknowledged one, and accepts writes.
func TestACrashAtAnyOperationKeepsAcknowledgedWrites(t *testing.T) {
	want := states(t)
	whole := crashfs.New(1)
	if n, err := runWork(whole, Options{Sync: always}); err != nil {
		t.Fatalf("statement %d failed without a fault: %v", n, err)
	}
	for k := 1; k <= whole.Ops(); k++ {
		for seed := range uint64(4) {
			fs := crashfs.New(seed)
			fs.PowerOffAt(k)
			acknowledged, err := runWork(fs, Options{Sync: always})
			if err == nil && k < whole.Ops() { // the last operation marks the file as closed in order
				t.Fatalf("operation %d: the work did not notice that the power was off", k)
			}
			checkCrashed(t, fmt.Sprintf("operation %d, seed %d", k, seed), fs.Crash(), want, acknowledged)
		}
	}
}

func checkCrashed(t *testing.T, name string, fs *crashfs.FS, want []string, acknowledged int) {
	t.Helper()
	db, err := Open(file, Options{FS: fs, Sync: always})
	if acknowledged < 0 && err != nil {
		return // the creation of the database was not acknowledged
	}
	if err != nil {
		t.Fatalf("%s: after %d answered statements the file does not open: %v", name, acknowledged, err)
	}
	defer db.Close()
	got := dump(t, db)
	for i := max(acknowledged, 0); i < len(want); i++ {
		if got == want[i] {
			mustExec(t, db, `create collection probe (x int)`)
			return
		}
	}
	t.Fatalf("%s: %d statements were answered, and what opened is none of the states from there on:\n%s", name, acknowledged, got)
}

// TestAFailedOperationStopsWritesAndLosesNothing fails every operation in turn and continues. Acknowledged writes stay
// readable and survive a crash, failed ones are not visible.
func TestAFailedOperationStopsWritesAndLosesNothing(t *testing.T) {
	want := states(t)
	whole := crashfs.New(1)
	if _, err := runWork(whole, Options{Sync: always}); err != nil {
		t.Fatal(err)
	}
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC} {
		for k := 1; k <= whole.Ops(); k++ {
			name := fmt.Sprintf("%v at operation %d", fault, k)
			fs := crashfs.New(uint64(k))
			fs.FailAt(k, fault)
			failAndGoOn(t, name, fs, want)
		}
	}
}

func failAndGoOn(t *testing.T, name string, fs *crashfs.FS, want []string) {
	t.Helper()
	db, err := Create(file, Options{FS: fs, Sync: always})
	if err != nil {
		return
	}
	defer db.Close()
	acknowledged := 0
	for _, text := range work {
		before := dump(t, db)
		_, err := step(db, text)
		if err == nil {
			acknowledged++
			continue
		}
		if kind := fail.KindOf(err); kind != fail.Storage && kind != fail.Full {
			t.Fatalf("%s: %s failed as %v", name, text, err)
		}
		if got := dump(t, db); got != before && got != want[acknowledged+1] {
			t.Fatalf("%s: after %s failed reads see neither what was nor what the statement would have made:\n%s", name, text, got)
		}
		if db.Stats().Failed == nil {
			return // a rewrite that is given up leaves the database unchanged
		}
		if _, err := exec(db, `create collection late (x int)`); err == nil {
			t.Fatalf("%s: a write was taken after the storage had failed", name)
		}
		break
	}
	checkCrashed(t, name, fs.Crash(), want, acknowledged)
}

// TestAFullDiskLosesNothing fills the disk during writes and frees it again.
func TestAFullDiskLosesNothing(t *testing.T) {
	fs := crashfs.New(7)
	db := inMemory(t, Options{FS: fs, Sync: wal.Policy{}})
	mustExec(t, db, `create collection c (body text)`)
	fs.SetSpace(10_000)
	answered := 0
	var err error
	for err == nil {
		if _, err = exec(db, `put c {body: "`+strings.Repeat("x", 100)+`"}`); err == nil {
			answered++
		}
	}
	wantKind(t, err, fail.Full)
	count := fmt.Sprintf(`[{"count":%d}]`, answered)
	wantRows(t, db, `get c count`, count)
	_, err = exec(db, `put c {body: "y"}`)
	wantKind(t, err, fail.Full)
	db.Close()
	fs.SetSpace(-1)
	db = reopen(t, Options{FS: fs})
	wantRows(t, db, `get c count`, count)
	mustExec(t, db, `put c {body: "there is room again"}`)
}

func TestAReadOnlyDatabaseRefusesWrites(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (n int)`)
	db.Close()
	ops := fs.Ops()
	db = reopen(t, Options{FS: fs, ReadOnly: true})
	wantRows(t, db, `get c`, `[]`)
	_, err := exec(db, `put c {n: 1}`)
	wantKind(t, err, fail.ReadOnly)
	_, err = exec(db, `compact`)
	wantKind(t, err, fail.ReadOnly)
	db.Close()
	if fs.Ops() != ops {
		t.Errorf("reading changed the file system %d times", fs.Ops()-ops)
	}
}

func TestAFileThatIsNotOursIsRefusedByName(t *testing.T) {
	for name, content := range map[string]string{"an empty file": "", "another format": "SQLite format 3\x00 and more of it"} {
		fs := crashfs.New(1)
		f, err := fs.OpenFile(file, 0o102, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(content), 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = Open(file, Options{FS: fs})
		if fail.KindOf(err) != fail.Damaged {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open("/nothing", Options{FS: crashfs.New(1)}); !errors.Is(err, syscall.ENOENT) && err == nil {
		t.Error("a file that is not there was opened")
	}
}
