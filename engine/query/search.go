package query

import (
	"cmp"
	"math"
	"slices"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/index"
	"fenec/engine/query/syntax"
	"fenec/engine/vector"
)

const (
	// MaxPage is the most rows of a near, match or fuse, limit and offset together.
	MaxPage = 10_000
	// MaxCandidates is the most rows that a rerank or a side of a fuse considers.
	MaxCandidates = 10_000
	// usualPage is the limit of a near if none is given: every row is near to something.
	usualPage = 10
)

// scoreKey is the key of a row's score, after all others.
const scoreKey = "_score"

// searchPlan is a get whose rows are ordered by their scores: near, match, or both with a fuse.
type searchPlan struct {
	pick   *picker // the where, the order of a match, and the page
	near   *nearPlan
	match  *matchPlan
	rerank *rerankPlan
	fuse   *fusePlan
	show   *projection
	word   string // its name in messages
}

// searchRun is the state of a search in a run.
type searchRun struct {
	begun  bool // most runs have no search
	filter filterRun
	near   nearRun
	match  matchRun
	rerank rerankRun
	fuse   fuseRun

	hits   []index.Hit
	other  []index.Hit // the match of a fuse
	top    index.TopK
	scorer vector.Scorer
	floats []float32 // of a vector kept in half precision
	byID   []index.Hit
	passed []int64 // see nearPlan.count
	sorts  bool
	found  int     // hits before the page is cut
	score  float32 // the row's
}

func (s *searchRun) reset() {
	if !s.begun {
		return
	}
	s.begun = false
	s.filter.reset()
	s.hits, s.other, s.byID, s.floats, s.passed = kept(s.hits), kept(s.other), kept(s.byID), kept(s.floats), kept(s.passed)
	s.near, s.match, s.rerank, s.fuse = nearRun{}, matchRun{}, rerankRun{}, fuseRun{rows: kept(s.fuse.rows)}
	s.sorts, s.found = false, 0
}

// search compiles the clauses that score rows; nil if there is none.
func (c *compiler) search(g *getPlan, st *syntax.Get) (*searchPlan, error) {
	if st.Near == nil && st.Match == nil {
		return nil, nil
	}
	s := &searchPlan{pick: g.pick, show: g.show, word: "match"}
	if g.show.has(scoreKey) {
		return nil, errorAt(fail.Invalid, st.Collection.Pos, "the rows have a key %s already, which is that of their scores: select them with it under another name", scoreKey)
	}
	var err error
	if st.Near != nil {
		s.word = "near"
		if s.near, err = c.near(st.Near); err != nil {
			return nil, err
		}
	}
	if st.Match != nil {
		if s.match, err = c.match(st.Match); err != nil {
			return nil, err
		}
	}
	if st.Rerank != nil {
		s.word = "rerank"
		if s.rerank, err = c.rerank(st.Rerank); err != nil {
			return nil, err
		}
	}
	if st.Fuse != nil {
		s.word = "fuse"
		if s.fuse, err = c.fuse(st.Fuse); err != nil {
			return nil, err
		}
	}
	limit, offset := written(st.Limit), written(st.Offset)
	return s, s.checkPage(limit, offset, limit == 0)
}

// written returns the int of a literal, 0 of anything else.
func written(e syntax.Expr) int {
	if l, ok := e.(*syntax.Literal); ok {
		return int(l.Value.Int())
	}
	return 0
}

// checkPage fails if a page extends past MaxPage.
func (s *searchPlan) checkPage(limit, offset int, unlimited bool) error {
	if limit <= MaxPage && offset <= MaxPage && limit+offset <= MaxPage {
		return nil
	}
	b, got := s.pick.limit, math.MaxInt
	if limit < math.MaxInt-offset {
		got = limit + offset
	}
	if b == nil || unlimited {
		b = s.pick.offset
	}
	return errorAt(fail.Invalid, b.pos, "%s answers the first %d rows at most, limit and offset together, got %d", s.word, MaxPage, got)
}

// page returns the run's limit and offset; limit is -1 if there is none.
func (s *searchPlan) page(f *frame) (limit, offset int, err error) {
	usual := usualPage
	if s.near == nil {
		usual = -1
	}
	if limit, err = s.pick.limit.value(f, usual); err != nil {
		return 0, 0, err
	}
	if offset, err = s.pick.offset.value(f, 0); err != nil {
		return 0, 0, err
	}
	return limit, offset, s.checkPage(max(limit, 0), offset, limit < 0)
}

// each calls emit for each of the page's rows in f.doc with its score in f.search.score, in order, until it returns
// false.
func (s *searchPlan) each(f *frame, t Table, emit func(f *frame) bool) error {
	limit, offset, err := s.page(f)
	if err != nil {
		return err
	}
	f.walk.picker, f.walk.table, f.doing = s.pick, t, atSearch
	f.search.begun = true
	need := limit + offset
	if limit < 0 {
		need = MaxPage + 1
	}
	switch {
	case limit == 0:
		return nil
	case s.fuse != nil:
		err = s.fused(f, t, need)
	case s.near != nil:
		err = s.near.find(f, t, need)
	case s.rerank != nil:
		err = s.reranked(f, t, need)
	default:
		err = s.matched(f, t, need)
	}
	if err != nil {
		return err
	}
	r := &f.search
	r.found = len(r.hits)
	if limit < 0 && r.found > MaxPage {
		return errorAt(fail.Invalid, s.match.pos, "match %s found more than %d rows, which is all it answers: give it a limit", s.match.column.name, MaxPage)
	}
	if r.sorts {
		return s.sorted(f, t, limit, offset, emit)
	}
	for _, h := range r.hits[min(offset, r.found):] {
		f.doc, r.score = t.Get(h.ID), h.Score
		f.arena = f.arena[:f.mark]
		if !emit(f) || f.err != nil {
			break
		}
	}
	return f.take()
}

// sorted is each for a match with an order.
func (s *searchPlan) sorted(f *frame, t Table, limit, offset int, emit func(f *frame) bool) error {
	r := &f.search
	need := math.MaxInt
	if limit >= 0 {
		need = limit + offset
	}
	f.sorter.begin(f, s.pick.keys, need)
	for n, h := range r.hits {
		if err := f.pause(n); err != nil {
			return err
		}
		if !f.sorter.add(t.Get(h.ID)) {
			return f.take()
		}
	}
	r.byID = append(r.byID[:0], r.hits...)
	slices.SortFunc(r.byID, func(a, b index.Hit) int { return cmp.Compare(a.ID, b.ID) })
	f.sorter.sorted(offset, func(d doc.Document) bool {
		at, _ := slices.BinarySearchFunc(r.byID, d.ID(), func(h index.Hit, id int64) int { return cmp.Compare(h.ID, id) })
		f.doc, r.score = d, r.byID[at].Score
		f.arena = f.arena[:f.mark]
		return emit(f) && f.err == nil
	})
	return f.take()
}

// emit appends the frame's row with its score to the answer.
func (s *searchPlan) emit(f *frame) bool {
	s.show.appendOpen(f)
	f.out = append(f.out, `,"`+scoreKey+`":`...)
	f.out = append(doc.AppendFloat32(f.out, f.search.score), '}')
	f.rows++
	return f.outFits()
}

// option is the number after ef, k or candidates.
type option struct {
	bound       *bound
	least, most int
	usual       int // if none is given
}

func (c *compiler) option(name string, e syntax.Expr, o option) (option, error) {
	var err error
	if o.bound, err = c.bound(name, e); err != nil {
		return o, err
	}
	if l, ok := e.(*syntax.Literal); ok {
		err = o.check(int(l.Value.Int()))
	}
	return o, err
}

func (o *option) check(n int) error {
	if n < o.least || n > o.most {
		return errorAt(fail.Invalid, o.bound.pos, "%s goes from %d to %d, got %d", o.bound.name, o.least, o.most, n)
	}
	return nil
}

func (o *option) value(f *frame) (int, error) {
	n, err := o.bound.value(f, o.usual)
	if err == nil && o.bound != nil {
		err = o.check(n)
	}
	return n, err
}

// vector compiles the vector that the values of a field are scored against; what names it. It returns the number of its
// operand.
func (c *compiler) vector(what string, e syntax.Expr, col *column) (int, error) {
	n, err := c.expr(e)
	if err != nil {
		return 0, err
	}
	typ := doc.Type{Kind: col.typ.Kind, Dim: col.typ.Dim} // in full precision, whatever that of the field
	read := func(v doc.Value) (doc.Value, error) {
		if v.Kind == doc.Null {
			return v, errorAt(fail.Invalid, n.pos, "%s: expected %s, got null", what, typ)
		}
		v, err := typ.Convert(v, what)
		return v, placed(n.pos, err)
	}
	given := n.given()
	if n.fixed {
		v, err := read(given(newFrame(c.plan)))
		if err != nil {
			return 0, err
		}
		return c.bind(func(_ *frame, o *operand) error {
			o.value = v
			return nil
		}), nil
	}
	return c.bind(func(f *frame, o *operand) error {
		v := given(f)
		err := f.take()
		if err == nil {
			o.value, err = read(v)
		}
		return err
	}), nil
}

// field finds the field of a search.
func (c *compiler) field(name syntax.Name) (*column, doc.Index, error) {
	col, err := resolve(c.schema, []string{name.Text}, name.Pos)
	if err != nil || col.id {
		return col, doc.Index{}, err
	}
	return col, c.schema.Field(name.Text).Index, nil
}
