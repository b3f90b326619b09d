package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"
)

// everything returns dump and what no statement shows: the counters, and the indexes, each of which must equal a newly built
// one.
func everything(tb testing.TB, db *DB) string {
	tb.Helper()
	out := dump(tb, db) + fmt.Sprintf("change %d, %d tables handed out\n", db.seq, db.counted)
	for _, name := range slices.Sorted(maps.Keys(db.tables)) {
		t := db.tables[name]
		out += fmt.Sprintf("%s: number %d, next %d, live %d, paths %v\n", name, t.number, t.next, t.live, t.schema.Paths)
		checkIndexes(tb, db, t)
	}
	return out
}

// indexed returns a database with every index built.
func indexed(t *testing.T, o Options) *DB {
	t.Helper()
	db := inMemory(t, o)
	mustExec(t, db, `create collection c (n int @unique, tag text @sorted, j json, v vector<2> @hnsw(l2), s sparse<9> @inverted, t text @text)`)
	mustExec(t, db, `create index on c (j.k) @hash`)
	mustExec(t, db, `put c [{n: 1, tag: "a", j: {k: 1}, v: [1, 2], t: "one"}, {n: 2, tag: "b", j: {k: 1}, s: "{1:2}/9"}, {n: 3, v: [3, 4], t: "three"}, {id: 20, n: 4, tag: "a", v: [1, 2], s: "{1:1,5:5}/9"}]`)
	mustExec(t, db, `create collection d (x int @sorted)`)
	mustExec(t, db, `put d [{x: 1}, {x: 2}]`)
	mustExec(t, db, `del c where n = 3`)
	for _, text := range []string{`get c where n = 1`, `get c order tag`, `get c where j.k = 1`, `get d order x`, `get c near v [1, 1] limit 9`, `get c near s "{1:1}/9" limit 9`, `get c match t "one"`} {
		mustExec(t, db, text)
	}
	return db
}

// blocks are writes of every kind, each of which needs those before it.
var blocks = []string{
	`put c [{n: 5, tag: "c"}, {id: 30, n: 6, j: {k: 2}}]`,
	`set c {n: 100 - n, tag: "z"} where n <= 2`,
	`del c where n > 90`,
	`put c {id: 20, n: 2, v: [5, 6], s: "{5:5}/9", t: "one more"}`,
	`drop collection d`,
	`create collection d (y text @unique)`,
	`put d {y: "x"}`,
	`create index on c (j.h) @sorted`,
	`create collection e (z int)`,
	`put e {id: 7, z: 1}`,
	`drop collection e`,
}

func TestAnUndoneBlockLeavesNothing(t *testing.T) {
	db := indexed(t, Options{})
	before := everything(t, db)
	for n := range blocks {
		texts := append(slices.Clone(blocks[:n+1]), `get nothing`)
		if _, _, err := db.Batch(context.Background(), Everything(), statements1(texts...)); fail.KindOf(err) != fail.NotFound {
			t.Fatalf("%d statements: %v", n+1, err)
		}
		if after := everything(t, db); after != before {
			t.Fatalf("%d statements taken back:\n%s\nwas:\n%s", n+1, after, before)
		}
	}
}

// TestAFailedSyncUndoesEveryBlockThatWaitedForIt stages blocks of every kind after one whose sync will fail.
func TestAFailedSyncUndoesEveryBlockThatWaitedForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := crashfs.New(1)
		db := indexed(t, Options{FS: fs, Sync: always})
		defer db.Close()
		before := everything(t, db)
		release := make(chan bool)
		fs.Hook(func(op crashfs.Op, _ string) error {
			if op != crashfs.Sync {
				return nil
			}
			<-release
			return syscall.EIO
		})
		answers := make(chan error, len(blocks))
		for _, text := range blocks {
			go func() {
				_, err := exec(db, text)
				answers <- err
			}()
			synctest.Wait() // it is staged and waits for the sync
		}
		if len(answers) > 0 {
			t.Fatalf("a write was answered before its sync: %v", <-answers)
		}
		close(release)
		for range blocks {
			wantKind(t, <-answers, fail.Storage)
		}
		if after := everything(t, db); after != before {
			t.Errorf("after the failure:\n%s\nwas:\n%s", after, before)
		}
	})
}

// panicking is a context that panics when it is polled.
type panicking struct{ context.Context }

func (panicking) Err() error { panic("asked") }

func TestAWriteThatPanicsIsUndoneAndLetsOthersWrite(t *testing.T) {
	db := indexed(t, Options{})
	before := everything(t, db)
	rows := make([]byte, 0, 1<<16)
	for range 5000 {
		rows = append(rows, `{tag: "x"},`...)
	}
	text := `put c [` + string(rows[:len(rows)-1]) + `]`
	run := map[string]func(){
		"a statement": func() { _, _ = db.Exec(panicking{context.Background()}, Everything(), Statement{Text: text}, nil) },
		"a batch": func() {
			_, _, _ = db.Batch(panicking{context.Background()}, Everything(), statements1(`put c {n: 50}`, text))
		},
	}
	for name, fn := range run {
		func() {
			defer func() {
				if recover() == nil {
					t.Fatalf("%s did not panic", name)
				}
			}()
			fn()
		}()
		free := make(chan struct{})
		go func() { // the linker may hold the lock for a moment
			db.mu.Lock()
			defer db.mu.Unlock()
			close(free)
		}()
		select {
		case <-free:
		case <-time.After(time.Minute):
			t.Fatalf("%s that panicked holds the lock", name)
		}
		if after := everything(t, db); after != before {
			t.Errorf("after %s that panicked:\n%.2000s\nwas:\n%s", name, after, before)
		}
	}
	mustExec(t, db, `put c {n: 51}`)
}
