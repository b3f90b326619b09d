package hnsw

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"fenec/engine/index"
	"fenec/engine/vector"
)

func TestTheGraphDoesNotDependOnTheWorkers(t *testing.T) {
	d, _ := clustered(10, 500, 16, 20, 0)
	for _, q := range []vector.Quant{0, vector.Int8, vector.Bit} {
		o := Options{Dim: 16, Metric: vector.Cosine, M: 8, EFConstruction: 40, Quant: q}
		one := d.built(o, 1).AppendBinary(nil)
		for _, workers := range []int{2, 3} {
			if !bytes.Equal(d.built(o, workers).AppendBinary(nil), one) {
				t.Fatalf("quant %q: %d workers make another graph than one", q, workers)
			}
		}
	}
}

func TestAVectorIsFoundBeforeItIsLinked(t *testing.T) {
	d, queries := clustered(11, 600, 16, 20, 20)
	g := New(Options{Dim: 16, Metric: vector.L2, M: 4}, d.own)
	check := func() {
		t.Helper()
		for _, q := range queries {
			if got, want := g.Search(q, 5, 200, nil, nil), d.nearest(vector.L2, q, 5, nil); !slices.Equal(got, want) {
				t.Fatalf("with %d pending: %v, want %v", g.Pending(), got, want)
			}
		}
	}
	d.eachVector(g.Add)
	check()
	if left := g.Link(2, 100); left != 500 || g.Pending() != 500 {
		t.Errorf("%d are left and %d pending once 100 of 600 are linked", left, g.Pending())
	}
	check()
	if left := g.Link(2, 1); left != 499 {
		t.Errorf("%d are left once one more is linked, want 499", left)
	}
	if left := g.Link(2, 1000); left != 0 {
		t.Errorf("%d are left once all are linked", left)
	}
	check()
}

func TestAPendingVectorThatGoesIsNotLinked(t *testing.T) {
	d, _ := clustered(12, 300, 16, 5, 0)
	g := New(Options{Dim: 16, Metric: vector.L2}, d.own)
	d.eachVector(g.Add)
	for id := int64(1); id <= 300; id += 2 {
		g.Remove(id)
	}
	g.Link(2, 300)
	checkGraph(t, g)
	for node := range g.Nodes() {
		if gone := g.ids[node] == 0; gone != (len(g.neighbours(uint32(node), 0)) == 0) {
			t.Errorf("node %d, gone: %v, has %d links", node, gone, len(g.neighbours(uint32(node), 0)))
		}
	}
}

func TestNearlyAllNodesAreReached(t *testing.T) {
	d, _ := clustered(13, 2000, 32, 100, 0)
	g := d.built(Options{Dim: 32, Metric: vector.L2, M: 8, EFConstruction: 40}, 2)
	s := g.scratch()
	g.aimAt(&s.target, 0)
	g.walk(s, keyOf(0, g.entry), walk{ef: g.Nodes()})
	if reached := len(s.found); reached < 1995 {
		t.Errorf("of 2000 nodes %d are reached from the entry", reached)
	}
}

func TestSearchesDuringLink(t *testing.T) {
	d, queries := clustered(14, 700, 16, 20, 30)
	for _, q := range quants {
		g := New(Options{Dim: 16, Metric: vector.L2, M: 4, EFConstruction: 30, Quant: q}, d.own)
		d.eachVector(g.Add)
		var done atomic.Bool
		var searches sync.WaitGroup
		for i := range 3 {
			searches.Go(func() {
				dst := make([]index.Hit, 0, 10)
				for n := i; !done.Load(); n++ {
					q := queries[n%len(queries)]
					if dst = g.Search(q, 10, 20, nil, dst[:0]); len(dst) != 10 {
						t.Errorf("%d hits, want 10", len(dst))
					}
				}
			})
		}
		for g.Link(2, 64) > 0 {
			runtime.Gosched()
		}
		done.Store(true)
		searches.Wait()
		checkGraph(t, g)
	}
}

func TestBytes(t *testing.T) {
	const n, dim = 20_000, 128
	r := rand.New(rand.NewPCG(15, 16))
	floats := make([]float32, n*dim)
	for i := range floats {
		floats[i] = float32(r.NormFloat64())
	}
	vectorOf := func(id int64) []float32 { return floats[(id-1)*dim : id*dim] }
	build := func(q vector.Quant) *Graph {
		g := New(Options{Dim: dim, Metric: vector.Cosine, Quant: q}, func(id int64, _ []float32) []float32 { return vectorOf(id) })
		g.Reserve(n)
		for id := int64(1); id <= n; id++ { // room for links is made with the node
			g.Add(id, vectorOf(id))
		}
		return g
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	g := build(0)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if heap := float64(after.HeapAlloc) - float64(before.HeapAlloc); heap > 1.03*float64(g.Bytes()) {
		t.Errorf("the graph says it holds %d bytes, the heap has grown by %.0f", g.Bytes(), heap)
	}

	arena := g.rows.Bytes()
	if arena < n*dim*4 || arena > n*dim*4*101/100 {
		t.Errorf("the vectors take %d bytes, want %d", arena, n*dim*4)
	}
	if got := g.signs.Bytes(); got < n*dim/8 || got > n*dim/8*101/100 {
		t.Errorf("their signs take %d bytes, want %d", got, n*dim/8)
	}
	links := int64(0)
	for node := range g.Nodes() {
		for l := g.level(node); l >= 0; l-- {
			links += int64(g.width(l))
		}
	}
	if most := float64(n*dim*4+links*4) * 1.15; float64(g.Bytes()) > most {
		t.Errorf("the graph takes %d bytes, want at most %.0f", g.Bytes(), most)
	}
	for q, most := range map[vector.Quant]float64{vector.Int8: 0.27, vector.Bit: 0.05} {
		if got := build(q).space.bytes(); float64(got) > most*float64(arena) {
			t.Errorf("codes of %v take %d bytes, want at most %v of %d", q, got, most, arena)
		}
	}
	if l2 := newSpace(Options{Dim: dim, Metric: vector.L2, Quant: vector.Int8}); l2.codes != nil {
		l2.reserve(n)
		if got := l2.bytes(); float64(got) > 0.27*float64(arena) {
			t.Errorf("codes for distances take %d bytes, want at most 0.27 of %d", got, arena)
		}
	}
	runtime.KeepAlive(g)
}
