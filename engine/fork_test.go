package engine

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"fenec/engine/fail"
	"fenec/engine/wal"
	"fenec/internal/vfs"
	"fenec/internal/vfs/crashfs"
)

// contentOf returns the bytes of a file.
func contentOf(tb testing.TB, fs vfs.FS, name string) []byte {
	tb.Helper()
	f, err := fs.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		tb.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		tb.Fatal(err)
	}
	return b
}

// putBack replaces the content of a file by b, on disk.
func putBack(tb testing.TB, fs vfs.FS, name string, b []byte) {
	tb.Helper()
	f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, 0); err != nil {
		tb.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		tb.Fatal(err)
	}
}

// position is a change and its history, as a reader receives it.
type position struct {
	seq     uint64
	history string
}

func positionOf(db *DB) (p position) {
	p.seq, p.history = db.Position()
	return p
}

func wantRelation(t *testing.T, db *DB, what string, p position, want Relation) {
	t.Helper()
	if got, err := db.Relation(p.seq, []byte(p.history)); got != want || err != nil {
		t.Errorf("%s, change %d of %s: standing %d, %v, want %d", what, p.seq, p.history, got, err, want)
	}
}

// opened is a database on fs with three changes.
func opened(t *testing.T, fs *crashfs.FS) *DB {
	t.Helper()
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (n int)`)
	mustExec(t, db, `put c [{n: 1}, {n: 2}]`)
	return db
}

func TestAnOpenThatOnlyReadsWritesAndForksNothing(t *testing.T) {
	fs := crashfs.New(1)
	db := opened(t, fs)
	before := positionOf(db)
	db.Close()
	closed, ops := contentOf(t, fs, file), fs.Ops()
	for range 2 {
		db = reopen(t, Options{FS: fs, Sync: always})
		wantRows(t, db, `get c`, `[{"id":1,"n":1},{"id":2,"n":2}]`)
		mustExec(t, db, `set c {n: 0} where n = 77`) // a write that changes nothing
		if _, err := exec(db, `put c {id: 'x'}`); err == nil {
			t.Error("what is no id is taken")
		}
		if got := positionOf(db); got != before {
			t.Errorf("opened again it is at %v, closed at %v", got, before)
		}
		db.Close()
	}
	if fs.Ops() != ops || !bytes.Equal(contentOf(t, fs, file), closed) {
		t.Errorf("%d operations, and the file has %d bytes of %d", fs.Ops()-ops, len(contentOf(t, fs, file)), len(closed))
	}
}

// TestWhenAnOpenBeginsAHistory closes or abandons a file in every way, and reopens it.
func TestWhenAnOpenBeginsAHistory(t *testing.T) {
	kill := func(*testing.T, *crashfs.FS, *DB) {}
	for name, c := range map[string]struct {
		leave func(t *testing.T, fs *crashfs.FS, db *DB)
		lost  uint64 // changes that are not in the file
		now   bool   // another history begins when the file is opened
	}{
		"closed in order": {leave: func(_ *testing.T, _ *crashfs.FS, db *DB) { db.Close() }},
		"frozen, then killed": {leave: func(t *testing.T, _ *crashfs.FS, db *DB) {
			if _, err := db.Freeze(); err != nil {
				t.Fatal(err)
			}
		}},
		"killed": {leave: kill, now: true},
		"killed after a sync": {leave: func(t *testing.T, _ *crashfs.FS, db *DB) {
			if err := db.Sync(); err != nil {
				t.Fatal(err)
			}
		}, now: true},
		"killed, with a change that was never written": {leave: func(t *testing.T, fs *crashfs.FS, db *DB) {
			fs.Hook(func(op crashfs.Op, _ string) error { return syscall.EIO })
			if _, err := exec(db, `put c {n: 3}`); err == nil {
				t.Error("a write that failed is answered")
			}
			fs.Hook(nil)
		}, now: true},
		"closed after a sync that failed": {leave: func(t *testing.T, fs *crashfs.FS, db *DB) {
			fs.Hook(func(op crashfs.Op, _ string) error { return syscall.EIO })
			db.Close()
			fs.Hook(nil)
		}, now: true},
		"cut by a power loss": {leave: func(t *testing.T, fs *crashfs.FS, db *DB) {
			b := contentOf(t, fs, file)
			putBack(t, fs, file, b[:len(b)-1])
		}, lost: 2, now: true},
	} {
		t.Run(name, func(t *testing.T) {
			fs := crashfs.New(1)
			db := opened(t, fs)
			was := positionOf(db)
			c.leave(t, fs, db)
			db = reopen(t, Options{FS: fs})
			end := position{was.seq - c.lost, was.history}
			wantRelation(t, db, "the last one there is", end, Included)
			wantRelation(t, db, "one that reads may have shown", position{was.seq + 1, was.history}, Diverged)
			wantRelation(t, db, "one that is gone", position{was.seq - c.lost + 1, was.history}, Diverged)
			now := positionOf(db)
			if now.seq != end.seq || (now.history != was.history) != c.now {
				t.Errorf("opened it is at %v, and was left at %v", now, was)
			}
			mustExec(t, db, `put c {n: 4}`)
			wrote := positionOf(db)
			if c.now && wrote.history != now.history || wrote.history == was.history || wrote.history[:2] != "2-" || wrote.history[2:18] != was.history[2:18] {
				t.Errorf("what it writes is of %s, it was at %v as it was opened and at %v as it was left", wrote.history, now, was)
			}
			wantRelation(t, db, "the next one", position{wrote.seq + 1, wrote.history}, Ahead)
			wantRelation(t, db, "the last one there was", end, Included)
			wantRelation(t, db, "the first one since, of the history before", position{wrote.seq, was.history}, Diverged)
			for seq, want := range map[uint64]string{end.seq: was.history, wrote.seq: wrote.history} {
				if got := db.HistoryAt(seq); got != want {
					t.Errorf("change %d is of %s, want %s", seq, got, want)
				}
			}
			db.Close()
			db = reopen(t, Options{FS: fs})
			if got := positionOf(db); got != wrote {
				t.Errorf("opened once more it is at %v, want %v", got, wrote)
			}
			wantRelation(t, db, "the last one there was", end, Included)
		})
	}
}

// TestTwoCopiesOfAFileWriteUnderDifferentHistories restores an older copy of a file, and opens two files made from one
// image.
func TestTwoCopiesOfAFileWriteUnderDifferentHistories(t *testing.T) {
	diverge := func(t *testing.T, one, other *DB) {
		t.Helper()
		fork := positionOf(one)
		if got := positionOf(other); got.seq != fork.seq {
			t.Fatalf("one is at %v, the other at %v", fork, got)
		}
		var ends []position
		for _, db := range []*DB{one, other} {
			res := mustExec(t, db, `put c {n: 10}`)
			ends = append(ends, position{res.Seq, res.History})
			if p := positionOf(db); p != ends[len(ends)-1] {
				t.Errorf("a write is answered %v, and is at %v", ends, p)
			}
		}
		if ends[0] == ends[1] {
			t.Errorf("both have written %v", ends[0])
		}
		wantRelation(t, one, "of the other", ends[1], Diverged)
		wantRelation(t, other, "of the other", ends[0], Diverged)
		wantRelation(t, one, "of both", position{fork.seq, one.HistoryAt(fork.seq)}, Included)
		wantRelation(t, other, "of both", position{fork.seq, one.HistoryAt(fork.seq)}, Included)
	}
	for _, leave := range []string{"closed in order", "killed"} {
		t.Run("yesterday's file, "+leave, func(t *testing.T) {
			fs := crashfs.New(1)
			db := opened(t, fs)
			if leave == "closed in order" {
				db.Close()
			}
			yesterday := contentOf(t, fs, file)
			today := reopen(t, Options{FS: fs})
			mustExec(t, today, `put c {n: 5}`)
			lost := positionOf(today)
			today.Close()
			putBack(t, fs, file, yesterday)
			db = reopen(t, Options{FS: fs})
			wantRelation(t, db, "of today, before a write", lost, Diverged)
			mustExec(t, db, `put c {n: 6}`)
			wantRelation(t, db, "of today", lost, Diverged)
			if p := positionOf(db); p == lost {
				t.Errorf("change %v comes twice", p)
			}
			other := crashfs.New(2)
			putBack(t, other, file, yesterday)
			third := crashfs.New(3)
			putBack(t, third, file, yesterday)
			diverge(t, reopen(t, Options{FS: other}), reopen(t, Options{FS: third}))
		})
	}
	t.Run("an image", func(t *testing.T) {
		db := opened(t, crashfs.New(1))
		img, _ := image(t, db)
		var copies []*DB
		for range 2 {
			copied, err := InstallImage(file, bytes.NewReader(img), Options{FS: crashfs.New(1)})
			if err != nil {
				t.Fatal(err)
			}
			defer copied.Close()
			copies = append(copies, copied)
		}
		diverge(t, copies[0], copies[1])
		wantRelation(t, db, "of a copy", positionOf(copies[0]), Diverged)
	})
}

func TestAMoveContinuesTheHistoryOfItsSource(t *testing.T) {
	db := opened(t, crashfs.New(1))
	if _, err := db.Freeze(); err != nil {
		t.Fatal(err)
	}
	img, _ := image(t, db)
	there := Options{FS: crashfs.New(2)}
	moved, err := InstallImage(file, bytes.NewReader(img), there)
	if err != nil {
		t.Fatal(err)
	}
	moved.Close() // and its node restarts
	moved = reopen(t, there)
	moved.GoOn()
	mustExec(t, moved, `put c {n: 3}`)
	if got, want := positionOf(moved), positionOf(db); got.history != want.history || got.seq != want.seq+1 {
		t.Errorf("the target writes %v, the source was left at %v", got, want)
	}
}

// TestAForkIsOneRecordOnDisk forks a frozen database, as when it is put into service.
func TestAForkIsOneRecordOnDisk(t *testing.T) {
	fs := crashfs.New(1)
	db := opened(t, fs)
	if _, err := db.Freeze(); err != nil {
		t.Fatal(err)
	}
	was, size, syncs := positionOf(db), len(contentOf(t, fs, file)), fs.Count(crashfs.Sync)
	if err := db.Fork(); err != nil {
		t.Fatal(err)
	}
	if grown := len(contentOf(t, fs, file)) - size; grown > 64 || fs.Count(crashfs.Sync) != syncs+1 {
		t.Errorf("a fork takes %d bytes and %d syncs", grown, fs.Count(crashfs.Sync)-syncs)
	}
	now := positionOf(db)
	if now.seq != was.seq || now.history == was.history {
		t.Errorf("forked it is at %v, and was at %v", now, was)
	}
	db = reopen(t, Options{FS: fs.CrashKeeping(func(int) int { return 0 })})
	wantRelation(t, db, "after a power loss, what was there before", was, Included)
	wantRelation(t, db, "after a power loss, where it forked", now, Included)
	wantRelation(t, db, "past it", position{now.seq + 1, now.history}, Diverged)
}

func TestAForkThatCannotBeWrittenIsUndone(t *testing.T) {
	for _, op := range []crashfs.Op{crashfs.Write, crashfs.Sync} {
		fs := crashfs.New(1)
		db := opened(t, fs)
		was := positionOf(db)
		fs.Hook(func(o crashfs.Op, _ string) error {
			if o == op {
				return syscall.ENOSPC
			}
			return nil
		})
		wantKind(t, db.Fork(), fail.Full)
		if got := positionOf(db); got != was {
			t.Errorf("a fork that failed leaves %v, it was at %v", got, was)
		}
		wantKind(t, db.Fork(), fail.Full)
		// Opened while the disk is still full, it can be read and refuses writes as after any failure.
		db.Close()
		db = reopen(t, Options{FS: fs})
		wantRows(t, db, `get c`, `[{"id":1,"n":1},{"id":2,"n":2}]`)
		_, err := exec(db, `put c {n: 3}`)
		wantKind(t, err, fail.Full)
		if db.Stats().Failed == nil {
			t.Error("the database does not say that its storage has failed")
		}
		wantRelation(t, db, "what is there", was, Included)
		wantRelation(t, db, "what is not", position{was.seq + 1, was.history}, Diverged)
		db.Close()
		fs.Hook(nil)
		db = reopen(t, Options{FS: fs})
		mustExec(t, db, `put c {n: 3}`)
		wantRelation(t, db, "what is there", was, Included)
	}
}

// TestARewriteKeepsConcurrentForks forks while a compact runs, before its image and after it.
func TestARewriteKeepsConcurrentForks(t *testing.T) {
	fs := crashfs.New(1)
	db := opened(t, fs)
	first := positionOf(db)
	db.Close()
	db = reopen(t, Options{FS: fs})
	rw, err := db.log.Rewrite()
	if err != nil {
		t.Fatal(err)
	}
	c := &compaction{db: db, ctx: t.Context(), rewrite: rw}
	c.emit = func(record []byte) error { return c.append(wal.Image, record) }
	h, tables := c.snapshot()
	if err := c.write(t.Context(), h, tables); err != nil {
		t.Fatal(err)
	}
	c.blocked = len(c.memory.segments)
	var at []position
	step := func(do func()) {
		do()
		at = append(at, positionOf(db))
	}
	step(func() { mustExec(t, db, `put c {n: 3}`) }) // which begins a history
	step(func() { mustExec(t, db, `put c {n: 4}`) })
	fork := func() {
		if err := db.Fork(); err != nil {
			t.Fatal(err)
		}
	}
	step(fork)
	if err := c.follow(); err != nil {
		t.Fatal(err)
	}
	step(fork)
	step(func() { mustExec(t, db, `put c {n: 5}`) })
	step(fork)
	if err := c.swap(); err != nil {
		t.Fatal(err)
	}
	step(func() { mustExec(t, db, `put c {n: 6}`) })
	db.Close()
	db = reopen(t, Options{FS: fs})
	if got, want := positionOf(db), at[len(at)-1]; got != want {
		t.Errorf("opened again it is at %v, want %v", got, want)
	}
	for _, p := range append(at, first) {
		wantRelation(t, db, "what was there", p, Included)
	}
	for _, p := range at[:2] {
		if got := db.HistoryAt(p.seq); got != p.history {
			t.Errorf("change %d is of %s, want %s", p.seq, got, p.history)
		}
	}
}

// TestALineageIsBounded opens and writes a file more times than the number of histories it keeps.
func TestALineageIsBounded(t *testing.T) {
	fs := crashfs.New(1)
	db := opened(t, fs)
	var at []position
	const opens = 3*keptBranches + 10
	for i := range opens {
		if i%500 == 0 {
			db.Close()
			db = reopen(t, Options{FS: fs})
		}
		db.ours = false // as an open leaves it
		if err := db.fillRandom(db.own[:]); err != nil {
			t.Fatal(err)
		}
		mustExec(t, db, `put c {id: 1, n: 7}`)
		at = append(at, positionOf(db))
	}
	check := func(what string) {
		t.Helper()
		if n := len(db.left); n > 2*keptBranches {
			t.Fatalf("%s: %d histories are kept", what, n)
		}
		for i, p := range at {
			got, err := db.Relation(p.seq, []byte(p.history))
			if err != nil || i >= opens-keptBranches && got != Included || got == Ahead {
				t.Fatalf("%s: %d opens later a position relates as %d, %v", what, opens-i, got, err)
			}
		}
		wantRelation(t, db, what, position{at[0].seq, at[0].history}, Diverged)
	}
	check("as it is")
	mustExec(t, db, `compact`)
	if size := len(contentOf(t, fs, file)); size > 2*keptBranches*branchSize+4096 {
		t.Errorf("compacted the file has %d bytes", size)
	}
	check("compacted")
	db.Close()
	db = reopen(t, Options{FS: fs})
	check("compacted and opened")
}

func TestAnImpossibleForkIsDamage(t *testing.T) {
	other := historyOf(9, 3, 3)
	for name, f := range map[string]func(db *DB) []byte{
		"cut short":          func(db *DB) []byte { return fork{db.nextHistory(db.own), db.seq}.record()[:40] },
		"at another change":  func(db *DB) []byte { return fork{db.nextHistory(db.own), db.seq + 1}.record() },
		"of an earlier term": func(db *DB) []byte { return fork{db.history, db.seq}.record() },
		"of another lineage": func(db *DB) []byte { return fork{other, db.seq}.record() },
	} {
		t.Run(name, func(t *testing.T) {
			fs := crashfs.New(1)
			db := opened(t, fs)
			db.last = db.log.Stage(wal.Fork, f(db))
			db.Close()
			_, err := Open(file, Options{FS: fs})
			wantKind(t, err, fail.Damaged)
			r, err := Check(fs, file, "")
			if err != nil || r.Sound() || !strings.Contains(strings.Join(r.Problems, " "), "a fork") {
				t.Errorf("check says %v, %v", r.Problems, err)
			}
		})
	}
}

// TestSalvageKeepsForks damages a block between two forks.
func TestSalvageKeepsForks(t *testing.T) {
	fs := crashfs.New(1)
	db := opened(t, fs)
	at := []position{positionOf(db)}
	for _, text := range []string{"first", "second", "third"} {
		db.Close()
		db = reopen(t, Options{FS: fs})
		mustExec(t, db, fmt.Sprintf(`create collection %s (n int)`, text))
		at = append(at, positionOf(db))
	}
	db.Close()
	b := contentOf(t, fs, file)
	b[bytes.Index(b, []byte("second"))] ^= 1
	putBack(t, fs, file, b)
	const saved = "/saved.fenec"
	if _, err := Check(fs, file, saved); err != nil {
		t.Fatal(err)
	}
	db, err := Open(saved, Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i, p := range at {
		want := Included
		if i > 1 {
			want = Diverged
		}
		wantRelation(t, db, fmt.Sprintf("position %d", i), p, want)
	}
	if p := positionOf(db); p.history[:2] != "5-" {
		t.Errorf("what was saved is at %v", p)
	}
}
