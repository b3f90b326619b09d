package index

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"fenec/engine/doc"
	"pgregory.net/rapid"
)

// weightsOf returns the weights given by index.
func weightsOf(m map[uint32]float32) doc.Weights {
	var w doc.Weights
	for _, index := range slices.Sorted(maps.Keys(m)) {
		w = binary.LittleEndian.AppendUint32(w, index)
		w = binary.LittleEndian.AppendUint32(w, math.Float32bits(m[index]))
	}
	return w
}

func drawWeights(t *rapid.T, label string, most int) map[uint32]float32 {
	index := rapid.OneOf(rapid.Uint32Range(1, 6), rapid.Uint32Range(1, 40), rapid.SampledFrom([]uint32{1 << 20, math.MaxInt32}))
	weight := rapid.OneOf(
		rapid.SampledFrom([]float32{1, -1, 0.5, 2, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32}),
		rapid.Float32Range(-3, 3).Filter(func(f float32) bool { return f != 0 }))
	return rapid.MapOfN(index, weight, 0, most).Draw(t, label)
}

// naiveHits returns the hits among documents by the definition.
func naiveHits(all map[int64]map[uint32]float32, q map[uint32]float32, accept func(int64) bool) []Hit {
	var hits []Hit
	indexes := slices.Sorted(maps.Keys(q))
	for id, w := range all {
		sum, shared := 0.0, false
		for _, index := range indexes {
			if _, ok := w[index]; ok {
				sum += float64(q[index]) * float64(w[index])
				shared = true
			}
		}
		if shared && (accept == nil || accept(id)) {
			hits = append(hits, Hit{id, float32(max(min(sum, math.MaxFloat32), -math.MaxFloat32))})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		if a.Score != b.Score {
			return cmp.Compare(b.Score, a.Score)
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return hits
}

func TestAnInvertedIndexReturnsWhatTheScanDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &Inverted{}
		all := map[int64]map[uint32]float32{}
		ids := rapid.OneOf(rapid.Int64Range(1, 30), rapid.Int64Range(1, 5*windowSize), rapid.Int64Range(math.MaxInt64-3, math.MaxInt64))
		remove := func(id int64) {
			x.Remove(weightsOf(all[id]), id)
			delete(all, id)
		}
		put := func(id int64, w map[uint32]float32) {
			if _, ok := all[id]; ok {
				remove(id)
			}
			x.Add(weightsOf(w), id)
			all[id] = w
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) { put(ids.Draw(t, "id"), drawWeights(t, "weights", 8)) },
			"put many": func(t *rapid.T) {
				first := rapid.Int64Range(1, 100).Draw(t, "first")
				w := drawWeights(t, "weights", 3)
				for id := first; id < first+pageSize+50; id++ {
					put(id, w)
				}
			},
			"remove": func(t *rapid.T) {
				if len(all) > 0 {
					remove(rapid.SampledFrom(slices.Sorted(maps.Keys(all))).Draw(t, "id"))
				}
			},
			"remove many": func(t *rapid.T) {
				for _, id := range slices.Sorted(maps.Keys(all)) {
					if id%3 != 0 {
						remove(id)
					}
				}
			},
			"build": func(*rapid.T) {
				x = &Inverted{}
				x.Build(func(add func(doc.Weights, int64)) {
					for id, w := range all {
						add(weightsOf(w), id)
					}
				})
			},
			"": func(t *rapid.T) { checkInverted(t, x, all) },
		})
	})
}

func checkInverted(t *rapid.T, x *Inverted, all map[int64]map[uint32]float32) {
	filled := 0
	for _, w := range all {
		filled += min(len(w), 1)
	}
	if x.Len() != filled {
		t.Fatalf("the index has %d documents, want %d", x.Len(), filled)
	}
	for i, page := range x.postings.pages {
		if len(page) == 0 || x.postings.firsts[i] != page[0].pageKey() {
			t.Fatalf("page %d of %d postings is under a wrong key", i, len(page))
		}
	}
	q := drawWeights(t, "query", 8)
	k := rapid.IntRange(0, 12).Draw(t, "k")
	var accept func(int64) bool
	if rapid.Bool().Draw(t, "filtered") {
		accept = func(id int64) bool { return id%2 == 0 }
	}
	want := naiveHits(all, q, accept)
	for _, hit := range want {
		if score, shared := SparseDot(weightsOf(q), weightsOf(all[hit.ID])); !shared || score != hit.Score {
			t.Fatalf("the scan scores %v with %v as %v, %v, want %v", q, all[hit.ID], score, shared, hit.Score)
		}
	}
	want = want[:min(k, len(want))]
	got := x.Search(weightsOf(q), k, accept, []Hit{{ID: -1}})
	if got[0].ID != -1 || !slices.Equal(got[1:], want) {
		t.Fatalf("the best %d for %v are %v, want %v", k, q, got[1:], want)
	}
}

func TestSparseVectorsThatShareNoIndexAreNotFound(t *testing.T) {
	var x Inverted
	x.Add(weightsOf(map[uint32]float32{1: 1, 3: 1}), 7)
	q := weightsOf(map[uint32]float32{2: 1})
	if _, shared := SparseDot(q, weightsOf(map[uint32]float32{1: 1, 3: 1})); shared {
		t.Error("the scan takes vectors that share no index for a match")
	}
	if hits := x.Search(q, 5, nil, nil); len(hits) > 0 {
		t.Errorf("hits %v, want none", hits)
	}
	// Products that cancel out are still a match.
	q = weightsOf(map[uint32]float32{1: 1, 3: -1})
	if hits := x.Search(q, 5, nil, nil); !slices.Equal(hits, []Hit{{7, 0}}) {
		t.Errorf("hits %v, want one of score 0", hits)
	}
}

func TestInvertedIndexIsSearchedByManyAtOnce(t *testing.T) {
	x, query := spread(2000)
	want := x.Search(query, 10, nil, nil)
	done := make(chan []Hit)
	for range 4 {
		go func() {
			var got []Hit
			for range 20 {
				got = x.Search(query, 10, nil, got[:0])
			}
			done <- got
		}()
	}
	for range 4 {
		if got := <-done; !slices.Equal(got, want) {
			t.Errorf("beside others a search returns %v, want %v", got, want)
		}
	}
}

// spread returns an index of n documents of 60 weights each, in which lower indexes are more frequent, and a query.
func spread(n int) (*Inverted, doc.Weights) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(most int) doc.Weights {
		m := map[uint32]float32{}
		for range most {
			m[1+uint32(30_000*math.Pow(r.Float64(), 3))] = r.Float32() + 0.01
		}
		return weightsOf(m)
	}
	x := &Inverted{}
	x.Build(func(add func(doc.Weights, int64)) {
		for id := range n {
			add(draw(60), int64(id+1))
		}
	})
	return x, draw(20)
}

func TestAnInvertedIndexIsFewHeapObjects(t *testing.T) {
	var x *Inverted
	n := heapObjects(func() { x, _ = spread(5000) })
	if most := int64(5000*60/filled + 200); n > most {
		t.Errorf("the index is %d heap objects, want %d at most", n, most)
	}
	if got, most := x.Bytes(), int64(5000*60*16*5/4); got > most {
		t.Errorf("the index says it takes %d bytes, want %d at most", got, most)
	}
}

func BenchmarkInvertedSearch(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		x, query := spread(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var dst []Hit
			for b.Loop() {
				dst = x.Search(query, 10, nil, dst[:0])
			}
			b.ReportMetric(float64(x.Bytes())/float64(n), "bytes/document")
		})
	}
}
