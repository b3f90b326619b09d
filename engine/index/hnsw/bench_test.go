package hnsw

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"fenec/engine/index"
	"fenec/engine/vector"
)

const benchDim = 128

// benchVectors is 100,000 vectors in 1000 clusters of sigma 1.5, whose centres are at sigma 1, and 1000 queries drawn alike.
var benchVectors = sync.OnceValues(func() (base, queries [][]float32) {
	r := rand.New(rand.NewPCG(6, 7))
	normal := func(around []float32, sigma float64) []float32 {
		v := make([]float32, benchDim)
		copy(v, around)
		for i := range v {
			v[i] += float32(r.NormFloat64() * sigma)
		}
		return v
	}
	centres := make([][]float32, 1000)
	for i := range centres {
		centres[i] = normal(nil, 1)
	}
	draw := func(n int) [][]float32 {
		vs := make([][]float32, n)
		for i := range vs {
			vs[i] = normal(centres[r.IntN(len(centres))], 1.5)
		}
		return vs
	}
	return draw(100_000), draw(1000)
})

func benchGraph(q vector.Quant, workers, n int) *Graph {
	base, _ := benchVectors()
	g := New(Options{Dim: benchDim, Metric: vector.Cosine, Quant: q}, func(id int64, _ []float32) []float32 { return base[id-1] })
	g.Build(n, workers, func(add func(id int64, v []float32)) {
		for i, v := range base[:n] {
			add(int64(i+1), v)
		}
	})
	return g
}

var benchGraphs = map[vector.Quant]func() *Graph{
	0:           sync.OnceValue(func() *Graph { return benchGraph(0, 2, 100_000) }),
	vector.Int8: sync.OnceValue(func() *Graph { return benchGraph(vector.Int8, 2, 100_000) }),
	vector.Bit:  sync.OnceValue(func() *Graph { return benchGraph(vector.Bit, 2, 100_000) }),
}

func BenchmarkSearch(b *testing.B) {
	for _, q := range quants {
		for _, ef := range []int{50, 100, 200} {
			b.Run(fmt.Sprintf("quant=%s/ef=%d", q, ef), func(b *testing.B) {
				_, queries := benchVectors()
				g := benchGraphs[q]()
				dst := make([]index.Hit, 0, 10)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					dst = g.Search(queries[i%len(queries)], 10, ef, nil, dst[:0])
				}
			})
		}
	}
}

// BenchmarkSearchAmong compares a search of all with one among shares of the documents, in percent.
func BenchmarkSearchAmong(b *testing.B) {
	_, queries := benchVectors()
	dst := make([]index.Hit, 0, 10)
	for _, q := range quants {
		for _, share := range []int64{1, 5, 10, 23, 35, 50} {
			b.Run(fmt.Sprintf("quant=%s/share=%d", q, share), func(b *testing.B) {
				g := benchGraphs[q]()
				var ids []int64
				for id := int64(1); id <= 100_000; id++ {
					if id*37%100 < share {
						ids = append(ids, id)
					}
				}
				b.ReportAllocs()
				total := 0
				for i := 0; b.Loop(); i++ {
					var n int
					dst, n, _ = g.SearchAmong(queries[i%len(queries)], 10, int(100*100/share), ids, nil, dst[:0])
					total += n
				}
				b.ReportMetric(float64(total)/float64(b.N), "measured/op")
			})
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			benchVectors()
			for b.Loop() {
				benchGraph(0, workers, 10_000)
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	base, _ := benchVectors()
	g := benchGraphs[0]()
	saved := g.AppendBinary(nil)
	b.ReportMetric(float64(len(saved))/float64(g.Nodes()), "bytes/node")
	for b.Loop() {
		_, err := Load(saved, g.Options, g.own, len(base), func(add func(id int64, v []float32)) {
			for i, v := range base {
				add(int64(i+1), v)
			}
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
