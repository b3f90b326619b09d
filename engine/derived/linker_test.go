package derived

import (
	"context"
	"math/rand/v2"
	"testing"

	"fenec/engine/doc"
)

// TestWritersLinkIfTooManyVectorsAreUnlinked puts vectors while the linker does not run.
func TestWritersLinkIfTooManyVectorsAreUnlinked(t *testing.T) {
	e := newGraphEngine(t, 8, doc.HNSWOptions{M: 16, EFConstruction: 200})
	e.derived.linker.maxUnlinked = 8 * 100
	s := e.graph()
	e.derived.Stop()
	e.derived.linker.running = true
	random := rand.New(rand.NewPCG(6, 6))
	for n := range 30 {
		e.putVectors(t, 1+10*n, randomVectors(random, 10, 8))
		e.derived.LinkIfBehind(context.Background(), 10)
		if waiting := s.waiting(); waiting > 100 {
			t.Fatalf("got %d waiting vectors, expected at most 100", waiting)
		}
	}
	if s.waiting() <= 100-mostLinked { // past 100 a writer takes a step of linking, and no more
		t.Errorf("got %d waiting vectors, expected more than %d", s.waiting(), 100-mostLinked)
	}
}

// TestTheLinkerSavesAGrowingGraph checks that a restored graph needs to link only a share of its vectors again.
func TestTheLinkerSavesAGrowingGraph(t *testing.T) {
	e := newGraphEngine(t, 12, doc.HNSWOptions{M: 4, EFConstruction: 8})
	e.graph()
	e.putVectors(t, 1, randomVectors(rand.New(rand.NewPCG(5, 5)), 2*leastSaved, 12))
	e.derived.Wait()
	if len(e.records) == 0 {
		t.Fatal("no graph was saved")
	}
	after := e.reopened(t, e.records, uint64(len(e.records)))
	after.derived.Stop()
	if n := after.graph().waiting(); n > leastSaved {
		t.Errorf("got %d vectors to link again, expected at most %d", n, leastSaved)
	}
	after.checkNearest(t)
}
