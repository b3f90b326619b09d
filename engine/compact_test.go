package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"
)

func TestCompactDropsDeadBytes(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (n int @sorted, body text @hash)`)
	mustExec(t, db, `create collection gone (n int)`)
	body := textParam(strings.Repeat("x", 1000))
	for i := range 500 {
		mustExec(t, db, `put c {n: $1, body: $2}`, intParam(int64(i%7)), body)
	}
	mustExec(t, db, `del c where id > 10`)
	mustExec(t, db, `drop collection gone`)
	before, size, memory := dump(t, db), db.Stats().FileBytes, db.Stats().MemoryBytes
	mustExec(t, db, `compact c`)
	stats := db.Stats()
	if stats.FileBytes > size/20 || stats.MemoryBytes > memory/4 {
		t.Errorf("file %d and memory %d before, %d and %d after", size, memory, stats.FileBytes, stats.MemoryBytes)
	}
	if got := dump(t, db); got != before {
		t.Errorf("after compact:\n%s\nbefore:\n%s", got, before)
	}
	wantRows(t, db, `get c order n desc limit 2 select id, n`, `[{"id":7,"n":6},{"id":6,"n":5}]`)
	mustExec(t, db, `put c {n: 100}`)
	before = dump(t, db)
	db.Close()
	if got := dump(t, reopen(t, Options{FS: fs})); got != before {
		t.Errorf("reopened:\n%s\nwas:\n%s", got, before)
	}
	_, err := exec(reopen(t, Options{FS: fs}), `compact nothing`)
	wantKind(t, err, fail.NotFound)
}

// TestWritesGoOnDuringCompactsAndIndexBuilds runs writers and readers while the file is rewritten and indexes are built. At
// the end it compares the documents with the answers to the writers, and each index with the scan.
func TestWritesGoOnDuringCompactsAndIndexBuilds(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (who int, n int, tag text)`)
	const writers, writes = 4, 300
	var wg sync.WaitGroup
	var done atomic.Int32
	for w := range int64(writers) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer done.Add(1)
			write := func(text string, params ...doc.Value) {
				if _, err := exec(db, text, params...); err != nil {
					t.Errorf("%s: %v", text, err)
				}
			}
			for i := range int64(writes) {
				write(`put c {who: $1, n: $2, tag: $3}`, intParam(w), intParam(i), textParam(fmt.Sprint("tag ", i%9)))
				if i%3 == 2 {
					write(`set c {tag: "set", n: n + 1000} where who = $1 and n = $2`, intParam(w), intParam(i-1))
					write(`del c where who = $1 and n = $2`, intParam(w), intParam(i-2))
				}
			}
		}()
	}
	create := []string{`create index on c (n) @sorted`, `create index on c (tag) @hash`}
	for rounds := 0; done.Load() < writers || rounds < len(create); rounds++ {
		if rounds < len(create) {
			mustExec(t, db, create[rounds])
		}
		mustExec(t, db, `compact`)
		mustExec(t, db, `get c where n >= 1000 order n limit 5`)
	}
	wg.Wait()
	wantRows(t, db, `get c count`, fmt.Sprintf(`[{"count":%d}]`, writers*writes*2/3))
	check := func(db *DB) {
		t.Helper()
		twin := copyUnindexed(t, db)
		for _, q := range []string{
			`get c where n >= 1000 order n, id`, `get c where tag = "set"`, `get c order n desc limit 50`,
			`get c where tag in ["tag 1", "tag 2"]`, `get c where n > 100 and n <= 200 count`,
		} {
			wantRows(t, db, q, string(mustExec(t, twin, q).Body))
		}
	}
	check(db)
	before := dump(t, db)
	db.Close()
	db = reopen(t, Options{FS: fs})
	if got := dump(t, db); got != before {
		t.Error("the file holds something else than the memory did")
	}
	check(db)
}

// copyUnindexed returns a database with the documents of c under the same ids and without an index.
func copyUnindexed(t *testing.T, db *DB) *DB {
	t.Helper()
	twin := inMemory(t, Options{FS: crashfs.New(9)})
	mustExec(t, twin, `create collection c (who int, n int, tag text)`)
	rows := mustExec(t, db, `get c`).Body
	parsed, err := doc.ParseJSON(nil, rows)
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, twin, `put c $1`, doc.Raw(parsed).Value())
	return twin
}

func TestAUniqueIndexIsRefusedIfValuesAreShared(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int)`)
	mustExec(t, db, `put c [{n: 1}, {n: 2}, {n: 1}, {n: null}, {n: null}]`)
	before := db.Stats().Seq
	_, err := exec(db, `create index on c (n) @unique`)
	wantKind(t, err, fail.Conflict)
	if got := db.Stats().Seq; got != before {
		t.Errorf("the refused index moved the change counter from %d to %d", before, got)
	}
	mustExec(t, db, `del c where id = 3`)
	mustExec(t, db, `create index on c (n) @unique`)
	_, err = exec(db, `put c {n: 2}`)
	wantKind(t, err, fail.Conflict)
	_, err = exec(db, `create index on c (n) @hash`)
	wantKind(t, err, fail.Conflict)
}

func TestACompactThatIsStoppedLeavesTheFileAsItWas(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (n int)`)
	for range 3 {
		mustExec(t, db, `put c `+"["+strings.TrimSuffix(strings.Repeat(`{n: 1}, `, 3000), ", ")+"]")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := db.Exec(ctx, Everything(), Statement{Text: `compact`}, nil)
	wantKind(t, err, fail.Canceled)
	if names, _ := fs.ReadDir("/"); len(names) != 1 {
		t.Errorf("the directory holds %v", names)
	}
	mustExec(t, db, `put c {n: 2}`)
	wantRows(t, db, `get c count`, `[{"count":9001}]`)
}

func TestFreezeRefusesWritesAndReturnsTheChange(t *testing.T) {
	db := small(t)
	seq, err := db.Freeze()
	if err != nil || seq != db.Stats().Seq {
		t.Fatalf("freeze answered change %d and %v, the database is at %d", seq, err, db.Stats().Seq)
	}
	for _, text := range []string{`put c {n: 5}`, `compact`, `create index on c (tag) @hash`} {
		_, err := exec(db, text)
		wantKind(t, err, fail.Frozen)
	}
	wantRows(t, db, `get c count`, `[{"count":1}]`)
	db.Thaw()
	mustExec(t, db, `put c {n: 5}`)
}
