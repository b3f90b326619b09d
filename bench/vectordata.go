package main

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

const (
	vectorCount    = 100_000
	vectorDim      = 128
	vectorClusters = 1000
	vectorSigma    = 1.5 // of a vector around its cluster's centre; centres are at sigma 1 around 0
	vectorQueries  = 1000
	vectorK        = 10
)

// vectorSet is what is searched and what is searched for: fresh draws from the same clusters.
type vectorSet struct{ base, queries [][]float32 }

func newVectorSet(count int) *vectorSet {
	at := rand.New(rand.NewPCG(6, 7))
	around := func(centre []float32, sigma float64) []float32 {
		v := make([]float32, vectorDim)
		for i := range v {
			v[i] = float32(at.NormFloat64() * sigma)
			if centre != nil {
				v[i] += centre[i]
			}
		}
		return v
	}
	centres := make([][]float32, vectorClusters)
	for i := range centres {
		centres[i] = around(nil, 1)
	}
	draw := func(n int) [][]float32 {
		vs := make([][]float32, n)
		for i := range vs {
			vs[i] = around(centres[at.IntN(vectorClusters)], vectorSigma)
		}
		return vs
	}
	return &vectorSet{base: draw(count), queries: draw(vectorQueries)}
}

// truth is the ids, counted from 1, of the vectorK nearest of each query by cosine among those kept, by looking at
// every vector.
func (s *vectorSet) truth(keep func(id int64) bool) [][]int64 {
	base := unit(s.base)
	nearest := make([][]int64, len(s.queries))
	var halves sync.WaitGroup
	for half := range 2 {
		halves.Go(func() {
			for i := half; i < len(s.queries); i += 2 {
				nearest[i] = nearestOf(base, s.queries[i], keep)
			}
		})
	}
	halves.Wait()
	return nearest
}

func nearestOf(base [][]float32, q []float32, keep func(id int64) bool) []int64 {
	type scored struct {
		id    int64
		score float32
	}
	var best []scored // the best first
	for i, v := range base {
		id := int64(i + 1)
		if !keep(id) {
			continue
		}
		score := product(q, v)
		if len(best) == vectorK && score <= best[vectorK-1].score {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, score, func(s scored, score float32) int {
			if s.score >= score {
				return -1
			}
			return 1
		})
		best = slices.Insert(best, at, scored{id, score})
		best = best[:min(len(best), vectorK)]
	}
	ids := make([]int64, len(best))
	for i, s := range best {
		ids[i] = s.id
	}
	return ids
}

// product is the inner product of two vectors, in four sums that do not wait for each other.
func product(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for i := 0; i+3 < vectorDim; i += 4 {
		x, y := (*[4]float32)(a[i:]), (*[4]float32)(b[i:])
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	return s0 + s1 + s2 + s3
}

// unit is vectors brought to length one.
func unit(vs [][]float32) [][]float32 {
	units := make([][]float32, len(vs))
	for i, v := range vs {
		length := float32(math.Sqrt(float64(product(v, v))))
		units[i] = make([]float32, len(v))
		for j, x := range v {
			units[i][j] = x / length
		}
	}
	return units
}

// recall is the share of the true nearest that were found.
func recall(truth, found [][]int64) float64 {
	hits, all := 0, 0
	for i, want := range truth {
		all += len(want)
		for _, id := range found[i] {
			if slices.Contains(want, id) {
				hits++
			}
		}
	}
	return float64(hits) / float64(all)
}

// littleEndian is vectors as they are stored and sent.
func littleEndian(vs ...[]float32) []byte {
	var b []byte
	for _, v := range vs {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b
}
