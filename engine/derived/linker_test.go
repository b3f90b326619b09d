package derived

import (
	"context"
	"math/rand/v2"
	"testing"

	"fenec/engine/doc"
	"fenec/engine/vector"
)

// TestWritersLinkIfTooManyVectorsAreUnlinked puts while the linker never links.
func TestWritersLinkIfTooManyVectorsAreUnlinked(t *testing.T) {
	x := doc.Index{Kind: doc.IndexHNSW, HNSW: doc.HNSWOptions{Metric: vector.L2, M: 16, EFConstruction: 200}}
	e := newEngine(t, doc.Type{Kind: doc.TypeVector, Dim: 8}, x)
	e.derived.linker.maxUnlinked = 8 * 100
	s := e.graph()
	e.derived.Stop()
	e.derived.linker.running = true
	random := rand.New(rand.NewPCG(6, 6))
	for n := range 30 {
		e.putVectors(t, 1+10*n, randomVectors(random, 10, 8))
		e.derived.LinkIfBehind(context.Background(), 10)
		if waiting := s.waiting(); waiting > 100 {
			t.Fatalf("%d vectors wait, of 100 that may", waiting)
		}
	}
	if s.waiting() <= 100-mostLinked { // past 100 a writer takes a step of linking, and no more
		t.Errorf("%d vectors wait: fewer than 100, and writers linked", s.waiting())
	}
}

// TestTheLinkerSavesAGrowingGraph: what has been saved is enough to link no more than a share of the graph again.
func TestTheLinkerSavesAGrowingGraph(t *testing.T) {
	x := doc.Index{Kind: doc.IndexHNSW, HNSW: doc.HNSWOptions{Metric: vector.L2, M: 4, EFConstruction: 8}}
	e := newEngine(t, doc.Type{Kind: doc.TypeVector, Dim: 12}, x)
	e.graph()
	e.putVectors(t, 1, randomVectors(rand.New(rand.NewPCG(5, 5)), 2*leastSaved, 12))
	e.derived.Wait()
	if len(e.records) == 0 {
		t.Fatal("no graph was saved")
	}
	after := newEngine(t, doc.Type{Kind: doc.TypeVector, Dim: 12}, x)
	after.docs, after.indexes.docs = e.docs, e.docs
	for _, payload := range e.records {
		if err := after.derived.Restore(payload, uint64(len(e.records))); err != nil {
			t.Fatal(err)
		}
	}
	after.derived.Stop()
	if n := after.graph().waiting(); n > leastSaved {
		t.Errorf("%d vectors are to be linked again, want at most %d", n, leastSaved)
	}
	after.checkNearest(t)
}
