package hnsw

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fenec/engine/index"
	"fenec/engine/vector"
)

var metrics = []vector.Metric{vector.Cosine, vector.L2, vector.DotProduct}

// someMetrics is all metrics, in a short run one: what goroutines share does not depend on the metric.
func someMetrics() []vector.Metric {
	if testing.Short() {
		return metrics[:1]
	}
	return metrics
}

func TestRecallOfClusters(t *testing.T) {
	d, queries := clustered(1, 2000, 32, 50, 30)
	for _, m := range someMetrics() {
		t.Run(m.String(), func(t *testing.T) {
			g := d.built(Options{Dim: 32, Metric: m, EFConstruction: 50}, 2)
			checkGraph(t, g)
			if got := recall(t, g, d, queries, 10, 100, nil); got < 0.97 {
				t.Errorf("recall %.3f, want at least 0.97", got)
			}
		})
	}
}

func TestRecallByCodes(t *testing.T) {
	d, queries := clustered(2, 2000, 64, 50, 30)
	for _, c := range []struct {
		quant  vector.Quant
		metric vector.Metric
		least  float64
	}{
		{vector.Int8, vector.Cosine, 0.97},
		{vector.Int8, vector.L2, 0.97},
		{vector.Int8, vector.DotProduct, 0.97},
		{vector.Bit, vector.Cosine, 0.94},
		{vector.Bit, vector.L2, 0.94},
		{vector.Bit, vector.DotProduct, 0.94},
	} {
		if !slices.Contains(someMetrics(), c.metric) {
			continue
		}
		t.Run(c.quant.String()+" "+c.metric.String(), func(t *testing.T) {
			g := d.built(Options{Dim: 64, Metric: c.metric, EFConstruction: 40, Quant: c.quant}, 2)
			if got := recall(t, g, d, queries, 10, 100, nil); got < c.least {
				t.Errorf("recall %.3f, want at least %.2f", got, c.least)
			}
		})
	}
}

func TestRecallUnderChurn(t *testing.T) {
	d, queries := clustered(3, 2000, 32, 50, 30)
	fresh, _ := clustered(4, 2000, 32, 50, 0)
	g := d.built(Options{Dim: 32, Metric: vector.L2, EFConstruction: 40}, 2)
	for round := range 3 {
		for id := int64(1 + round); id <= 2000; id += 4 {
			if id%3 == 0 {
				delete(d, id)
				g.Remove(id)
				continue
			}
			d[id] = fresh[id]
			g.Add(id, d[id])
		}
		g.Link(2, 250) // some stay pending
		checkGraph(t, g)
		if got := recall(t, g, d, queries, 10, 100, nil); got < 0.95 {
			t.Errorf("round %d: recall %.3f, want at least 0.95, with %d tombstones and %d pending among %d nodes",
				round, got, g.Tombstones(), g.Pending(), g.Nodes())
		}
	}
}

func TestRecallOfOneHotVectors(t *testing.T) {
	d := make(docs)
	for id := range int64(300) {
		v := make([]float32, 300)
		v[id] = 1
		d[id+1] = v
	}
	for _, m := range metrics {
		g := d.built(Options{Dim: 300, Metric: m}, 2)
		for id, v := range d {
			if got, want := g.Search(v, 10, 100, nil, nil), d.nearest(m, v, 10, nil); !slices.Equal(got, want) {
				t.Fatalf("%v of the axis %d: %v, want %v", m, id, got, want)
			}
		}
	}
}

// pool is vectors that are equal often, and near each other in more than one way.
func pool(t *rapid.T, dim int) *rapid.Generator[[]float32] {
	number := rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 1, -1, 2, 0.5, 1e-30, 1e30, 3e38})
	return rapid.Custom(func(t *rapid.T) []float32 {
		v := make([]float32, dim)
		if rapid.Bool().Draw(t, "one-hot") {
			v[rapid.IntRange(0, dim-1).Draw(t, "axis")] = 1
			return v
		}
		for i := range v {
			v[i] = number.Draw(t, "x")
		}
		return v
	})
}

// TestTheGraphIsItsTwin: whatever was written, a search that keeps all nodes in sight is the search of all documents, and one
// that keeps few gives whole pages of documents with their scores.
func TestTheGraphIsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.SampledFrom([]int{1, 3, 17, 65}).Draw(t, "dim")
		o := Options{
			Dim: dim, Metric: rapid.SampledFrom(metrics).Draw(t, "metric"), M: 2, EFConstruction: 4,
			Quant: rapid.SampledFrom([]vector.Quant{0, vector.Int8, vector.Bit}).Draw(t, "quant"),
		}
		d := make(docs)
		g := New(o, d.own)
		vectors, id := pool(t, dim), rapid.Int64Range(1, 60)
		remove := func(id int64) { g.Remove(id); delete(d, id) }
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					id := id.Draw(t, "id")
					remove(id)
					d[id] = vectors.Draw(t, "v")
					g.Add(id, d[id])
				}
			},
			"del": func(t *rapid.T) { remove(id.Draw(t, "id")) },
			"link": func(t *rapid.T) {
				g.Link(rapid.IntRange(1, 3).Draw(t, "workers"), rapid.IntRange(0, 30).Draw(t, "most"))
			},
			"save and load": func(t *rapid.T) {
				if loaded, err := d.load(g.AppendBinary(nil), o); err == nil {
					g = loaded
				} else if g.Tombstones()*stale <= g.linked {
					t.Fatalf("a graph of %d linked nodes with %d tombstones: %v", g.linked, g.Tombstones(), err)
				}
			},
			"": func(t *rapid.T) {
				checkGraph(t, g)
				q := vectors.Draw(t, "q")
				k := rapid.IntRange(1, 20).Draw(t, "k")
				var accept func(id int64) bool
				if rapid.Bool().Draw(t, "filter") {
					accept = func(id int64) bool { return id%3 == 0 }
				}
				want := d.nearest(o.Metric, q, k, accept)
				if got := g.Search(q, k, math.MaxInt32, accept, nil); !slices.Equal(got, want) {
					t.Fatalf("the nearest of all are %v, want %v", got, want)
				}
				if got, _, ok := g.SearchAmong(q, k, 100, d.members(accept), nil, nil); !ok || !slices.Equal(got, want) {
					t.Fatalf("the nearest of all members are %v, want %v", got, want)
				}
				checkPage(t, d, o.Metric, q, g.Search(q, k, 1, nil, nil), min(k, len(d)))
				checkPrefixes(t, rapid.IntRange(1, 20).Draw(t, "ef"), func(k, ef int) []index.Hit { return g.Search(q, k, ef, accept, nil) })
			},
		})
	})
}

// checkPrefixes holds searches that differ in k alone, none above ef, to being the beginnings of the longest.
func checkPrefixes(t rapid.TB, ef int, search func(k, ef int) []index.Hit) {
	t.Helper()
	long := search(ef, ef)
	for k := 1; k < ef; k += max(1, ef/7) {
		if got, want := search(k, ef), long[:min(k, len(long))]; !slices.Equal(got, want) {
			t.Fatalf("with ef %d the first %d are %v, of the first %d %v", ef, k, got, ef, want)
		}
	}
}

// checkPage holds a page to what is true of any: as many documents as there are, each once, with its score, in order.
func checkPage(t rapid.TB, d docs, m vector.Metric, q []float32, page []index.Hit, rows int) {
	t.Helper()
	if len(page) != rows {
		t.Fatalf("a page has %d rows, want %d: %v", len(page), rows, page)
	}
	var s vector.Scorer
	s.Reset(m, q)
	top := index.NewTopK(rows, m.Ascending(), nil)
	for _, h := range page {
		if want := s.Score(d[h.ID]); h.Score != want {
			t.Fatalf("document %d has the score %v, want %v", h.ID, h.Score, want)
		}
		top.Push(h)
	}
	if want := top.Append(nil); !slices.Equal(page, want) {
		t.Fatalf("a page is %v, in order it is %v", page, want)
	}
	seen := make(map[int64]bool)
	for _, h := range page {
		if seen[h.ID] {
			t.Fatalf("document %d is twice in %v", h.ID, page)
		}
		seen[h.ID] = true
	}
}

func TestDocumentsWithTheSameVectorAreAllFound(t *testing.T) {
	for _, q := range []vector.Quant{0, vector.Int8, vector.Bit} {
		d, _ := clustered(5, 500, 8, 5, 0)
		for id := int64(501); id <= 800; id++ {
			d[id] = d[7]
		}
		g := d.built(Options{Dim: 8, Metric: vector.L2, M: 4, Quant: q}, 2)
		if g.Nodes() != 500 {
			t.Errorf("quant %q: %d nodes, want 500", q, g.Nodes())
		}
		got := g.Search(d[7], 301, 10, nil, nil)
		if want := d.nearest(vector.L2, d[7], 301, nil); !slices.Equal(got, want) {
			t.Errorf("quant %q: the 301 with the vector of document 7 are %v, want %v", q, got, want)
		}
		odd := g.Search(d[7], 10, 200, func(id int64) bool { return id%2 == 1 && id > 600 }, nil)
		if len(odd) != 10 || odd[0].ID != 601 || odd[9].ID != 619 {
			t.Errorf("quant %q: the first ten odd ones past 600 are %v", q, odd)
		}
	}
}

func TestTombstonesNeverShortenAPage(t *testing.T) {
	d, queries := clustered(6, 3000, 16, 3, 10)
	g := d.built(Options{Dim: 16, Metric: vector.Cosine, M: 4, EFConstruction: 40}, 2)
	for id := int64(1); id <= 3000; id++ {
		if id%50 != 0 {
			g.Remove(id)
			delete(d, id)
		}
	}
	for _, q := range queries {
		if got, want := g.Search(q, 60, 1, nil, nil), d.nearest(vector.Cosine, q, 60, nil); !slices.Equal(got, want) {
			t.Fatalf("the 60 that are left: %v, want %v", got, want)
		}
	}
}

func TestAVectorAddedAgainReusesItsNode(t *testing.T) {
	for _, q := range []vector.Quant{0, vector.Int8, vector.Bit} {
		d, _ := clustered(7, 300, 8, 5, 0)
		g := d.built(Options{Dim: 8, Metric: vector.L2, Quant: q}, 1)
		v := d[9]
		g.Remove(9)
		delete(d, 9)
		if g.Tombstones() != 1 || g.Len() != 299 {
			t.Errorf("quant %q: %d tombstones, %d documents, want 1 and 299", q, g.Tombstones(), g.Len())
		}
		d[1000] = v
		g.Add(1000, v)
		if g.Tombstones() != 0 || g.Nodes() != 300 || g.Pending() != 0 {
			t.Errorf("quant %q: %d tombstones, %d nodes, %d pending, want 0, 300, 0", q, g.Tombstones(), g.Nodes(), g.Pending())
		}
		if got := g.Search(v, 1, 50, nil, nil); len(got) != 1 || got[0].ID != 1000 {
			t.Errorf("quant %q: the nearest is %v, want 1000", q, got)
		}
	}
}

func TestTheBestAcceptedOfAllThatWasMeasured(t *testing.T) {
	d, queries := clustered(8, 2500, 32, 50, 30)
	g := d.built(Options{Dim: 32, Metric: vector.L2, EFConstruction: 40}, 2)
	third := func(id int64) bool { return id%3 == 0 }
	if got := recall(t, g, d, queries, 10, 150, third); got < 0.95 {
		t.Errorf("recall of a third of the documents %.3f, want at least 0.95", got)
	}
	for _, q := range queries {
		for _, h := range g.Search(q, 10, 50, third, nil) {
			if !third(h.ID) {
				t.Fatalf("document %d is not among the accepted", h.ID)
			}
		}
	}
}

func TestSearchAllocatesNothing(t *testing.T) {
	d, queries := clustered(9, leastEstimated, 65, 20, 1)
	for _, q := range []vector.Quant{0, vector.Int8, vector.Bit} {
		own := func(id int64, _ []float32) []float32 { return d[id] }
		g := New(Options{Dim: 65, Metric: vector.Cosine, EFConstruction: 20, Quant: q}, own)
		g.Build(len(d), 1, d.eachVector)
		dst := make([]index.Hit, 0, 10)
		accept := func(id int64) bool { return id%2 == 0 }
		s := g.scratch()
		for name, accept := range map[string]func(int64) bool{"all": nil, "half": accept} {
			if n := testing.AllocsPerRun(200, func() { g.search(s, queries[0], 10, 30, accept, dst) }); n > 0 {
				t.Errorf("quant %q, %s: %v allocations a search, want none", q, name, n)
			}
		}
		ids := d.ids()
		if n := testing.AllocsPerRun(200, func() { g.searchAmong(s, queries[0], 10, 300, ids, accept, dst) }); n > 0 {
			t.Errorf("quant %q: %v allocations a search among documents, want none", q, n)
		}
	}
}

func TestLevels(t *testing.T) {
	g := New(Options{Dim: 1, Metric: vector.L2, M: 16}, nil)
	var at [maxLevel + 1]int
	const n = 1 << 20
	for node := range n {
		at[g.level(node)]++
	}
	for l, want := range []float64{n * 15. / 16, n * 15. / 256, n * 15. / 4096} {
		if got := float64(at[l]); math.Abs(got-want) > 5*math.Sqrt(want) {
			t.Errorf("%v nodes of %d have level %d, want about %.0f", got, n, l, want)
		}
	}
}

func TestKeysOrderAsDistances(t *testing.T) {
	inf := float32(math.Inf(1))
	distances := []float32{-inf, -math.MaxFloat32, -1, -1e-45, 0, 1e-45, 1, math.MaxFloat32, inf}
	for i, d := range distances {
		if k := keyOf(d, 77); k.distance() != d || k.node() != 77 {
			t.Errorf("the key of %v and 77 is of %v and %d", d, k.distance(), k.node())
		}
		if i > 0 && keyOf(distances[i-1], math.MaxUint32) >= keyOf(d, 0) {
			t.Errorf("the key of %v is not below that of %v", distances[i-1], d)
		}
	}
	for _, nan := range []float32{float32(math.NaN()), float32(math.Copysign(math.NaN(), -1))} {
		if keyOf(nan, 0) <= keyOf(inf, math.MaxUint32) {
			t.Errorf("the key of what is not a number is not the greatest")
		}
	}
}

func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOf(rapid.Map(rapid.Uint64Range(0, 50), func(n uint64) key { return key(n) })).Draw(t, "keys")
		var h heap
		for _, k := range keys {
			h.push(k)
		}
		slices.Sort(keys)
		for _, want := range keys {
			if got := h.pop(); got != want {
				t.Fatalf("popped %d, want %d", got, want)
			}
		}
	})
}

func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hashes := rapid.SliceOfN(rapid.SampledFrom([]uint32{0, 1, 2, 1 << 31, 1<<32 - 2, 1<<32 - 1}), 40, 40).Draw(t, "hashes")
		var x table
		in := make(map[uint32]bool)
		for _, node := range rapid.SliceOf(rapid.Uint32Range(0, 39)).Draw(t, "turned") {
			if in[node] = !in[node]; in[node] {
				x.add(hashes, node)
			} else {
				x.remove(hashes, node)
			}
			for n := range uint32(40) {
				found := false
				x.each(hashes, hashes[n], func(node uint32) bool { found = found || node == n; return true })
				if found != in[n] {
					t.Fatalf("node %d found: %v, put in: %v", n, found, in[n])
				}
			}
		}
	})
}

func ExampleGraph_Search() {
	g := New(Options{Dim: 2, Metric: vector.L2}, nil)
	g.Add(1, []float32{0, 0})
	g.Add(2, []float32{3, 4})
	fmt.Println(g.Search([]float32{0, 1}, 2, 10, nil, nil))
	// Output: [{1 1} {2 4.2426405}]
}
