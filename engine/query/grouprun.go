package query

import (
	"math"
	"slices"

	"fenec/engine/collation"
	"fenec/engine/doc"
)

// groupRun is the state of the groups in a run.
type groupRun struct {
	cells  []doc.Value // of the current group
	found  int         // number of groups
	kept   int         // number of groups for which having holds
	making *grouping   // the groups found so far
	ends   bool        // the aggregates were read from the ends of indexes
}

// rows returns the cells of the page's groups, in order.
func (g *groupPlan) rows(f *frame, t Table, pick *picker) ([][]doc.Value, error) {
	limit, err := g.limit.value(f, math.MaxInt)
	if err != nil {
		return nil, err
	}
	offset, err := g.offset.value(f, 0)
	if err != nil {
		return nil, err
	}
	all, err := g.compute(f, t, pick)
	if err != nil {
		return nil, err
	}
	f.group.found = len(all)
	f.doing = atGroups
	if all, err = g.keep(f, all); err != nil {
		return nil, err
	}
	f.group.kept = len(all)
	if g.sort(f, all); f.err != nil {
		return nil, f.take()
	}
	all = all[min(offset, len(all)):]
	return all[:min(limit, len(all))], nil
}

// run appends the groups to the frame's answer.
func (g *groupPlan) run(f *frame, t Table, pick *picker) (Result, error) {
	rows, err := g.rows(f, t, pick)
	if err != nil {
		return Result{}, err
	}
	f.out = append(f.out, '[')
	for n, cells := range rows {
		if err := f.pause(n); err != nil {
			return Result{}, err
		}
		out := f.next()
		for _, col := range g.columns {
			out = doc.AppendValueJSON(append(out, col.key...), cells[col.cell])
		}
		if f.out = append(out, '}'); !f.outFits() {
			return Result{}, f.take()
		}
	}
	return f.answer(), nil
}

// compute computes the cells of every group.
func (g *groupPlan) compute(f *frame, t Table, pick *picker) ([][]doc.Value, error) {
	switch {
	case g.counts:
		n, err := pick.count(f, t)
		return g.row(func(*aggregate) doc.Value { return doc.IntValue(int64(n)) }), err
	case g.ends && len(pick.terms) == 0 && f.live(t) == t.Len() && g.endsReady(f, t):
		f.group.ends = true
		return g.row(func(a *aggregate) doc.Value {
			if a.column == nil {
				return doc.IntValue(int64(t.Len()))
			}
			return end(t, a)
		}), nil
	}
	s := newGrouping(g)
	f.group.making = s
	f.doing = atGroups
	if err := pick.each(f, t, s.add); err != nil {
		return nil, err
	}
	if !f.reserve(int64(s.groups) * (rowBytes + int64(1+len(s.tallies))*cellBytes)) {
		return nil, f.take()
	}
	return s.cells()
}

// row returns the one row over all documents.
func (g *groupPlan) row(value func(*aggregate) doc.Value) [][]doc.Value {
	cells := make([]doc.Value, 1+len(g.aggregates))
	for i := range g.aggregates {
		cells[1+i] = value(&g.aggregates[i])
	}
	return [][]doc.Value{cells}
}

// endsReady builds the indexes of the aggregates if needed. It returns false if the run has an error.
func (g *groupPlan) endsReady(f *frame, t Table) bool {
	for _, a := range g.aggregates {
		if a.column != nil && !f.ready(t, a.column.name) {
			return false
		}
	}
	return true
}

// end returns the least or greatest value of an indexed column. Of equal values it returns that of the lowest id, as
// a scan does.
func end(t Table, a *aggregate) (v doc.Value) {
	t.Sorted(a.column.name).Range(aboveNull, unbounded, a.name == "max", func(id int64) bool {
		v = a.column.value(t.Get(id))
		return false
	})
	return v
}

// keep returns the groups for which having holds.
func (g *groupPlan) keep(f *frame, all [][]doc.Value) ([][]doc.Value, error) {
	if g.having == nil {
		return all, nil
	}
	kept := all[:0]
	for i, cells := range all {
		if err := f.pause(i); err != nil {
			return nil, err
		}
		f.group.cells = cells
		f.arena = f.arena[:f.mark]
		held := g.having(f) == yes
		if err := f.take(); err != nil {
			return nil, err
		}
		if held {
			kept = append(kept, cells)
		}
	}
	return kept, nil
}

// sort orders groups by the columns of the order, then by key, which is unique.
func (g *groupPlan) sort(f *frame, all [][]doc.Value) {
	order := g.order
	if c := g.collation(0); c != collation.None {
		order = append(slices.Clip(order), groupOrder{collate: c})
	}
	if order = collateCells(f, all, order); f.err != nil {
		return
	}
	compared := 0
	slices.SortFunc(all, func(a, b []doc.Value) int {
		if compared += 1 + len(order); compared >= comparesPerCheck {
			compared = 0
			f.goesOn()
		}
		if f.err != nil {
			return 0 // from here on all are equal, so that the sort ends soon
		}
		for _, k := range order {
			c := doc.Compare(a[k.cell], b[k.cell])
			switch {
			case c == 0:
			case k.desc:
				return -c
			default:
				return c
			}
		}
		return doc.Compare(a[0], b[0])
	})
}

// collateCells appends to each group a cell for each key of an order with a collation, which holds the collation's
// key instead of the text. It returns the order by those cells.
func collateCells(f *frame, all [][]doc.Value, order []groupOrder) []groupOrder {
	order = slices.Clone(order)
	for i := range order {
		k := &order[i]
		if k.collate == collation.None || len(all) == 0 {
			continue
		}
		end := len(all[0])
		for row, cells := range all {
			v := cells[k.cell]
			if v.Kind == doc.Text {
				v.B = k.collate.AppendKey(nil, v.B)
			}
			all[row] = append(cells, v)
			f.extra += bytesOf(all[row]) - bytesOf(cells) + bytesOf(v.B)
			if row&(f.every-1) == f.every-1 && !f.goesOn() {
				return order
			}
		}
		k.cell = end
	}
	return order
}
