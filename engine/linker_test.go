package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"

	"golang.org/x/sync/errgroup"
)

// TestConcurrentLinking is for the race detector: vectors are put and deleted concurrently with searches, compacts, saves,
// counts and a close, after which no linker runs.
func TestConcurrentLinking(t *testing.T) {
	for round := range 4 {
		fs := crashfs.New(1)
		db := inMemory(t, Options{FS: fs})
		mustExec(t, db, `create collection c (v vector<4> @hnsw(l2, m=2, ef_construction=8), t text @text, s sparse<9> @inverted)`)
		var group errgroup.Group
		for i, texts := range [][]string{
			{`put c {v: [1, 2, 3, #], t: "word #", s: "{1:1}/9"}`, `put c {id: #, v: [4, 3, 2, 1]}`},
			{`put c {v: [#, 0, 0, 1], t: "other"}`, `set c {v: [0, 0, 0, #]} where id % 7 = 1`, `del c where id % 5 = 2`},
			{`get c near v [1, 1, 1, #] limit 5`, `get c near s "{1:1}/9" limit 5`, `get c match t "word #" limit 5`, `get c count`},
			{`alter collection c add field w vector<2> @hnsw(dot)`, `put c {w: [1, #]}`, `get c near w [1, 0] limit 2`, `alter collection c drop field w`},
			{`compact`},
		} {
			group.Go(func() error {
				for n := range 40 {
					if round == 3 && i == 0 && n == 20 {
						return db.Close()
					}
					text := strings.ReplaceAll(texts[n%len(texts)], "#", strconv.Itoa(n+1))
					_, err := exec(db, text)
					if kind := fail.KindOf(err); err != nil && kind != fail.NotFound && kind != fail.Conflict && kind != fail.Closed {
						return fmt.Errorf("%s: %w", text, err)
					}
					db.Stats()
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		if round == 3 {
			db = reopen(t, Options{FS: fs})
		}
		mustHold(t, db)
		checkNearest(t, db)
		settle(db)
		checkNearest(t, db)
		db.Close()
		db = reopen(t, Options{FS: fs})
		checkNearest(t, db)
		mustHold(t, db)
	}
}

// TestOneHotVectorsUnderChurn rewrites documents whose vectors are all equal or orthogonal, the hardest case for a graph.
func TestOneHotVectorsUnderChurn(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (v vector<16> @hnsw(cosine, m=4, ef_construction=16))`)
	random := rand.New(rand.NewPCG(9, 9))
	for round := range 30 {
		vectors := make([][]float32, 20)
		for i := range vectors {
			vectors[i] = make([]float32, 16)
			vectors[i][random.IntN(16)] = 1
		}
		putVectors(t, db, 1+random.IntN(100), vectors)
		if round%5 == 4 {
			mustExec(t, db, fmt.Sprintf(`del c where id %% 7 = %d`, round%7))
		}
		if round%2 == 0 {
			graph(db)
			settle(db)
		}
		if round%10 == 9 {
			mustExec(t, db, `compact`)
		}
		checkNearest(t, db)
	}
}

// during is a context that calls a function each time it is polled.
type during struct {
	context.Context
	do func()
}

func (d *during) Err() error {
	d.do()
	return nil
}

// TestACompactRebuildsAGraphWithManyTombstones deletes most vectors of a graph.
func TestACompactRebuildsAGraphWithManyTombstones(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (v vector<4> @hnsw(l2, m=4))`)
	vectors := randomVectors(rand.New(rand.NewPCG(4, 4)), 400, 4)
	putVectors(t, db, 1, vectors)
	if err := linked(db); err != nil {
		t.Fatal(err)
	}
	mustExec(t, db, `del c where id <= 390`)
	if graph(db).Tombstones() < 100 {
		t.Fatal("the graph has few tombstones")
	}
	writes := []string{`put c {id: 395, v: [9, 9, 9, 9]}`, `del c where id = 396`, `put c {id: 401, v: [8, 8, 8, 8]}`}
	err := db.Compact(&during{context.Background(), func() {
		for _, text := range writes {
			mustExec(t, db, text)
		}
		writes = nil
	}})
	if err != nil || writes != nil {
		t.Fatalf("%v, and %d writes were not made", err, len(writes))
	}
	settle(db)
	if s := graph(db); s.Tombstones() > 2 || s.Pending() > 0 || s.Len() != 10 {
		t.Errorf("the graph has %d vectors without a document, of %d, and %d wait", s.Tombstones(), s.Nodes(), s.Pending())
	}
	checkNearest(t, db)
	putVectors(t, db, 500, vectors[:10])
	checkNearest(t, db)
}

// TestCreateIndexLinksAllBeforeItAnswers also stops it by its context.
func TestCreateIndexLinksAllBeforeItAnswers(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (v vector<8>)`)
	putVectors(t, db, 1, randomVectors(rand.New(rand.NewPCG(8, 8)), 500, 8))
	stopped, stop := context.WithCancel(context.Background())
	stop()
	create := Statement{Text: `create index on c (v) @hnsw(l2)`}
	_, err := db.Exec(stopped, Everything(), create, nil)
	wantKind(t, err, fail.Canceled)
	if _, err := db.Exec(context.Background(), Everything(), create, nil); err != nil {
		t.Fatal(err)
	}
	if !db.tables["c"].indexes.Index("v").Built() || db.Stats().Waiting > 0 || graph(db).Len() != 500 {
		t.Error("the index is not built, or vectors wait in it")
	}
	checkNearest(t, db)
}
