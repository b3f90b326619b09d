package query

import (
	"math"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/index"
	"fenec/engine/index/text"
	"fenec/engine/query/syntax"
)

// matchPlan is a compiled match.
type matchPlan struct {
	column *column
	index  doc.Index
	pos    syntax.Pos // of the field's name
	words  int        // the operand with the text to search for
}

// matchRun is what an explain shows of a match.
type matchRun struct {
	ran    bool
	found  int
	filter filterRun
}

// match compiles a match.
func (c *compiler) match(st *syntax.Match) (*matchPlan, error) {
	m := &matchPlan{pos: st.Field.Pos}
	var err error
	if m.column, m.index, err = c.field(st.Field); err != nil {
		return nil, err
	}
	name := st.Field.Text
	switch {
	case m.column.typ.Kind != doc.TypeText:
		return nil, errorAt(fail.Invalid, m.pos, "match: expected a text field, and %s is %s", name, m.column.typ)
	case m.index.Kind != doc.IndexText:
		return nil, errorAt(fail.Invalid, m.pos, "match: expected an index @text on %s: create index on %s (%s) @text", name, c.schema.Name, name)
	}
	n, err := c.expr(st.Text)
	if err != nil {
		return nil, err
	}
	given, pos := n.given(), n.pos
	m.words = c.bind(func(f *frame, o *operand) error {
		v := given(f)
		err := f.take()
		switch {
		case err != nil:
		case v.Kind == doc.Null:
			err = errorAt(fail.Invalid, pos, "match %s: expected text, got null", name)
		default:
			o.value, err = doc.Type{Kind: doc.TypeText}.Convert(v, "match "+name)
			err = placed(pos, err)
		}
		return err
	})
	return m, nil
}

// wordBytes is about how many bytes a search takes for each byte of the text it searches for.
const wordBytes = 16

// find puts the best k rows that pass the terms into f.search.hits. Expired rows do not count in scores.
func (m *matchPlan) find(f *frame, t Table, k int) error {
	s, ttl := &f.search, t.Schema().TTL()
	if !f.ready(t, m.column.name) || ttl != nil && !f.ready(t, ttl.Name) {
		return f.take()
	}
	x := t.Text(m.column.name)
	words := f.operands[m.words].value.B
	if len(words) > Uncounted/wordBytes && !f.reserve(wordBytes*int64(len(words))) {
		return f.take()
	}
	accept := s.filter.begin(f, t, k, x.Len())
	if ttl == nil {
		s.hits = x.Search(words, k, accept, s.hits[:0])
	} else {
		s.hits, _ = x.SearchWithout(m.ended(f, t, ttl), words, k, accept, s.hits[:0])
	}
	s.match = matchRun{ran: true, found: len(s.hits), filter: s.filter}
	return f.take()
}

// ended returns the documents whose ttl has expired, by their expiry. If it is stopped meanwhile the run has an error.
func (m *matchPlan) ended(f *frame, t Table, ttl *doc.Field) text.Ended {
	between := func(after, until int64, fn func(text []byte)) bool {
		lo := aboveNull
		if after != math.MinInt64 {
			lo = index.Bound{Value: doc.TimestampValue(after)}
		}
		n := 0
		t.Sorted(ttl.Name).Range(lo, index.Bound{Value: doc.TimestampValue(until), Inclusive: true}, false, func(id int64) bool {
			if words, ok := t.Get(id).Field(m.column.slot).Text(); ok {
				fn(words)
			}
			n++
			return n&(rowsPerCheck-1) != 0 || f.goesOn()
		})
		return f.err == nil
	}
	return text.Ended{Until: ttl.Deadline(f.now), Between: between}
}

// matched finds the rows of a match: the best of them, or all if the get has an order.
func (s *searchPlan) matched(f *frame, t Table, need int) error {
	f.search.sorts = len(s.pick.keys) > 0
	if f.search.sorts && s.pick.limit != nil {
		need = t.Len()
	}
	return s.match.find(f, t, need)
}
