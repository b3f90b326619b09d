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

// savedQuants are the quantizations of indexes, one for each version of a saved graph.
var savedQuants = []vector.Quant{0, vector.Bit}

// saved returns an engine whose graph was restored from a saved one and is not built yet.
func saved(tb testing.TB, quant vector.Quant, vectors int) *engine {
	tb.Helper()
	before := newGraphEngine(tb, 2, doc.HNSWOptions{M: 2, EFConstruction: 4, Quant: quant})
	before.putVectors(tb, 1, randomVectors(rand.New(rand.NewPCG(2, 2)), vectors, 2))
	before.graph()
	before.derived.Wait()
	after := before.reopened(tb, before.payloads(tb), 0)
	if !after.derived.Needed() {
		tb.Fatal("no graph was restored")
	}
	return after
}

// payloads returns the records of the graph that a new file would hold.
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

// forget makes x an index that is not built, whose saved graph is the given one.
func forget(x *Index, name graphName, graph []byte) {
	x.kept.whole.Store(splitGraph(name, graph))
	x.state.Store(nil)
}

func TestASavedGraphIsUsed(t *testing.T) {
	for _, quant := range savedQuants {
		e := saved(t, quant, 40)
		if s := e.graph(); s.moved.Load() > 0 || s.waiting() > 0 {
			t.Errorf("got %d vectors added again and %d waiting, expected 0", s.moved.Load(), s.waiting())
		}
		e.checkNearest(t)
		if e.derived.Needed() {
			t.Error("the saved graph is needed after the index was built")
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

// TestAGraphOfThePreviousVersionIsRebuilt restores a graph by bits in version 1, which has no centre.
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
		t.Fatalf("got %d vectors added again, expected 40", s.moved.Load())
	}
	e.checkNearest(t)
	e.derived.Wait()
	if got := e.graph().AppendBinary(nil)[4]; got != 2 {
		t.Errorf("got version %d of the rebuilt graph, expected 2", got)
	}
}

// FuzzGraphRecord restores a record of any content. The record is refused, ignored or used, and searches find every document.
// A sealed content gets a valid checksum, so that the checks after that run too.
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

// TestAGraphWithMissingPartsIsIgnored restores the parts of graphs as an interrupted save leaves them.
func TestAGraphWithMissingPartsIsIgnored(t *testing.T) {
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
			t.Errorf("%s: got the whole graph %d, expected %d", c.parts, got, c.want)
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
			t.Errorf("a graph of a change past the end of the file is used: %v", err)
		}
		return e.derived.Restore(record[e.derived.opts.RecordHead:], 9)
	})
	whole := x.kept.whole.Load()
	if err != nil || whole == nil || whole.name.parts != 3 || !bytes.Equal(whole.bytes(), b) {
		t.Fatalf("got another graph from its parts: %v", err)
	}
	if filed := e.indexes.Filed(); filed < written-3*graphPartHead || filed > written+3*graphPartHead {
		t.Errorf("got %d bytes counted for the graph, expected about %d", filed, written)
	}
}
