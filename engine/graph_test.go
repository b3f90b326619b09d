package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"fenec/engine/derived"
	"fenec/engine/doc"
	"fenec/engine/index"
	"fenec/engine/index/hnsw"
	"fenec/engine/vector"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"

	"github.com/rs/zerolog"
)

// vectorParam returns v as a parameter.
func vectorParam(v []float32) doc.Value {
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return doc.VectorValue(b)
}

// randomVectors returns n vectors of small whole numbers, so that some are equal.
func randomVectors(random *rand.Rand, n, dim int) [][]float32 {
	out := make([][]float32, n)
	for i := range out {
		out[i] = make([]float32, dim)
		for j := range out[i] {
			out[i][j] = float32(random.IntN(5) - 2)
		}
	}
	return out
}

// graph returns the index on v of collection c and builds it if needed.
func graph(db *DB) *hnsw.Graph {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.tables["c"].Vectors("v")
}

// lacking opens the file for reading and returns how many vectors are not linked in the graph that it holds on v of
// collection c: all of them if the file has no graph that can be used.
func lacking(tb testing.TB, fs *crashfs.FS, path string) int {
	tb.Helper()
	db, err := Open(path, Options{FS: fs, ReadOnly: true})
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close()
	db.derived.Stop() // so that none is linked meanwhile
	graph(db)
	return db.Stats().Waiting
}

// unsaved reports whether closing db would save the graph: it has changed since it was read from the file or saved.
func unsaved(db *DB) bool {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return len(db.derived.Due(derived.Closing, db.seq)) > 0
}

// settle waits until the linker is idle.
func settle(db *DB) { db.derived.Wait() }

// checkNearest compares searches of the graph that look at every node with the documents.
func checkNearest(tb testing.TB, db *DB) {
	tb.Helper()
	db.mu.RLock()
	defer db.mu.RUnlock()
	c := db.tables["c"]
	field := c.schema.Field("v")
	metric := field.Index.HNSW.Metric
	s := c.Vectors("v")
	random := rand.New(rand.NewPCG(7, 7))
	for range 3 {
		q := randomVectors(random, 1, field.Type.Dim)[0]
		var scorer vector.Scorer
		scorer.Reset(metric, q)
		want := index.NewTopK(c.Len(), metric.Ascending(), nil)
		c.Ascend(1, func(d doc.Document) bool {
			if v := d.Field(field.Slot).Value(); v.Kind == doc.Vector {
				want.Push(index.Hit{ID: d.ID(), Score: scorer.Score(v.Floats(nil))})
			}
			return true
		})
		hits := want.Append(nil)
		got := s.Search(q, c.Len(), s.Nodes(), nil, nil)
		for i := range max(len(got), len(hits)) {
			if i >= len(got) || i >= len(hits) || got[i] != hits[i] {
				tb.Fatalf("near %v finds %d documents, of %d, and from number %d on\n%v\nwhere it should\n%v", q, len(got), len(hits), i, few(got, i), few(hits, i))
			}
		}
	}
}

// few returns a few hits from number i on.
func few(hits []index.Hit, i int) []index.Hit {
	hits = hits[min(i, len(hits)):]
	return hits[:min(len(hits), 5)]
}

// putVectors puts documents with the ids from first on.
func putVectors(tb testing.TB, db *DB, first int, vectors [][]float32) {
	tb.Helper()
	var text strings.Builder
	params := make([]doc.Value, len(vectors))
	text.WriteString("put c [")
	for i, v := range vectors {
		if i > 0 {
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, "{id: %d, v: $%d}", first+i, i+1)
		params[i] = vectorParam(v)
	}
	mustExec(tb, db, text.String()+"]", params...)
}

// graphKinds are declarations of every way a graph holds its vectors.
var graphKinds = []string{
	`vector<8> @hnsw(l2, m=4)`, `vector<8> @hnsw(cosine, m=4, ef_construction=20)`, `vector<8, f16> @hnsw(dot, m=4)`,
	`vector<8> @hnsw(l2, m=4, quant=int8)`, `vector<8, f16> @hnsw(cosine, m=4, quant=bit)`, `vector<8> @hnsw(dot, m=4, quant=bit)`,
}

func TestAGraphIsStoredInTheFile(t *testing.T) {
	for _, kind := range graphKinds {
		t.Run(kind, func(t *testing.T) {
			fs := crashfs.New(1)
			db := inMemory(t, Options{FS: fs})
			mustExec(t, db, `create collection c (v `+kind+`)`)
			random := rand.New(rand.NewPCG(1, 1))
			putVectors(t, db, 1, randomVectors(random, 300, 8))
			if got := graph(db).Len(); got != 300 {
				t.Fatalf("the index has %d documents", got)
			}
			settle(db)
			checkNearest(t, db)
			want := graph(db).AppendBinary(nil)
			db.Close()

			missing := lacking(t, fs, file)
			db = reopen(t, Options{FS: fs})
			if missing > 0 || !slices.Equal(graph(db).AppendBinary(nil), want) || unsaved(db) {
				t.Fatal("the graph was rebuilt though the file has it")
			}
			checkNearest(t, db)
			settle(db)
			if held := int64(len(db.memory.segments[0])); held >= db.Stats().FileBytes-int64(len(want)) {
				t.Errorf("the graph in the file is still held: %d bytes of %d", held, db.Stats().FileBytes)
			}
			checkNearest(t, db)
			size := db.Stats().FileBytes
			db.Close()
			db = reopen(t, Options{FS: fs})
			if got := db.Stats().FileBytes; got != size {
				t.Errorf("a graph that did not change was written again: %d bytes, and %d before", got, size)
			}
			checkNearest(t, db)

			// What was written after the graph was saved is found at once when the file is opened after a crash.
			mustExec(t, db, `del c where id <= 20`)
			putVectors(t, db, 11, randomVectors(random, 10, 8))
			putVectors(t, db, 290, randomVectors(random, 20, 8))
			fs = fs.CrashKeeping(func(n int) int { return n })
			if n := lacking(t, fs, file); n > 30 {
				t.Errorf("%d vectors are to be linked, of 30 that are new", n)
			}
			db = reopen(t, Options{FS: fs})
			checkNearest(t, db)
			settle(db)
			checkNearest(t, db)

			mustExec(t, db, `compact`)
			checkNearest(t, db)
			mustExec(t, db, `put c {id: 1, v: [1, 2, 3, 4, 5, 6, 7, 8]}`)
			mustExec(t, db, `compact`)
			fs = fs.CrashKeeping(func(n int) int { return n })
			db = reopen(t, Options{FS: fs})
			size, held := db.Stats().FileBytes, db.memory.bytes()
			mustExec(t, db, `compact`) // the graph has not been used since the open
			if got := db.Stats(); got.FileBytes < size*9/10 || got.MemoryBytes < held {
				t.Errorf("a compact took the file from %d bytes to %d, and counts %d where %d were held", size, got.FileBytes, got.MemoryBytes, held)
			}
			db.derived.Stop()
			graph(db)
			if n := db.Stats().Waiting; n > 1 {
				t.Errorf("the graph was lost by a compact: %d vectors wait", n)
			}
			checkNearest(t, db)
		})
	}
}

func TestAnUnchangedVectorIsNotMoved(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (v vector<2> @hnsw(l2), n int)`)
	mustExec(t, db, `put c [{v: [1, 2]}, {v: [3, 4]}]`)
	if err := linked(db); err != nil {
		t.Fatal(err)
	}
	db.Close()
	db = reopen(t, Options{FS: fs})
	graph(db)
	mustExec(t, db, `set c {n: 1}`)
	mustExec(t, db, `put c {id: 1, v: [1, 2], n: 2}`)
	settle(db)
	if unsaved(db) {
		t.Error("vectors were moved by writes that left them as they are")
	}
	mustExec(t, db, `put c {id: 1, v: [2, 1]}`)
	settle(db)
	if !unsaved(db) {
		t.Error("a vector that changed was not moved")
	}
}

func TestAnImageCarriesTheGraph(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (v vector<4> @hnsw(l2, m=2, ef_construction=4))`)
	putVectors(t, db, 1, randomVectors(rand.New(rand.NewPCG(3, 3)), 1100, 4))
	db.derived.Stop() // otherwise it saves the graph itself
	for s := graph(db); s.Link(1, 64) > 0; {
		continue
	}
	if _, err := db.Freeze(); err != nil {
		t.Fatal(err)
	}
	b, _ := image(t, db)
	if _, err := InstallImage("/moved.fenec", bytes.NewReader(b), Options{FS: fs}); err != nil {
		t.Fatal(err)
	}
	moved, err := Open("/moved.fenec", Options{FS: fs, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer moved.Close()
	if lacking(t, fs, "/moved.fenec") > 0 {
		t.Error("the graph was rebuilt though the image has it")
	}
	checkNearest(t, moved)
	size := moved.Stats().FileBytes
	if moved.Close(); moved.Stats().FileBytes != size {
		t.Error("a database open for reading has saved its graph")
	}
}

func TestCheckIgnoresGraphs(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (v vector<2> @hnsw(l2))`)
	mustExec(t, db, `put c [{v: [1, 2]}, {v: [3, 4]}]`)
	if err := linked(db); err != nil {
		t.Fatal(err)
	}
	db.Close()
	report, err := Check(fs, file, "/saved.fenec")
	if err != nil || !report.Sound() || report.Records != 4 || report.Collections[0].Documents != 2 {
		t.Errorf("a sound file with a graph is reported as %+v, %v", report, err)
	}
	saved, err := Open("/saved.fenec", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	checkNearest(t, saved)
	saved.Close()

	// A record of an unknown kind loses nothing, and the file opens.
	var log bytes.Buffer
	db = reopen(t, Options{FS: fs, Log: zerolog.New(&log)})
	if err := db.writeDerived(append(make([]byte, wal.HeaderSize), "nonsense"...)); err != nil {
		t.Fatal(err)
	}
	mustExec(t, db, `put c {v: [5, 6]}`)
	db.Close()
	report, err = Check(fs, file, "")
	if err != nil || len(report.Problems) != 1 || report.Lost > 0 || report.Collections[0].Documents != 3 {
		t.Errorf("a derived record of nonsense is reported as %+v, %v", report, err)
	}
	db = reopen(t, Options{FS: fs, Log: zerolog.New(&log)})
	checkNearest(t, db)
	if !strings.Contains(log.String(), "rebuilt") {
		t.Errorf("the log does not mention the record: %s", &log)
	}
}

func TestADamagedGraphIsRebuilt(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (v vector<2> @hnsw(l2))`)
	mustExec(t, db, `put c [{v: [1, 2]}, {v: [3, 4]}]`)
	if err := linked(db); err != nil {
		t.Fatal(err)
	}
	mustExec(t, db, `compact`) // the graph is in the image
	mustExec(t, db, `put c {v: [5, 6]}`)
	want := dump(t, db)
	db.Close()

	f, err := fs.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, size)
	if _, err := f.ReadAt(data, 0); err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte("hnsw"))
	if at < 0 {
		t.Fatal("the file has no graph")
	}
	if _, err := f.WriteAt([]byte{data[at+9] ^ 1}, int64(at+9)); err != nil {
		t.Fatal(err)
	}
	f.Close()

	report, err := Check(fs, file, "/saved.fenec")
	if err != nil || report.Sound() || len(report.Damage) != 1 || report.Collections[0].Documents != 3 || report.Lost > 0 {
		t.Errorf("a file with a damaged graph is reported as %+v, %v", report, err)
	}
	for _, path := range []string{file, "/saved.fenec"} {
		db, err := Open(path, Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		if got := dump(t, db); got != want {
			t.Errorf("%s holds\n%s\nwant\n%s", path, got, want)
		}
		checkNearest(t, db)
		db.Close()
	}
}

// TestTheLinkerFinishesARecoding checks that a graph by bits has one code for each vector once all are linked.
func TestTheLinkerFinishesARecoding(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (v vector<8> @hnsw(l2, m=4, quant=bit))`)
	vectors := randomVectors(rand.New(rand.NewPCG(3, 1)), 8, 8)
	graph(db)
	for i := range vectors { // the centre is taken of the first, and another of eight
		putVectors(t, db, 1+i, vectors[i:i+1])
		settle(db)
	}
	if n := graph(db).Recode(1, 1); n != 0 {
		t.Errorf("%d vectors are still to be recoded", n)
	}
	checkNearest(t, db)
}

// TestNearByBitsOfVectorsWithoutNegativeNumbers checks that an index of one bit a number finds most of the nearest while it
// grows, after a reopening and after a compact. Pages of linked vectors are compared with those of `exact`.
func TestNearByBitsOfVectorsWithoutNegativeNumbers(t *testing.T) {
	metrics := []string{"cosine", "l2", "dot"}
	if testing.Short() {
		metrics = metrics[:1]
	}
	for _, metric := range metrics {
		fs := crashfs.New(1)
		db := inMemory(t, Options{FS: fs})
		mustExec(t, db, `create collection c (v vector<64> @hnsw(`+metric+`, m=8, ef_construction=40, quant=bit))`)
		random := rand.New(rand.NewPCG(4, 1))
		draw := func(n int) [][]float32 {
			vectors := make([][]float32, n)
			for i := range vectors {
				vectors[i] = make([]float32, 64)
				for j := range vectors[i] {
					vectors[i][j] = random.Float32()
				}
			}
			return vectors
		}
		queries := draw(20)
		check := func(when string) {
			t.Helper()
			graph(db)
			settle(db)
			found := 0
			for _, q := range queries {
				page := func(how string) []string {
					rows := mustExec(t, db, `get c near v $1 `+how+` limit 10 select id`, vectorParam(q)).Body
					return strings.Split(strings.Trim(string(rows), "[{}]"), "},{")
				}
				near := page("ef 100")
				for _, row := range page("exact") {
					if slices.Contains(near, row) {
						found++
					}
				}
			}
			if found < 150 {
				t.Errorf("%s, %s: %d of 200 are found, want at least 150", metric, when, found)
			}
		}
		for n := 1; n <= 1024; n *= 2 {
			putVectors(t, db, n, draw(n))
			settle(db)
		}
		check("grown")
		db.Close()
		missing := lacking(t, fs, file)
		db = reopen(t, Options{FS: fs})
		check("opened again")
		if missing > 0 || unsaved(db) {
			t.Errorf("%s: the graph was rebuilt though the file has it", metric)
		}
		mustExec(t, db, `compact`)
		check("compacted")
		mustExec(t, db, `del c where id <= 1000`)
		mustExec(t, db, `compact`)
		check("compacted with half of them gone")
		db.Close()
	}
}
