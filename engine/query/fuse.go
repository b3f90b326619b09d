package query

import (
	"cmp"
	"math"
	"math/bits"
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

// fuseRun is the state of a fuse in a run.
type fuseRun struct {
	found int // rows, for an explain
	rows  []fusedRow
}

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

// fusedRow is a row that one or both sides of a fuse found.
type fusedRow struct {
	id  int64
	sum rational // of 1/(k+rank) over the sides
}

// rational is a fraction of two numbers. It orders rows by their sums exactly: with a large k these differ by less than the
// precision of a float, and of equal sums the lower id comes first. As k is below 2^31 and a rank at most [MaxCandidates],
// two terms have a denominator below 2^63.
type rational struct{ over, under uint64 }

// inverse is 1/n.
func inverse(n uint64) rational { return rational{1, n} }

// plus is r + s, each of them 1/n for some n.
func (r rational) plus(s rational) rational { return rational{r.under + s.under, r.under * s.under} }

// compare returns a negative number if r < s, 0 if they are equal and a positive one if r > s.
func (r rational) compare(s rational) int {
	rHigh, rLow := bits.Mul64(r.over, s.under)
	sHigh, sLow := bits.Mul64(s.over, r.under)
	return cmp.Or(cmp.Compare(rHigh, sHigh), cmp.Compare(rLow, sLow))
}

func (r rational) float() float32 { return float32(float64(r.over) / float64(r.under)) }

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
	rows := r.fuse.rows[:0]
	for _, side := range [...][]index.Hit{r.other, r.hits} {
		for i, h := range side {
			rows = append(rows, fusedRow{h.ID, inverse(uint64(k) + uint64(i) + 1)})
		}
	}
	rows = addUp(rows)
	slices.SortFunc(rows, func(a, b fusedRow) int { return cmp.Or(b.sum.compare(a.sum), cmp.Compare(a.id, b.id)) })
	r.hits = r.hits[:0]
	for _, row := range rows[:min(need, len(rows))] {
		r.hits = append(r.hits, index.Hit{ID: row.id, Score: row.sum.float()})
	}
	r.fuse = fuseRun{found: len(rows), rows: rows}
	return nil
}

// addUp merges two rows of the same id into one.
func addUp(rows []fusedRow) []fusedRow {
	slices.SortFunc(rows, func(a, b fusedRow) int { return cmp.Compare(a.id, b.id) })
	sums := rows[:0]
	for _, row := range rows {
		if last := len(sums) - 1; last >= 0 && sums[last].id == row.id {
			sums[last].sum = sums[last].sum.plus(row.sum)
			continue
		}
		sums = append(sums, row)
	}
	return sums
}
