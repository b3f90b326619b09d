package query

import (
	"cmp"
	"math"
	"slices"

	"fenec/engine/index"
	"fenec/engine/query/syntax"
)

const (
	usualK     = 60
	usualFused = 20
)

// fusePlan is a compiled fuse: reciprocal rank fusion of a match and a near (Cormack, Clarke and Büttcher 2009).
type fusePlan struct{ k, candidates option }

// fuseRun is what an explain says of a fuse.
type fuseRun struct{ found int }

// fuse compiles a fuse.
func (c *compiler) fuse(st *syntax.Fuse) (*fusePlan, error) {
	p := &fusePlan{}
	var err error
	if p.k, err = c.option("k", st.K, option{most: math.MaxInt32, usual: usualK}); err != nil {
		return nil, err
	}
	p.candidates, err = c.option("candidates", st.Candidates, option{least: 1, most: MaxCandidates, usual: usualFused})
	return p, err
}

// fused finds the candidates of both sides and keeps the need of them that score best: the sum of 1/(k+rank) over the sides
// that found the row.
func (s *searchPlan) fused(f *frame, t Table, need int) error {
	k, err := s.fuse.k.value(f)
	if err != nil {
		return err
	}
	n, err := s.fuse.candidates.value(f)
	if err != nil {
		return err
	}
	if err := s.match.find(f, t, n); err != nil {
		return err
	}
	r := &f.search
	r.other, r.hits = r.hits, r.other
	if err := s.near.find(f, t, n); err != nil {
		return err
	}
	r.byID = r.byID[:0]
	for _, side := range [...][]index.Hit{r.other, r.hits} {
		for rank := range side {
			// The rank stands in for the score until the row's two are added up.
			r.byID = append(r.byID, index.Hit{ID: side[rank].ID, Score: float32(rank + 1)})
		}
	}
	slices.SortFunc(r.byID, func(a, b index.Hit) int { return cmp.Compare(a.ID, b.ID) })
	r.top.Reset(min(need, len(r.byID)), false)
	for i := 0; i < len(r.byID); i++ {
		h := r.byID[i]
		sum := 1 / (float64(k) + float64(h.Score))
		if i+1 < len(r.byID) && r.byID[i+1].ID == h.ID {
			i++
			sum += 1 / (float64(k) + float64(r.byID[i].Score))
		}
		r.top.Push(index.Hit{ID: h.ID, Score: float32(sum)})
		r.fuse.found++
	}
	r.hits = r.top.Append(r.hits[:0])
	return nil
}
