package query

import (
	"math"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/index"
	"fenec/engine/query/syntax"
	"fenec/engine/vector"
)

// scoring defines how the values of a vector field are scored: by the metric of its index, by the cosine if it has no
// index, and sparse ones by their dot product.
type scoring struct {
	column *column
	index  doc.Index
	sparse bool
	metric vector.Metric
	vector int // the operand scored against
}

// scoring compiles F and the vector after it; word is the clause.
func (c *compiler) scoring(word string, name syntax.Name, e syntax.Expr) (scoring, error) {
	s := scoring{metric: vector.Cosine}
	var err error
	if s.column, s.index, err = c.field(name); err != nil {
		return s, err
	}
	switch s.column.typ.Kind {
	case doc.TypeVector:
		if s.index.Kind == doc.IndexHNSW {
			s.metric = s.index.HNSW.Metric
		}
	case doc.TypeSparse:
		s.sparse, s.metric = true, vector.DotProduct
	default:
		return s, errorAt(fail.Invalid, name.Pos, "%s: expected a vector or sparse field, and %s is %s", word, name.Text, s.column.typ)
	}
	s.vector, err = c.vector(word+" "+name.Text, e, s.column)
	return s, err
}

// begin prepares the run for score.
func (s *scoring) begin(f *frame, k int) {
	if !s.sparse {
		f.search.scorer.Reset(s.metric, f.operands[s.vector].value.Floats(nil))
	}
	f.search.top.Reset(k, s.metric.Ascending())
}

// score scores the frame's row; it returns false if the row has no vector, or shares no dimension with the query.
func (s *scoring) score(f *frame) (float32, bool) {
	v := f.doc.Field(s.column.slot).Value()
	switch {
	case !s.column.typ.Holds(&v): // null, or a value in a file made by hand
		return 0, false
	case s.sparse:
		return index.SparseDot(f.operands[s.vector].value.Weights(), v.Weights())
	case s.column.typ.F16:
		f.search.floats = v.Floats(f.search.floats)
		return f.search.scorer.Score(f.search.floats), true
	}
	return f.search.scorer.Score(v.Floats(nil)), true
}

// nearPlan is a compiled near.
type nearPlan struct {
	scoring
	ef     option
	exact  bool
	keep   func(f *frame) bool // keepScored, and
	keepID func(f *frame) bool // keepPassed, made once
}

// near compiles a near.
func (c *compiler) near(st *syntax.Near) (*nearPlan, error) {
	n := &nearPlan{exact: st.Exact}
	var err error
	if n.scoring, err = c.scoring("near", st.Field, st.Vector); err != nil {
		return nil, err
	}
	usual := doc.DefaultHNSW.EFSearch
	if n.index.Kind == doc.IndexHNSW {
		usual = n.index.HNSW.EFSearch
	}
	n.keep, n.keepID = n.keepScored, n.keepPassed
	n.ef, err = c.option("ef", st.EF, option{least: 1, most: doc.MaxEF, usual: usual})
	return n, err
}

// way is the method by which a near found its rows.
type way uint8

const (
	byGraph     way = iota + 1
	byMembers       // by the graph, among the documents from an index on a condition
	byInverted      // by an index on a sparse field, which is exact
	byAsking        // exactly, as the statement requires
	byMeasuring     // exactly, because there is no index
	byFew           // exactly, because the where leaves no more rows than a walk of the graph would measure
	byWide          // exactly, because a walk with enough rows of the where in sight would be more work
	byShort         // exactly, because the graph found fewer rows than were wanted
)

// nearRun is what an explain shows of a near.
type nearRun struct {
	way      way
	ef       int
	most     int // the most rows for byFew: documents that a walk may measure
	counted  int // documents tested to find out whether more pass
	tested   int // documents read
	measured int // documents measured, if there was no walk
	hits     int
	filter   filterRun
	access   *access // of an exact one
}

// find puts the k nearest rows that pass the terms into f.search.hits. If neither is above ef, a smaller k gives a prefix of
// the same order: pages are cut from it.
func (n *nearPlan) find(f *frame, t Table, k int) error {
	ef, err := n.ef.value(f)
	if err != nil {
		return err
	}
	switch {
	case n.exact:
		return n.measure(f, t, k, byAsking)
	case n.index.Kind == doc.IndexHNSW:
		return n.search(f, t, k, max(ef, k))
	case n.index.Kind == doc.IndexInverted:
		return n.lookUp(f, t, k)
	}
	return n.measure(f, t, k, byMeasuring)
}

// measure scores every row that passes the terms.
func (n *nearPlan) measure(f *frame, t Table, k int, why way) error {
	s, w := &f.search, &f.walk
	f.doing = atRows
	n.begin(f, k)
	s.near.way = why
	w.skip, w.left, w.tested, w.matched, w.ids = 0, math.MaxInt, 0, 0, w.ids[:0]
	w.picker.choose(f, t, math.MaxInt)
	w.sorts = false
	w.sink = n.keep
	f.travel()
	s.near.access, s.near.tested, s.near.measured = w.access, w.tested, w.matched
	s.hits = s.top.Append(s.hits[:0])
	s.near.hits = len(s.hits)
	return f.take()
}

// keepScored is the sink of a near that measures: it scores the frame's row.
func (n *nearPlan) keepScored(f *frame) bool {
	if score, ok := n.score(f); ok {
		f.search.top.Push(index.Hit{ID: f.doc.ID(), Score: score})
	}
	return true
}

// lookUp searches the index on a sparse field.
func (n *nearPlan) lookUp(f *frame, t Table, k int) error {
	s := &f.search
	accept := s.filter.begin(f, t, k, t.Len())
	if !f.ready(t, n.column.name) {
		return f.take()
	}
	s.hits = t.Inverted(n.column.name).Search(f.operands[n.vector].value.Weights(), k, accept, s.hits[:0])
	s.near.way, s.near.filter, s.near.hits = byInverted, s.filter, len(s.hits)
	return f.take()
}
