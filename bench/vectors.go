package main

import (
	"errors"
	"fmt"

	"fenec/engine/index"
	"fenec/engine/index/hnsw"
	"fenec/engine/vector"
)

// vectorFigures compares the graph with hnswlib's, both in memory and without a database around them.
func vectorFigures(r *report) error {
	set := newVectorSet(vectorCount)
	g := &graph{set: set}
	lib, err := startHNSWLib(set)
	switch {
	case errors.Is(err, errNoHNSWLib):
		r.skip("build and near beside hnswlib", err.Error())
	case err != nil:
		return err
	default:
		defer lib.close()
	}
	if err := buildFigures(r, g, lib); err != nil {
		return err
	}
	truth := set.truth(everyID)
	if lib != nil {
		for _, ef := range []int{50, 100, 200} {
			if err := g.nearFigure(r, lib, ef, truth); err != nil {
				return err
			}
		}
	}
	if err := memoryFigures(r, g); err != nil {
		return err
	}
	return nearFigures(r, set, truth, lib)
}

func everyID(int64) bool { return true }

// buildRounds is fewer than other figures have: a round takes minutes.
const buildRounds = 2

// buildFigures leaves both built.
func buildFigures(r *report, g *graph, lib *hnswlib) error {
	one := side{"one thread", func() (float64, error) { return g.build(1, 0) }}
	two := side{"two threads", func() (float64, error) { return g.build(2, 0) }}
	sides := []side{one, two}
	if lib != nil {
		sides = append(sides, side{"hnswlib", lib.build})
	}
	got, err := turns(buildRounds, sides...)
	if err != nil {
		return err
	}
	if lib != nil {
		r.row(figure{
			name: "build of 100 000 x 128 on one thread (two rounds)", unit: "ms", atMost: 1.5, ours: one, peer: sides[2],
		}, got[0], got[2])
	}
	r.row(figure{name: "build of 100 000 x 128 on two threads (two rounds)", unit: "ms", atLeast: 1, ours: two, peer: one}, got[1], got[0])
	return nil
}

// graph is an index of a set's vectors, whose ids are their places counted from 1.
type graph struct {
	set  *vectorSet
	g    *hnsw.Graph
	hits []index.Hit
}

// build answers the milliseconds of a build from nothing.
func (g *graph) build(workers int, quant vector.Quant) (float64, error) {
	own := func(id int64, _ []float32) []float32 { return g.set.base[id-1] }
	return millis(func() error {
		g.g = hnsw.New(hnsw.Options{Dim: vectorDim, Metric: vector.Cosine, M: graphM, EFConstruction: graphEFConstruction, Quant: quant}, own)
		g.g.Build(len(g.set.base), workers, func(add func(id int64, v []float32)) {
			for i, v := range g.set.base {
				add(int64(i+1), v)
			}
		})
		return nil
	})
}

// search answers the median microseconds, and what was found for each query.
func (g *graph) search(ef int) (micros float64, found [][]int64, err error) {
	found = make([][]int64, len(g.set.queries))
	micros, err = p50(len(g.set.queries), func(i int) error {
		g.hits = g.g.Search(g.set.queries[i], vectorK, ef, nil, g.hits[:0])
		for _, h := range g.hits {
			found[i] = append(found[i], h.ID)
		}
		return nil
	})
	return micros, found, err
}

// nearFigure compares a search at one of hnswlib's ef with ours at the least ef whose recall is no lower.
func (g *graph) nearFigure(r *report, lib *hnswlib, ef int, truth [][]int64) error {
	_, found, err := lib.search(ef)
	if err != nil {
		return err
	}
	wanted := recall(truth, found)
	at := func(ef int) float64 {
		_, found, failed := g.search(ef)
		if failed != nil {
			err = failed
			return 0
		}
		return recall(truth, found)
	}
	same := at(ef)
	low, high := vectorK, 4*ef // the recall at low is too low or nobody knows, at high it is enough
	for high-low > 1 {
		if middle := (low + high) / 2; at(middle) < wanted {
			low = middle
		} else {
			high = middle
		}
	}
	reached := at(high)
	if err != nil {
		return err
	}
	return r.figure(figure{
		name: fmt.Sprintf("near of 100 000, top 10, p50 at a recall of %.4f (ef %d; our ef %d has %.4f, our ef %d %.4f)", wanted, ef, high, reached, ef, same),
		unit: "us", atMost: 1.3,
		ours: side{"fenec", func() (float64, error) {
			micros, _, err := g.search(high)
			return micros, err
		}},
		peer: side{"hnswlib", func() (float64, error) {
			micros, _, err := lib.search(ef)
			return micros, err
		}},
	})
}

// codeCount is how many vectors the arenas of codes are compared on: their size a vector is the same for any number.
const codeCount = 20_000

// memoryFigures are sizes, without a clock.
func memoryFigures(r *report, g *graph) error {
	raw := float64(vectorCount * vectorDim * 4)
	upper := 1 / float64(graphM-1) // levels a vector has above the lowest, on average
	links := vectorCount * 4 * (2*graphM + graphM*upper)
	share := float64(g.g.Bytes()) / (raw + links)
	r.fact("index memory beside its vectors and links at 4 bytes each", fmt.Sprintf("%.2f", share), "at most 1.15", share <= 1.15)

	set := &vectorSet{base: g.set.base[:codeCount], queries: g.set.queries}
	truth := set.truth(everyID)
	plain := &graph{set: set}
	if _, err := plain.build(2, 0); err != nil {
		return err
	}
	raw = codeCount * vectorDim * 4
	signs := raw / 32                                // a bit a component, which a graph without codes keeps beside its vectors
	around := float64(plain.g.Bytes()) - raw - signs // links, ids and the rest, which codes do not change
	_, found, err := plain.search(100)
	if err != nil {
		return err
	}
	r.note(fmt.Sprintf("recall of %d at ef 100", codeCount), fmt.Sprintf("%.4f", recall(truth, found)))
	for _, code := range []struct {
		quant  vector.Quant
		name   string
		atMost float64
	}{{vector.Int8, "int8", 0.27}, {vector.Bit, "bit", 0.05}} {
		coded := &graph{set: set}
		if _, err := coded.build(2, code.quant); err != nil {
			return err
		}
		share := (float64(coded.g.Bytes()) - around) / raw
		r.fact("the "+code.name+" arena beside the f32 one", fmt.Sprintf("%.3f", share), fmt.Sprintf("at most %.2f", code.atMost), share <= code.atMost)
		_, found, err := coded.search(100)
		if err != nil {
			return err
		}
		r.note("recall of the same with "+code.name, fmt.Sprintf("%.4f", recall(truth, found)))
	}
	return nil
}
