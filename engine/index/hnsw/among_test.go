package hnsw

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"fenec/engine/index"
	"fenec/engine/vector"
)

// recallAmong is the share of the true k nearest members that are found, over all queries. It holds each answer to what is
// true of any.
func recallAmong(t *testing.T, g *Graph, d docs, queries [][]float32, k, ef int, member, accept func(id int64) bool) float64 {
	t.Helper()
	both := func(id int64) bool { return member(id) && (accept == nil || accept(id)) }
	ids := d.members(member)
	var found, wanted int
	for _, q := range queries {
		want := d.nearest(g.Metric, q, k, both)
		got, _, ok := g.SearchAmong(q, k, ef, ids, accept, nil)
		if !ok {
			t.Fatalf("the search gives up")
		}
		checkPage(t, d, g.Metric, q, got, len(want))
		for _, h := range got {
			if !both(h.ID) {
				t.Fatalf("document %d is no member or not accepted", h.ID)
			}
			if slices.Contains(want, h) {
				found++
			}
		}
		wanted += len(want)
		checkPrefixes(t, ef/8, func(k, ef int) []index.Hit {
			hits, _, _ := g.SearchAmong(q, k, ef, ids, accept, nil)
			return hits
		})
	}
	return float64(found) / float64(wanted)
}

// TestRecallAmong changes documents so that some are pending, some nodes are tombstones and some vectors have several
// documents.
func TestRecallAmong(t *testing.T) {
	for _, metric := range someMetrics() {
		for quant, least := range map[vector.Quant]float64{0: 0.97, vector.Int8: 0.97, vector.Bit: 0.95} {
			t.Run(fmt.Sprintf("%s%s", metric, quant), func(t *testing.T) {
				d, queries := clustered(8, 3000, 70, 60, 10)
				g := d.built(Options{Dim: 70, Metric: metric, M: 4, EFConstruction: 10, Quant: quant}, 2)
				for id := int64(1); id < 3000; id += 5 {
					g.Remove(id)
					delete(d, id)
				}
				fresh, _ := clustered(9, 300, 70, 10, 0)
				for id, v := range fresh {
					d[10_000+3*id] = v
					g.Add(10_000+3*id, v)
					d[20_000+id] = d[2+5*(id%7)]
					g.Add(20_000+id, d[20_000+id])
				}
				if g.Pending() == 0 || g.Tombstones() == 0 {
					t.Fatalf("%d nodes are pending, %d tombstones", g.Pending(), g.Tombstones())
				}
				for of, member := range map[string]func(id int64) bool{
					"all":  func(int64) bool { return true },
					"half": func(id int64) bool { return id%2 == 0 },
					"few":  func(id int64) bool { return id%50 == 3 },
					"none": func(int64) bool { return false },
				} {
					accept := func(id int64) bool { return id%3 > 0 }
					all, some := recallAmong(t, g, d, queries, 10, 300, member, nil), recallAmong(t, g, d, queries, 10, 300, member, accept)
					if all < least || some < least {
						t.Errorf("among %s: recall %.3f, with a condition %.3f, want at least %.2f", of, all, some, least)
					}
				}
				// More are asked for than are accepted: none is missing.
				rare := func(id int64) bool { return id%400 == 2 }
				if got := recallAmong(t, g, d, queries, 20, 300, func(int64) bool { return true }, rare); got != 1 {
					t.Errorf("recall of rare documents %.3f, want all of them", got)
				}
			})
		}
	}
}

func TestFewAmongManyAreMeasured(t *testing.T) {
	d, queries := clustered(8, 5000, 128, 100, 20)
	g := d.built(Options{Dim: 128, Metric: vector.Cosine, M: 2, EFConstruction: 4}, 2)
	for _, q := range queries {
		if _, measured, _ := g.SearchAmong(q, 10, 300, d.ids(), nil, nil); measured < firstMeasured || measured > 2500 {
			t.Errorf("%d of 5000 are measured", measured)
		}
	}
}

// TestFewMembersAreMeasuredExactly: ef x 2M of them are, whatever their signs; and of more a rare document is found.
func TestFewMembersAreMeasuredExactly(t *testing.T) {
	d, queries := clustered(8, 3000, 64, 30, 20)
	for _, metric := range metrics {
		g := d.built(Options{Dim: 64, Metric: metric, M: 5, EFConstruction: 5}, 2)
		member := func(id int64) bool { return id <= 2500 }
		ids := d.members(member)
		for _, q := range queries {
			got, measured, ok := g.SearchAmong(q, 250, 250, ids, nil, nil)
			if want := d.nearest(metric, q, 250, member); !ok || measured != 2500 || !slices.Equal(got, want) {
				t.Fatalf("%s: %d of 2500 members are measured, %v are found, want %v", metric, measured, got, want)
			}
			rare := func(id int64) bool { return id%500 == 7 }
			got, _, ok = g.SearchAmong(q, 3, 240, ids, rare, nil)
			want := d.nearest(metric, q, 3, func(id int64) bool { return member(id) && rare(id) })
			if !ok || !slices.Equal(got, want) {
				t.Fatalf("%s: of five that are accepted %v are found, want %v", metric, got, want)
			}
		}
	}
}

// TestSignsWithoutInformation: all components are above zero, so all vectors have the signs of each other.
func TestSignsWithoutInformation(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	positive := func() []float32 {
		v := make([]float32, 64)
		for i := range v {
			v[i] = r.Float32() + 0.1
		}
		return v
	}
	d := make(docs)
	for id := range int64(2000) {
		d[id+1] = positive()
	}
	for _, metric := range metrics {
		g := d.built(Options{Dim: 64, Metric: metric, M: 2, EFConstruction: 4}, 2)
		q := positive()
		dst := []index.Hit{{ID: 7}}
		if got, measured, ok := g.SearchAmong(q, 10, 20, d.ids(), nil, dst); ok || len(got) != 1 || measured < 20*measuredPerEF {
			t.Errorf("%s: answers %v of %d measured, want it to give up", metric, got, measured)
		}
		got, measured, ok := g.SearchAmong(q, 10, 100, d.ids(), nil, nil)
		if want := d.nearest(metric, q, 10, nil); !ok || measured != 2000 || !slices.Equal(got, want) {
			t.Errorf("%s: %d measured are %v, want all 2000 and %v", metric, measured, got, want)
		}
	}
}

func TestSurveys(t *testing.T) {
	for dim, perEF := range map[int]int{8: measuredPerEF, 64: estimatedPerEF} {
		d, _ := clustered(1, 1000, dim, 10, 0)
		g := New(Options{Dim: dim, Metric: vector.L2}, nil)
		d.eachVector(g.Add)
		// Of a quarter, a walk has 4 ef in sight.
		if ef := 250 / 4 / perEF; !g.Surveys(250, ef+1) || g.Surveys(250, ef) {
			t.Errorf("%d components: to look at 250 of 1000 should take as long as a walk with %d of them in sight", dim, ef)
		}
	}
}
