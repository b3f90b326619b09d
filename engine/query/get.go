package query

import (
	"strconv"

	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// getPlan is a compiled get.
type getPlan struct {
	collection string
	pick       *picker
	show       *projection // nil of a count and of groups
	groups     *groupPlan  // nil if the get is not grouped
	search     *searchPlan // nil if the rows have no scores
	levels     []*level    // of lookups, outermost first
	require    *bound
	emit       func(f *frame) bool
}

// get compiles a get.
func (c *compiler) get(st *syntax.Get) error {
	g, err := c.getPlan(st)
	if err != nil {
		return err
	}
	c.plan.run = g.run
	if g.require != nil {
		c.plan.run = g.runRequired
	}
	return nil
}

func (c *compiler) getPlan(st *syntax.Get) (*getPlan, error) {
	var err error
	if c.schema, err = c.collection(st.Collection); err != nil {
		return nil, err
	}
	g := &getPlan{collection: st.Collection.Text}
	if g.require, err = c.bound("require", st.Require); err != nil {
		return nil, err
	}
	if err := c.lookups(g, st); err != nil {
		return nil, err
	}
	further := g.further()
	if st.Count {
		g.pick, err = c.picker(st.Where, nil, nil, nil, further...)
		return g, err
	}
	if st.Grouped() {
		if g.groups, err = c.groups(st); err != nil {
			return nil, err
		}
		g.pick, err = c.picker(st.Where, nil, nil, nil)
		return g, err
	}
	show, err := c.projection(st.Select)
	if err != nil {
		return nil, err
	}
	g.show = show
	g.emit = func(f *frame) bool {
		show.appendRow(f)
		f.rows++
		return f.outFits()
	}
	if len(g.levels) > 0 {
		if err := g.levels[0].checkName(show, st.Lookups[0].Collection); err != nil {
			return nil, err
		}
		g.emit = g.emitWithChildren
	}
	if g.pick, err = c.picker(st.Where, st.Order, st.Limit, st.Offset, further...); err != nil {
		return nil, err
	}
	if g.search, err = c.search(g, st); g.search != nil {
		g.emit = g.search.emit
	}
	return g, err
}

// each calls emit for each row in f.doc, in order, until it returns false. It is not for groups.
func (g *getPlan) each(f *frame, t Table, emit func(f *frame) bool) error {
	if g.search != nil {
		return g.search.each(f, t, emit)
	}
	return g.pick.each(f, t, emit)
}

// table returns a collection that a plan was made for.
func table(s Reader, name string) (Table, error) {
	t := s.Table(name)
	if t == nil {
		return nil, fail.New(fail.NotFound, "there is no collection %s", name)
	}
	return t, nil
}

func (g *getPlan) run(f *frame, s Reader) (Result, error) {
	t, err := table(s, g.collection)
	if err != nil {
		return Result{}, err
	}
	if err := g.openLevels(f, s); err != nil {
		return Result{}, err
	}
	if g.groups != nil {
		return g.groups.run(f, t, g.pick)
	}
	if g.show == nil {
		n, err := g.pick.count(f, t)
		if err != nil {
			return Result{}, err
		}
		f.total = n
		out := append(f.out, `[{"count":`...)
		out = strconv.AppendInt(out, int64(n), 10)
		return Result{Kind: Rows, Body: append(out, "}]"...), Rows: 1}, nil
	}
	f.out = append(f.out, '[')
	if err := g.each(f, t, g.emit); err != nil {
		return Result{}, err
	}
	return f.answer(), nil
}

// runRequired runs a get with a require: it must have, or count, so many rows.
func (g *getPlan) runRequired(f *frame, s Reader) (Result, error) {
	want, err := g.require.value(f, -1)
	if err != nil {
		return Result{}, err
	}
	r, err := g.run(f, s)
	if err != nil {
		return Result{}, err
	}
	found := r.Rows
	if g.groups == nil && g.show == nil {
		found = f.total
	}
	return r, g.require.met(want, found)
}

// answer ends the array of the frame's rows.
func (f *frame) answer() Result {
	return Result{Kind: Rows, Body: append(f.out, ']'), Rows: f.rows}
}

// count formats a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
