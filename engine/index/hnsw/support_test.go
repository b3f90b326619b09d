package hnsw

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"fenec/engine/index"
	"fenec/engine/vector"
)

// docs is the documents of a test, by their ids.
type docs map[int64][]float32

func (d docs) own(id int64, dst []float32) []float32 {
	v, ok := d[id]
	if !ok {
		return nil
	}
	return append(dst, v...)
}

// ids are the documents' ids, ascending.
func (d docs) ids() []int64 {
	ids := make([]int64, 0, len(d))
	for id := range d {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// members are the ids that accept takes, ascending, and some that no document has.
func (d docs) members(accept func(id int64) bool) []int64 {
	ids := append(d.ids(), math.MaxInt64-1, math.MaxInt64)
	ids = slices.Insert(ids, 0, -1, 0)
	return slices.DeleteFunc(ids, func(id int64) bool { return accept != nil && !accept(id) })
}

func (d docs) eachVector(add func(id int64, v []float32)) {
	for _, id := range d.ids() {
		add(id, d[id])
	}
}

// built is a graph of the documents.
func (d docs) built(o Options, workers int) *Graph {
	g := New(o, d.own)
	g.Build(len(d), workers, d.eachVector)
	return g
}

// load is the graph that was saved, with the documents as they are now.
func (d docs) load(b []byte, o Options) (*Graph, error) {
	return Load(b, o, d.own, len(d), d.eachVector)
}

// nearest is the k nearest of the documents by measuring all of them.
func (d docs) nearest(m vector.Metric, q []float32, k int, accept func(id int64) bool) []index.Hit {
	top := index.NewTopK(k, m.Ascending(), nil)
	var s vector.Scorer
	s.Reset(m, q)
	for id, v := range d {
		if accept == nil || accept(id) {
			top.Push(index.Hit{ID: id, Score: s.Score(v)})
		}
	}
	return top.Append(nil)
}

// clustered is n vectors around so many centres, and as many queries around them as are asked for.
func clustered(seed uint64, n, dim, clusters, queries int) (docs, [][]float32) {
	r := rand.New(rand.NewPCG(seed, 7))
	centres := make([][]float32, clusters)
	for i := range centres {
		centres[i] = make([]float32, dim)
		for j := range centres[i] {
			centres[i][j] = float32(r.NormFloat64() * 1.5)
		}
	}
	draw := func() []float32 {
		v := slices.Clone(centres[r.IntN(clusters)])
		for j := range v {
			v[j] += float32(r.NormFloat64() * 1.5)
		}
		return v
	}
	d := make(docs, n)
	for i := range n {
		d[int64(i+1)] = draw()
	}
	q := make([][]float32, queries)
	for i := range q {
		q[i] = draw()
	}
	return d, q
}

// recall is the share of the true k nearest that the graph finds, over all queries.
func recall(t testing.TB, g *Graph, d docs, queries [][]float32, k, ef int, accept func(id int64) bool) float64 {
	t.Helper()
	var found, wanted int
	for _, q := range queries {
		want := d.nearest(g.Metric, q, k, accept)
		got := g.Search(q, k, ef, accept, nil)
		wanted += len(want)
		for _, w := range want {
			if slices.Contains(got, w) {
				found++
			}
		}
	}
	return float64(found) / float64(wanted)
}

// checkGraph holds a graph to what must be true between any two calls.
func checkGraph(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, g *Graph,
) {
	t.Helper()
	documents, dead := 0, 0
	for node := range g.ids {
		if g.ids[node] == 0 {
			dead++
		}
		g.eachID(uint32(node), func(id int64) bool {
			if at, ok := g.places.Get(id); !ok || int(at) != node {
				t.Fatalf("document %d of node %d is at node %d, %v", id, node, at, ok)
			}
			documents++
			return true
		})
		if (g.ids[node] < 0) != (g.more.Count(uint64(node)) > 0) {
			t.Fatalf("node %d has document %d and %d more", node, g.ids[node], g.more.Count(uint64(node)))
		}
		if node >= g.linked {
			continue
		}
		for l := g.level(node); l >= 0; l-- {
			links := slices.Clone(g.neighbours(uint32(node), l))
			for _, to := range links {
				if int(to) >= g.linked || int(to) == node || g.level(int(to)) < l || g.unlinked(int(to)) && int(to) != int(g.entry) {
					t.Fatalf("node %d is linked to %d at level %d", node, to, l)
				}
			}
			slices.Sort(links)
			if len(slices.Compact(links)) != len(g.neighbours(uint32(node), l)) {
				t.Fatalf("node %d is linked to one twice at level %d: %v", node, l, links)
			}
		}
	}
	if documents != g.Len() || dead != g.Tombstones() {
		t.Fatalf("%d documents and %d tombstones, want %d and %d", g.Len(), g.Tombstones(), documents, dead)
	}
}
