package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"fenec/engine/fail"
	"fenec/engine/query"
)

// large is a database with a collection c of which a get returns 8 MiB.
func large(tb testing.TB) *DB {
	tb.Helper()
	db := inMemory(tb, Options{})
	mustExec(tb, db, "create collection c (n int, body text)")
	for n := range 8 {
		mustExec(tb, db, fmt.Sprintf("put c {n: %d, body: $1}", n), textParam(strings.Repeat("x", 1<<20)))
	}
	return db
}

func TestTheAnswersOfABatchAreBoundedTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine copies hundreds of MiB, for a limit of bytes")
	}
	db := large(t)
	before, seq := dump(t, db), db.Stats().Seq
	reads := func(n int) []string { return strings.Split(strings.Repeat("get c\n", n-1)+"get c", "\n") }
	for name, c := range map[string]struct {
		texts []string
		at    int
	}{
		"thousands of reads":               {reads(5000), 7},
		"a write before them is put back":  {append([]string{"del c where n = 1", "put c {n: 9}"}, reads(12)...), 2 + 9},
		"a write that answers is put back": {append(reads(7), "set c {n: n + 1} returning *"), 7},
	} {
		t.Run(name, func(t *testing.T) {
			results, at, err := db.Batch(context.Background(), Everything(), statements1(c.texts...))
			wantKind(t, err, fail.TooLarge)
			if at != c.at || results != nil || err == nil || !strings.Contains(err.Error(), "the answers of the batch are over 64 MiB together") {
				t.Errorf("%d results, failed at %d, want %d: %v", len(results), at, c.at, err)
			}
			if after := dump(t, db); after != before || db.Stats().Seq != seq {
				t.Error("the database changed")
			}
		})
	}
	if results, _, err := db.Batch(context.Background(), Everything(), statements1(reads(7)...)); err != nil || len(results) != 7 {
		t.Errorf("answers that fit: %d, %v", len(results), err)
	}
}

func TestABatchWithCompactKeepsWhatRanBeforeALongAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine copies hundreds of MiB, for a limit of bytes")
	}
	db := large(t)
	texts := append([]string{"put c {n: 8}", "compact"}, strings.Split(strings.Repeat("get c\n", 8)+"put c {n: 9}", "\n")...)
	results, at, err := db.Batch(context.Background(), Everything(), statements1(texts...))
	wantKind(t, err, fail.TooLarge)
	if at != 9 || len(results) != 9 {
		t.Errorf("failed at %d with %d results: %v", at, len(results), err)
	}
	wantRows(t, db, "get c where n >= 8 select n", `[{"n":8}]`)
}

func TestABatchHoldsOneAccount(t *testing.T) {
	db := large(t)
	a := &query.Account{Most: 20 << 20}
	ctx := &query.Accounted{Context: context.Background(), Account: a}
	if _, at, err := db.Batch(ctx, Everything(), statements1("get c count", "get c", "get c where n < 0", "get c", "get c")); fail.KindOf(err) != fail.TooLarge || at < 3 {
		t.Errorf("failed at %d: %v", at, err)
	}
	a.Settle(0)
	if _, _, err := db.Batch(ctx, Everything(), statements1("get c order body limit 1 select n", "get c order body limit 1 select n")); err != nil || a.Held() > 1<<10 {
		t.Errorf("%d bytes stay counted: %v", a.Held(), err)
	}
	a.Settle(0)
	short := strings.Split(strings.Repeat("get c where n < 5 select n\n", 4999)+"get c where n < 5 select n", "\n")
	results, _, err := db.Batch(ctx, Everything(), statements1(short...))
	took := int64(len(short)) * int64(unsafe.Sizeof(Result{}))
	for i := range results {
		took += int64(cap(results[i].Body))
	}
	if err != nil || a.Held() < took || a.Held() > took+1<<20 {
		t.Errorf("%d bytes are counted of short answers that take %d: %v", a.Held(), took, err)
	}
	a.Settle(0)
	long := "get c where n in [0" + strings.Repeat(",1", 10_000) + "] select n"
	for _, run := range []func() error{
		func() error { _, err := db.Exec(ctx, Everything(), Statement{Text: long}, nil); return err },
		func() error { _, err := db.Writes(ctx, long); return err },
		func() error { _, _, err := db.Batch(ctx, Everything(), statements1(long, long)); return err },
	} {
		if err := run(); err != nil || a.Held() > 1<<10 {
			t.Errorf("the tree of a long statement: %v, %d bytes stay counted", err, a.Held())
		}
	}
}
