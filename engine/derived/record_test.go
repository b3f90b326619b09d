package derived

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/vector"

	"github.com/cespare/xxhash/v2"
)

// savedQuants are those of indexes whose saved graphs are of either version.
var savedQuants = []vector.Quant{0, vector.Bit}

// saved returns an engine of a few vectors whose graph was saved and restored, and is not built yet.
func saved(tb testing.TB, quant vector.Quant, vectors int) *engine {
	tb.Helper()
	x := doc.Index{Kind: doc.IndexHNSW, HNSW: doc.HNSWOptions{Metric: vector.L2, M: 2, EFConstruction: 4, Quant: quant}}
	before := newEngine(tb, doc.Type{Kind: doc.TypeVector, Dim: 2}, x)
	before.putVectors(tb, 1, randomVectors(rand.New(rand.NewPCG(2, 2)), vectors, 2))
	before.graph()
	before.derived.Wait()
	after := newEngine(tb, doc.Type{Kind: doc.TypeVector, Dim: 2}, x)
	for _, d := range before.docs {
		after.docs[d.ID()] = d
	}
	for _, payload := range before.payloads(tb) {
		if err := after.derived.Restore(payload, 0); err != nil {
			tb.Fatal(err)
		}
	}
	if !after.derived.Needed() {
		tb.Fatal("no graph was restored")
	}
	return after
}

// payloads returns what a new file would hold of the graph.
func (e *engine) payloads(tb testing.TB) (out [][]byte) {
	tb.Helper()
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, g := range e.derived.Graphs(0) {
		if err := g.Records(func(record []byte) error {
			out = append(out, record[e.derived.opts.RecordHead:])
			return nil
		}); err != nil {
			tb.Fatal(err)
		}
	}
	return out
}

// forget makes x unbuilt again, with a graph in the file.
func forget(x *Index, name graphName, graph []byte) {
	x.kept.whole.Store(splitGraph(name, graph))
	x.state.Store(nil)
}

func TestASavedGraphIsUsed(t *testing.T) {
	for _, quant := range savedQuants {
		e := saved(t, quant, 40)
		if s := e.graph(); s.moved.Load() > 0 || s.waiting() > 0 {
			t.Errorf("%d vectors were added again, and %d wait", s.moved.Load(), s.waiting())
		}
		e.checkNearest(t)
		if e.derived.Needed() {
			t.Error("the saved graph is needed once the index is built")
		}
	}
}

func TestAGraphChangedInAnyByteIsRebuilt(t *testing.T) {
	for _, quant := range savedQuants {
		e := saved(t, quant, 40)
		x := e.indexes.Index("v")
		kept := x.kept.whole.Load()
		whole := kept.bytes()
		for i := range whole {
			b := bytes.Clone(whole)
			b[i] ^= 0x55
			forget(x, kept.name, b)
			if s := e.graph(); s.moved.Load() == 0 { // no vector was added again
				t.Fatalf("a graph whose byte %d was changed is used", i)
			}
			e.checkNearest(t)
			e.derived.Wait()
		}
	}
}

// TestAGraphOfThePreviousVersionIsRebuilt restores a graph by bits as it was saved before there was a centre.
func TestAGraphOfThePreviousVersionIsRebuilt(t *testing.T) {
	e := saved(t, vector.Bit, 40)
	x := e.indexes.Index("v")
	kept := x.kept.whole.Load()
	before := bytes.Clone(kept.bytes())
	before[4] = 1 // after the magic
	head := 5
	for range 7 {
		_, n := binary.Uvarint(before[head:])
		head += n
	}
	_, n := binary.Uvarint(before[head:])
	before = slices.Delete(before, head, head+n+1+2*4) // the centre
	end := len(before) - 8
	binary.LittleEndian.PutUint64(before[end:], xxhash.Sum64(before[:end]))
	forget(x, kept.name, before)
	if s := e.graph(); s.moved.Load() != 40 {
		t.Fatalf("%d of 40 vectors were added again", s.moved.Load())
	}
	e.checkNearest(t)
	e.derived.Wait()
	if got := e.graph().AppendBinary(nil)[4]; got != 2 {
		t.Errorf("the graph that was rebuilt is saved as version %d, want 2", got)
	}
}

// FuzzGraphRecord restores a record of any content: it is refused, ignored or used, and searches find all. The content also
// comes with a valid checksum, so that not only that is checked.
func FuzzGraphRecord(f *testing.F) {
	var engines []*engine
	for _, quant := range savedQuants {
		e := saved(f, quant, 12)
		for _, payload := range e.payloads(f) {
			f.Add(payload, false)
			f.Add(payload, true)
		}
		engines = append(engines, e)
	}
	f.Add([]byte{}, false)
	f.Add([]byte{graphRecord}, true)
	f.Fuzz(func(t *testing.T, payload []byte, sealed bool) {
		if n := len(payload) - 8; sealed && n > 0 {
			_, _, graph, err := decodeGraphPart(payload)
			if at := len(payload) - len(graph); err == nil && n > at {
				payload = bytes.Clone(payload)
				binary.LittleEndian.PutUint64(payload[n:], xxhash.Sum64(payload[at:n]))
			}
		}
		for _, e := range engines {
			e.derived.Wait()
			e.indexes.Index("v").state.Store(nil)
			if err := e.derived.Restore(payload, 0); err != nil && fail.KindOf(err) != fail.Damaged {
				t.Fatal(err)
			}
			e.graph()
			e.checkNearest(t)
			e.derived.Wait()
			e.checkNearest(t)
		}
	})
}

// TestAPartOfAGraphIsIgnored has the parts of graphs come in as an interrupted save leaves them.
func TestAPartOfAGraphIsIgnored(t *testing.T) {
	name := func(seq uint64) graphName { return graphName{seq: seq, parts: 3} }
	for _, c := range []struct {
		parts string // of graph a and of the later graph b
		want  uint64 // the graph that is whole, 0 for none
	}{
		{"a0 a1", 0},
		{"a0 a1 a2", 1},
		{"a1 a2", 0},
		{"a0 a2 a1", 0},
		{"a0 a1 a2 b0 b1", 1},
		{"a0 a1 b0 b1 b2", 2},
		{"a0 b1 b2", 0},
		{"a0 a1 b2", 0},
		{"a0 a1 a2 b0 b1 b2", 2},
	} {
		var k keptGraphs
		for s := range bytes.SplitSeq([]byte(c.parts), []byte(" ")) {
			k.take(name(uint64(s[0]-'a'+1)), int(s[1]-'0'), s, 16)
		}
		got := uint64(0)
		if whole := k.whole.Load(); whole != nil {
			got = whole.name.seq
		}
		if got != c.want {
			t.Errorf("%s: graph %d is whole, want %d", c.parts, got, c.want)
		}
	}
}

func TestAGraphSavedInPartsIsLoadedWhole(t *testing.T) {
	b := make([]byte, 2*graphPart+100)
	for i := range b {
		b[i] = byte(i * i >> 8)
	}
	e := newEngine(t, doc.Type{Kind: doc.TypeVector, Dim: 2}, doc.Index{Kind: doc.IndexHNSW, HNSW: doc.DefaultHNSW})
	x := e.indexes.Index("v")
	name := x.graphName()
	name.seq = 9
	written := int64(0)
	g := Graph{kept: splitGraph(name, b), index: x}
	err := g.Records(func(record []byte) error {
		written += int64(len(record))
		if err := e.derived.Restore(record[e.derived.opts.RecordHead:], 8); err != nil || x.kept.whole.Load() != nil {
			t.Errorf("a graph as of a change that is not in the file is used: %v", err)
		}
		return e.derived.Restore(record[e.derived.opts.RecordHead:], 9)
	})
	whole := x.kept.whole.Load()
	if err != nil || whole == nil || whole.name.parts != 3 || !bytes.Equal(whole.bytes(), b) {
		t.Fatalf("parts do not make the whole: %v", err)
	}
	if filed := e.indexes.Filed(); filed < written-3*graphPartHead || filed > written+3*graphPartHead {
		t.Errorf("the graph is counted as %d bytes of the file, and takes %d", filed, written)
	}
}
