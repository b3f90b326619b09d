package hnsw

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"fenec/engine/fail"
	"fenec/engine/index"
	"fenec/engine/vector"
)

// drawn is n documents and so many queries, drawn one after another.
func drawn(n, queries int, draw func() []float32) (docs, [][]float32) {
	d := make(docs, n)
	for id := range int64(n) {
		d[id+1] = draw()
	}
	q := make([][]float32, queries)
	for i := range q {
		q[i] = draw()
	}
	return d, q
}

// around draws vectors whose components are made of those of one of 50 centres, which are made of nothing.
func around(r *rand.Rand, dim int, component func(of float32) float32, centre func() float32) func() []float32 {
	filled := func(component func(i int) float32) []float32 {
		v := make([]float32, dim)
		for i := range v {
			v[i] = component(i)
		}
		return v
	}
	centres := make([][]float32, 50)
	for i := range centres {
		centres[i] = filled(func(int) float32 { return centre() })
	}
	return func() []float32 {
		c := centres[r.IntN(len(centres))]
		return filled(func(i int) float32 { return component(c[i]) })
	}
}

func zero() float32 { return 0 }

// kinds draw vectors of so many components. Those of the first few have none below zero.
var kinds = map[string]func(r *rand.Rand, dim int) func() []float32{
	"uniform": func(r *rand.Rand, dim int) func() []float32 {
		return around(r, dim, func(float32) float32 { return r.Float32() }, zero)
	},
	"sparse": func(r *rand.Rand, dim int) func() []float32 {
		return around(r, dim, func(float32) float32 {
			if r.IntN(8) > 0 {
				return 0
			}
			return float32(r.ExpFloat64())
		}, zero)
	},
	"clustered": func(r *rand.Rand, dim int) func() []float32 {
		return around(r, dim, func(of float32) float32 { return max(of+float32(r.NormFloat64())*0.15, 0) }, r.Float32)
	},
	"far off": func(r *rand.Rand, dim int) func() []float32 {
		return around(r, dim, func(float32) float32 { return 100 + float32(r.NormFloat64()) }, zero)
	},
	"of many lengths": func(r *rand.Rand, dim int) func() []float32 {
		draw := around(r, dim, func(float32) float32 { return r.Float32() }, zero)
		return func() []float32 {
			v := draw()
			by := r.Float32() + 0.1
			for i := range v {
				v[i] *= by
			}
			return v
		}
	},
	"mixed": func(r *rand.Rand, dim int) func() []float32 {
		return around(r, dim, func(float32) float32 { return float32(r.NormFloat64()) }, zero)
	},
	"mixed clusters": func(r *rand.Rand, dim int) func() []float32 {
		return around(r, dim, func(of float32) float32 { return of + float32(r.NormFloat64())*1.5 },
			func() float32 { return float32(r.NormFloat64() * 1.5) })
	},
	"along one axis": func(r *rand.Rand, dim int) func() []float32 {
		draw := around(r, dim, func(float32) float32 { return float32(r.NormFloat64()) }, zero)
		return func() []float32 {
			v := draw()
			by := float32(r.NormFloat64()) * 2
			for i := range v {
				v[i] += by
			}
			return v
		}
	},
}

// TestRecallByBits: what is wanted is what was measured for the worst metric, less 0.06 or so. It is least of vectors that have no
// near ones: all are about as far from a query.
func TestRecallByBits(t *testing.T) {
	for kind, least := range map[string][3]float64{
		"uniform": {0.87, 0.87, 0.83}, "sparse": {0.88, 0.88, 0.78}, "clustered": {0.92, 0.94, 0.94},
		"far off": {0.88, 0.83, 0.85}, "of many lengths": {0.88, 0.85, 0.86},
		"mixed": {0.82, 0.77, 0.7}, "mixed clusters": {0.94, 0.94, 0.94}, "along one axis": {0.86, 0.85, 0.85},
	} {
		for i, dim := range []int{64, 128, 384} {
			if testing.Short() && i > 0 {
				break
			}
			for _, m := range someMetrics() {
				d, queries := drawn(1000, 30, kinds[kind](rand.New(rand.NewPCG(31, 7)), dim))
				g := d.built(Options{Dim: dim, Metric: m, M: 8, EFConstruction: 40, Quant: vector.Bit}, 2)
				if got := recall(t, g, d, queries, 10, 100, nil); got < least[i] {
					t.Errorf("%s, %d components, %s: recall %.3f, want at least %.2f", kind, dim, m, got, least[i])
				}
			}
		}
	}
}

// checkCodes holds the codes of all linked nodes with documents to being those of their vectors around the centre.
func checkCodes(t *testing.T, g *Graph, d docs) {
	t.Helper()
	row := make([]uint64, g.bit.words+1)
	for node := range g.linked {
		if id := g.Document(node); id > 0 {
			g.bit.encode(row, g.prepare(nil, d[id]), nil)
			if !slices.Equal(row, g.bit.rows.Row(node)) {
				t.Fatalf("node %d has the code %x, its vector around the centre has %x", node, g.bit.rows.Row(node), row)
			}
		}
	}
}

// TestAGraphThatGrowsIsRecentred: the first vectors say little of those that come, whose part of the centre is another.
func TestAGraphThatGrowsIsRecentred(t *testing.T) {
	const dim, first = 64, 10
	all, centres := int64(20_000), 4
	if testing.Short() {
		all, centres = all/8, centres-1
	}
	for _, m := range someMetrics() {
		r := rand.New(rand.NewPCG(32, 7))
		draw := kinds["clustered"](r, dim)
		late, queries := drawn(int(all), 30, draw)
		early, _ := drawn(first, 0, func() []float32 {
			v := draw()
			for i := range dim / 2 {
				v[i] = 0
			}
			return v
		})
		d := make(docs)
		g := New(Options{Dim: dim, Metric: m, M: 6, EFConstruction: 20, Quant: vector.Bit}, d.own)
		put := func(from docs, below int64) {
			for id := int64(len(d) + 1); id <= below; id++ {
				d[id] = from[id]
				g.Add(id, d[id])
			}
		}
		put(early, first)
		g.Link(2, first)
		taken := []int{g.bit.taken}
		for int64(len(d)) < all {
			put(late, min(int64(len(d)+1+len(d)/4), all))
			g.Link(2, int(all))
			g.Recode(2, 1)
			if last := taken[len(taken)-1]; g.bit.taken != last {
				taken = append(taken, g.bit.taken)
			}
			checkCodes(t, g, d)
		}
		if len(taken) != centres || taken[centres-1] < int(all)/16 {
			t.Errorf("%s: centres are taken of %v vectors, want %d, each of eight times as many", m, taken, centres)
		}
		checkGraph(t, g)
		if got := recall(t, g, d, queries, 10, 100, nil); got < 0.63 { // a graph that is built of all at once has 0.69
			t.Errorf("%s: recall %.3f of %d vectors, want at least 0.63", m, got, all)
		}
		if g.recoding.to != nil || g.Recode(1, 1) != 0 {
			t.Errorf("%s: the graph is still recoded", m)
		}
	}
}

// TestRecodingDuringChanges removes documents before, while and after their nodes are recoded, and puts them back.
func TestRecodingDuringChanges(t *testing.T) {
	const few, all = 200, 2000
	for _, kind := range []string{"uniform", "sparse"} {
		d, queries := drawn(all, 20, kinds[kind](rand.New(rand.NewPCG(33, 7)), 16))
		g := New(Options{Dim: 16, Metric: vector.L2, M: 4, EFConstruction: 20, Quant: vector.Bit}, d.own)
		for id := int64(1); id <= few; id++ {
			g.Add(id, d[id])
		}
		g.Link(1, few)
		for id := int64(few + 1); id <= all; id++ {
			g.Add(id, d[id])
		}
		gone := make(docs)
		remove := func(from int64) {
			for id := from; id <= all; id += 16 {
				gone[id] = d[id]
				delete(d, id)
				g.Remove(id)
			}
		}
		remove(1)
		g.Link(1, 1) // which begins the recoding
		remove(2)
		g.Recode(1, 1)
		remove(3)
		if g.recoding.done != recodeBlock {
			t.Fatalf("%d nodes are recoded, want %d and more to come", g.recoding.done, recodeBlock)
		}
		for id, v := range gone {
			d[id] = v
			g.Add(id, v)
		}
		g.Link(2, all)
		remove(4)
		checkGraph(t, g)
		checkCodes(t, g, d)
		if g.recoding.to != nil || g.bit.taken <= few {
			t.Fatalf("%s: the centre is still of %d", kind, g.bit.taken)
		}
		if got := recall(t, g, d, queries, 10, 100, nil); got < 0.75 {
			t.Errorf("%s: recall %.3f, want at least 0.75", kind, got)
		}
	}
}

// TestAVectorAddedAgainDuringARecodingHasItsCode: while its document was gone, its code was made of its code.
func TestAVectorAddedAgainDuringARecodingHasItsCode(t *testing.T) {
	d, _ := drawn(300, 0, kinds["uniform"](rand.New(rand.NewPCG(34, 7)), 16))
	g := New(Options{Dim: 16, Metric: vector.Cosine, M: 4, EFConstruction: 20, Quant: vector.Bit}, d.own)
	add := func(from, to int64) {
		for id := from; id <= to; id++ {
			g.Add(id, d[id])
		}
	}
	add(1, 30)
	g.Link(1, 30)
	add(31, 280)
	g.Link(1, batchSize) // which begins the recoding
	v := d[7]
	delete(d, 7)
	g.Remove(7)
	g.Recode(1, 1)
	if g.recoding.done != recodeBlock {
		t.Fatalf("%d nodes are recoded, want %d and more to come", g.recoding.done, recodeBlock)
	}
	d[500] = v
	g.Add(500, v)
	if g.Recode(1, 10); g.recoding.to != nil || g.bit.taken != 280 {
		t.Fatalf("the centre is of %d vectors, want 280", g.bit.taken)
	}
	if got := g.Document(6); got != 500 {
		t.Fatalf("the first node has document %d, want 500", got)
	}
	checkCodes(t, g, d)
}

// TestFewVectorsByBits: one, equal ones, and ones that differ only in their lengths, which have nothing beside their part of the
// centre.
func TestFewVectorsByBits(t *testing.T) {
	one := []float32{1, 2, 0, 4, 5, 0, 7, 8}
	times := func(by float32) []float32 {
		v := slices.Clone(one)
		for i := range v {
			v[i] *= by
		}
		return v
	}
	for name, d := range map[string]docs{
		"one":               {1: one},
		"one of zeros":      {1: make([]float32, 8)},
		"equal":             {1: one, 2: one, 3: one},
		"of three lengths":  {1: one, 2: times(2), 3: times(3)},
		"on opposite sides": {1: one, 2: times(-1), 3: times(-2)},
		"one of large ones": {1: times(1e37), 2: times(2e36), 3: one},
	} {
		for _, m := range metrics {
			g := d.built(Options{Dim: 8, Metric: m, Quant: vector.Bit}, 1)
			for _, q := range [][]float32{one, times(2.5), times(-1), make([]float32, 8)} {
				want := d.nearest(m, q, 3, nil)
				if got := g.Search(q, 3, 3, nil, nil); !slices.Equal(got, want) {
					t.Errorf("%s, %s: %v, want %v", name, m, got, want)
				}
				if got, _, _ := g.SearchAmong(q, 3, 3, d.ids(), nil, nil); !slices.Equal(got, want) {
					t.Errorf("%s, %s, among: %v, want %v", name, m, got, want)
				}
			}
		}
	}
	// Many that differ only in their lengths are distinguished: the nearest is found though only one is kept in sight.
	d := make(docs)
	for id := range int64(1000) {
		d[id+1] = times(float32(id + 1))
	}
	for _, m := range []vector.Metric{vector.L2, vector.DotProduct} {
		g := d.built(Options{Dim: 8, Metric: m, M: 4, EFConstruction: 20, Quant: vector.Bit}, 1)
		q := times(333.25)
		if got, want := g.Search(q, 1, 3, nil, nil), d.nearest(m, q, 1, nil); !slices.Equal(got, want) {
			t.Errorf("%s: the nearest of a thousand lengths is %v, want %v", m, got, want)
		}
	}
}

// TestPendingMembersAreFoundWithoutACode: they have no code yet.
func TestPendingMembersAreFoundWithoutACode(t *testing.T) {
	d, queries := drawn(600, 10, kinds["uniform"](rand.New(rand.NewPCG(35, 7)), 16))
	g := New(Options{Dim: 16, Metric: vector.L2, M: 4, EFConstruction: 20, Quant: vector.Bit}, d.own)
	d.eachVector(g.Add)
	odd := func(id int64) bool { return id%2 == 1 }
	for _, q := range queries {
		got, _, ok := g.SearchAmong(q, 5, 10, d.ids(), odd, nil)
		if want := d.nearest(vector.L2, q, 5, odd); !ok || !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

// TestVectorsThatWereDeletedAreNoCentre: what was deleted before it was linked says nothing about later vectors.
func TestVectorsThatWereDeletedAreNoCentre(t *testing.T) {
	d, queries := drawn(900, 20, kinds["uniform"](rand.New(rand.NewPCG(36, 7)), 64))
	g := New(Options{Dim: 64, Metric: vector.Cosine, M: 4, EFConstruction: 20, Quant: vector.Bit}, d.own)
	other, _ := drawn(500, 0, kinds["mixed"](rand.New(rand.NewPCG(37, 7)), 64))
	for id, v := range other {
		g.Add(id, v)
		g.Remove(id)
	}
	g.Link(1, 500)
	d.eachVector(g.Add)
	g.Link(1, 900)
	g.Recode(1, 900)
	if g.bit.taken == 0 {
		t.Fatal("there is no centre")
	}
	checkCodes(t, g, d)
	if got := recall(t, g, d, queries, 10, 100, nil); got < 0.7 {
		t.Errorf("recall %.3f, want at least 0.7", got)
	}
}

func TestALoadedGraphHasTheCodesOfTheOneSaved(t *testing.T) {
	for kind, uneven := range map[string]bool{"uniform": false, "sparse": true} {
		for _, m := range metrics {
			o := Options{Dim: 64, Metric: m, M: 4, EFConstruction: 20, Quant: vector.Bit}
			d, queries := drawn(1200, 20, kinds[kind](rand.New(rand.NewPCG(38, 7)), 64))
			g := d.built(o, 2)
			if g.bit.uneven != uneven {
				t.Errorf("%s: uneven: %v", kind, g.bit.uneven)
			}
			loaded, err := d.load(g.AppendBinary(nil), o)
			if err != nil {
				t.Fatal(err)
			}
			for node := range g.Nodes() {
				if !slices.Equal(loaded.bit.rows.Row(node), g.bit.rows.Row(node)) {
					t.Fatalf("%s, %s: node %d has the code %x, in the graph that was saved %x", kind, m, node,
						loaded.bit.rows.Row(node), g.bit.rows.Row(node))
				}
			}
			if loaded.bit.taken != g.bit.taken {
				t.Errorf("the centre is of %d, in the graph that was saved of %d", loaded.bit.taken, g.bit.taken)
			}
			for _, q := range queries {
				if got, want := loaded.Search(q, 10, 20, nil, nil), g.Search(q, 10, 20, nil, nil); !slices.Equal(got, want) {
					t.Fatalf("%s, %s: %v, in the graph that was saved %v", kind, m, got, want)
				}
			}
		}
	}
}

// TestSearchesDuringRecode: a search has the codes of one centre or of the other.
func TestSearchesDuringRecode(t *testing.T) {
	d, queries := drawn(3000, 20, kinds["clustered"](rand.New(rand.NewPCG(39, 7)), 16))
	g := New(Options{Dim: 16, Metric: vector.L2, M: 4, EFConstruction: 20, Quant: vector.Bit}, d.own)
	for id := int64(1); id <= 300; id++ {
		g.Add(id, d[id])
	}
	g.Link(2, 300)
	for id := int64(301); id <= 3000; id++ {
		g.Add(id, d[id])
	}
	var searches sync.WaitGroup
	for i := range 3 {
		searches.Go(func() {
			dst := make([]index.Hit, 0, 10)
			for n := range 300 {
				if dst = g.Search(queries[(n+i)%len(queries)], 10, 20, nil, dst[:0]); len(dst) != 10 {
					t.Errorf("%d hits, want 10", len(dst))
				}
			}
		})
	}
	g.Link(2, 3000)
	g.Recode(2, 3000)
	searches.Wait()
	if g.bit.taken != 3000 {
		t.Errorf("the centre is of %d vectors, want 3000", g.bit.taken)
	}
	checkCodes(t, g, d)
}

func TestAGraphByBitsIsNotLoaded(t *testing.T) {
	d, g := small(vector.Bit)
	saved := g.AppendBinary(nil)
	body := saved[:len(saved)-sumSize]
	at := len(magic) + 1
	for range g.header() {
		_, n := binary.Uvarint(body[at:])
		at += n
	}
	changed := func(at int, to ...byte) []byte {
		b := slices.Clone(body)
		copy(b[at:], to)
		return sealed(b)
	}
	for name, b := range map[string][]byte{
		"of version 1":                  changed(len(magic), 1),
		"a centre of no kind":           changed(at+1, 2),
		"a centre that is not a number": changed(at+2, 0, 0, 0xc0, 0x7f),
		"a centre cut short":            sealed(slices.Clone(body[:at+10])),
		"a centre of too many":          sealed(slices.Insert(slices.Clone(body), at, 0xff, 0xff, 0xff, 0xff, 0xff)),
	} {
		if _, err := d.load(b, smallOptions(vector.Bit)); fail.KindOf(err) != fail.Damaged {
			t.Errorf("%s: %v, want an error of kind %v", name, err, fail.Damaged)
		}
	}
	if _, err := d.load(sealed(slices.Clone(body)), smallOptions(vector.Bit)); err != nil {
		t.Errorf("unchanged: %v", err)
	}
	plain, g := small(0)
	b := g.AppendBinary(nil)
	b = b[:len(b)-sumSize]
	if b[len(magic)] != plainVersion {
		t.Errorf("a graph without codes is saved as version %d", b[len(magic)])
	}
	b[len(magic)] = bitVersion
	if _, err := plain.load(sealed(b), smallOptions(0)); fail.KindOf(err) != fail.Damaged {
		t.Errorf("a graph without codes of version 2: %v, want an error of kind %v", err, fail.Damaged)
	}
}
