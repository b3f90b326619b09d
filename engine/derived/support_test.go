package derived

import (
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"fenec/engine/doc"
	"fenec/engine/index"
	"fenec/engine/vector"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engine is a Host whose one collection, of the field v, is a map. A graph that is due is saved to records.
type engine struct {
	mu      sync.RWMutex
	docs    documents
	schema  *doc.Schema
	derived *Database
	indexes *Collection
	records [][]byte // payloads
}

type documents map[int64]doc.Document

func (m documents) Len() int { return len(m) }

func (m documents) Get(id int64) doc.Document { return m[id] }

func (m documents) Ascend(from int64, fn func(doc.Document) bool) {
	for _, id := range slices.Sorted(maps.Keys(m)) {
		if id >= from && !fn(m[id]) {
			return
		}
	}
}

// newEngine returns an engine without documents, and stops it when the test ends.
func newEngine(tb testing.TB, t doc.Type, x doc.Index) *engine {
	tb.Helper()
	e := &engine{docs: documents{}, schema: &doc.Schema{Name: "c"}}
	e.schema.AddField(doc.Field{Name: "v", Type: t, Index: x})
	e.derived = New(Options{Host: e, Shared: e.mu.RLocker(), Log: zerolog.Nop(), RecordHead: 16})
	tb.Cleanup(e.derived.Stop)
	e.indexes = e.derived.NewCollection(1, e.schema, e.docs)
	e.derived.Insert(e.indexes)
	return e
}

// newGraphEngine returns an engine whose field holds vectors and has a graph with the distance L2.
func newGraphEngine(tb testing.TB, dim int, o doc.HNSWOptions) *engine {
	tb.Helper()
	o.Metric = vector.L2
	return newEngine(tb, doc.Type{Kind: doc.TypeVector, Dim: dim}, doc.Index{Kind: doc.IndexHNSW, HNSW: o})
}

// reopened returns an engine with the documents of e that has restored payloads, from a file whose last change is at.
func (e *engine) reopened(tb testing.TB, payloads [][]byte, at uint64) *engine {
	tb.Helper()
	f := e.schema.Fields[0]
	after := newEngine(tb, f.Type, f.Index)
	maps.Copy(after.docs, e.docs)
	for _, payload := range payloads {
		if err := after.derived.Restore(payload, at); err != nil {
			tb.Fatal(err)
		}
	}
	return after
}

func (e *engine) Writable() error { return nil }

func (e *engine) Trim() {}

func (e *engine) SaveGraphs(m Moment) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, g := range e.derived.Due(m, uint64(len(e.records))) {
		_ = g.Records(func(record []byte) error {
			e.records = append(e.records, record[16:])
			return nil
		})
		g.Saved()
	}
}

// put puts a document as the engine does.
func (e *engine) put(tb testing.TB, id int64, v doc.Value) {
	tb.Helper()
	var b doc.Builder
	b.Reset(1)
	if err := b.Set(0, e.schema.Fields[0].Type, v, "v"); err != nil {
		tb.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	before, after := e.docs[id], doc.Document(b.AppendTo(nil, id))
	e.indexes.Changed(id)
	e.indexes.Remove(id, before, after)
	e.docs[id] = after
	e.indexes.Add(id, before, after)
}

// putVectors puts documents with the ids from first on.
func (e *engine) putVectors(tb testing.TB, first int, vectors [][]float32) {
	tb.Helper()
	for i, v := range vectors {
		e.put(tb, int64(first+i), vectorValue(v))
	}
}

// vectorValue returns the value of a vector.
func vectorValue(v []float32) doc.Value {
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return doc.VectorValue(b)
}

// randomVectors returns n vectors of small whole numbers, some of which are equal.
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

// graph returns the index on v and builds it if needed.
func (e *engine) graph() *graph {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.indexes.built("v").(*graph)
}

// checkNearest compares searches of the graph that look at every node with the documents.
func (e *engine) checkNearest(tb testing.TB) {
	tb.Helper()
	s := e.graph()
	e.mu.RLock()
	defer e.mu.RUnlock()
	f := e.schema.Fields[0]
	random := rand.New(rand.NewPCG(7, 7))
	for range 3 {
		q := randomVectors(random, 1, f.Type.Dim)[0]
		var scorer vector.Scorer
		scorer.Reset(f.Index.HNSW.Metric, q)
		nearest := index.NewTopK(e.docs.Len(), f.Index.HNSW.Metric.Ascending(), nil)
		for id, d := range e.docs {
			nearest.Push(index.Hit{ID: id, Score: scorer.Score(d.Field(0).Value().Floats(nil))})
		}
		want := nearest.Append(nil)
		if got := s.Search(q, e.docs.Len(), s.Nodes(), nil, nil); !slices.Equal(got, want) {
			tb.Fatalf("near %v: got\n%v\nexpected\n%v", q, got, want)
		}
	}
}
