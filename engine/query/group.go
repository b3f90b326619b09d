package query

import (
	"strings"

	"fenec/engine/collation"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// groupPlan groups the rows that a picker finds, or makes one row of all of them. A group is a list of
// cells: the value of the key, then that of each aggregate.
type groupPlan struct {
	key        *column // nil: all rows are one group
	aggregates []aggregate
	columns    []groupColumn
	named      string   // the field of key
	having     testFunc // nil if none
	order      []groupOrder
	limit      *bound
	offset     *bound
	ends       bool // without a condition, the ends of sorted indexes give every aggregate
	counts     bool // there is no key and every aggregate is count(*)
}

// aggregate is one function over a group.
type aggregate struct {
	name     string
	distinct bool          // of count: equal values count once
	text     string        // as it is written
	column   *column       // nil of count(*)
	index    doc.IndexKind // on column, 0 if none is
	pos      syntax.Pos
}

// groupColumn is one key of the answer's objects.
type groupColumn struct {
	name string
	key  []byte // the bytes before the value: `{"count":` or `,"sum(total)":`
	cell int
}

type groupOrder struct {
	cell    int
	collate collation.Collation
	desc    bool
}

// groups compiles the select, having, order and page of a grouped get.
func (c *compiler) groups(st *syntax.Get) (*groupPlan, error) {
	g := &groupPlan{}
	if st.Group != nil {
		var err error
		if g.key, err = resolve(c.schema, []string{st.Group.Text}, st.Group.Pos); err != nil {
			return nil, err
		}
		g.named = st.Group.Text
	}
	for i, item := range st.Select {
		col := groupColumn{name: item.As, key: openKey(i == 0, item.As)}
		if a, ok := item.Expr.(*syntax.Aggregate); ok {
			var err error
			if col.cell, err = c.aggregate(g, a); err != nil {
				return nil, err
			}
		}
		g.columns = append(g.columns, col)
	}
	if err := c.ofGroups(g, st); err != nil {
		return nil, err
	}
	g.counts = g.key == nil
	g.ends = g.key == nil
	for _, a := range g.aggregates {
		g.counts = g.counts && a.column == nil
		g.ends = g.ends && (a.column == nil || a.extreme() && a.index.Ordered())
	}
	return g, nil
}

// ofGroups compiles the clauses that apply to groups and not to documents.
func (c *compiler) ofGroups(g *groupPlan, st *syntax.Get) error {
	c.grouped = g
	defer func() { c.grouped = nil }()
	if st.Having != nil {
		n, err := c.expr(st.Having)
		if err != nil {
			return err
		}
		if g.having, err = c.condition(n, "having"); err != nil {
			return err
		}
	}
	for _, k := range st.Order {
		cell, err := 0, error(nil)
		switch e := k.Expr.(type) {
		case *syntax.Aggregate:
			cell, err = c.aggregate(g, e)
		case *syntax.Path:
			cell, err = c.groupCell(e)
		}
		if err != nil {
			return err
		}
		by, err := collationOf(k, g.called(cell), g.typ(cell), g.collation(cell))
		if err != nil {
			return err
		}
		g.order = append(g.order, groupOrder{cell: cell, collate: by, desc: k.Desc})
	}
	var err error
	if g.limit, err = c.bound("limit", st.Limit); err != nil {
		return err
	}
	g.offset, err = c.bound("offset", st.Offset)
	return err
}

// aggregate returns the cell of an aggregate, which is computed once even if it occurs several times.
func (c *compiler) aggregate(g *groupPlan, e *syntax.Aggregate) (int, error) {
	a := aggregate{name: e.Name, distinct: e.Distinct, text: e.String(), pos: e.Pos}
	if e.Arg != nil {
		var err error
		if a.column, err = resolve(c.schema, []string{e.Arg.Text}, e.Arg.Pos); err != nil {
			return 0, err
		}
		a.index = indexOn(c.schema, a.column.name)
		if k := a.column.typ.Kind; (a.name == "sum" || a.name == "avg") && k != doc.TypeInt && k != doc.TypeFloat {
			return 0, errorAt(fail.Invalid, e.Arg.Pos, "%s: expected a field of int or float, and %s is %s", a.name, e.Arg.Text, a.column.typ)
		}
		if a.extreme() && hasNoOrder(kindOf(a.column.typ)) {
			return 0, errorAt(fail.Invalid, e.Arg.Pos, "%s: expected values that have an order, and %s is %s", a.name, e.Arg.Text, a.column.typ)
		}
	}
	for i := range g.aggregates {
		if g.aggregates[i].text == a.text {
			return i + 1, nil
		}
	}
	g.aggregates = append(g.aggregates, a)
	return len(g.aggregates), nil
}

// extreme reports whether the aggregate is min or max.
func (a *aggregate) extreme() bool { return a.name == "min" || a.name == "max" }

// typ returns the type of the aggregate's values.
func (a *aggregate) typ() doc.Type {
	switch a.name {
	case "count":
		return doc.Type{Kind: doc.TypeInt}
	case "avg":
		return doc.Type{Kind: doc.TypeFloat}
	}
	return a.column.typ
}

// groupCell returns the cell that a name refers to in a clause on groups: a column of the answer, or the key.
func (c *compiler) groupCell(e *syntax.Path) (int, error) {
	g, name := c.grouped, strings.Join(e.Parts, ".")
	for _, col := range g.columns {
		if col.name == name {
			return col.cell, nil
		}
	}
	if g.key != nil && name == g.named {
		return 0, nil
	}
	if _, err := resolve(c.schema, e.Parts, e.Pos); err != nil {
		return 0, err
	}
	return 0, errorAt(fail.Invalid, e.Pos, "%s has no one value in a group; having and order take the key, aggregates and their names", name)
}

// groupNode reads a cell of the frame's group.
func (c *compiler) groupNode(cell int, pos syntax.Pos) node {
	n := node{
		eval: func(f *frame) doc.Value { return f.group.cells[cell] },
		kind: kindOf(c.grouped.typ(cell)), collate: c.grouped.collation(cell), pos: pos,
	}
	if n.kind == doc.Bool {
		n.test = condition(n)
	}
	return n
}

// typ returns the type of a cell's values.
func (g *groupPlan) typ(cell int) doc.Type {
	if cell > 0 {
		return g.aggregates[cell-1].typ()
	}
	return g.key.typ
}

// collation returns the collation that orders a cell's texts.
func (g *groupPlan) collation(cell int) collation.Collation {
	switch {
	case cell == 0 && g.key != nil:
		return g.key.collate
	case cell > 0 && g.aggregates[cell-1].extreme():
		return g.aggregates[cell-1].column.collate
	}
	return collation.None
}

// called returns the name of a cell in messages.
func (g *groupPlan) called(cell int) string {
	if cell > 0 {
		return g.aggregates[cell-1].text
	}
	return g.key.what
}
