package query

import (
	"strconv"
	"time"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// MaxInner is the most values that the inner get of an in may return.
const MaxInner = 100_000

// innerPlan is the inner get of an in. It does not read rows of the outer statement, so it runs once, before the
// first row, in its own frame.
type innerPlan struct {
	plan *Plan
	get  *getPlan
	pos  syntax.Pos
}

// innerRun is what an explain shows of an inner get.
type innerRun struct {
	collection, index string
	tested, values    int
}

// inInner compiles `x in (get ...)`.
func (c *compiler) inInner(x node, e *syntax.InnerGet, pos syntax.Pos) (node, *probe, error) {
	in := &innerPlan{plan: &Plan{}, pos: e.Pos}
	sub := &compiler{reader: c.reader, plan: in.plan}
	var err error
	if in.get, err = sub.getPlan(e.Get); err != nil {
		return node{}, nil, err
	}
	c.plan.params = max(c.plan.params, in.plan.params)
	if kind := in.kind(); x.kind != doc.Untyped && kind != doc.Untyped && !alike(x.kind, kind) {
		item := &e.Get.Select[0]
		return node{}, nil, errorAt(fail.Invalid, item.Pos, "%s is %s and never equal to what in looks for, %s", item.As, kind, x.kind)
	}
	typ := doc.Type{}
	if x.column != nil {
		typ = x.column.typ
	}
	i := c.bind(func(f *frame, o *operand) error { return in.members(f, o, typ) })
	if x.column == nil {
		return predicate(memberOf(x.eval, i), x.constant, pos), nil, nil
	}
	return predicate(memberTest(x.column, i), false, pos), &probe{column: x.column, member: true, operand: i}, nil
}

// alike reports whether values of two kinds can be equal.
func alike(a, b doc.Kind) bool {
	number := func(k doc.Kind) bool { return k == doc.Int || k == doc.Float || k == doc.Decimal }
	return a == b || number(a) && number(b)
}

// kind returns the kind of the values.
func (in *innerPlan) kind() doc.Kind {
	if g := in.get.groups; g != nil {
		return kindOf(g.typ(g.columns[0].cell))
	}
	return in.get.show.items[0].kind
}

// members runs the get and makes its values the members of an in, converted for a field of the type if there is
// a field.
func (in *innerPlan) members(f *frame, o *operand, typ doc.Type) error {
	kind := kindOf(typ)
	n := 0
	add := func(v doc.Value) error {
		if v.Kind == doc.Null {
			return nil
		}
		if n++; n > MaxInner {
			return errorAt(fail.Invalid, in.pos, "the inner get of in answers more than %s values", strconv.Itoa(MaxInner))
		}
		if typ.Kind != 0 && (kind == doc.Untyped || alike(v.Kind, kind)) {
			if c, err := typ.Comparand(v, "the value"); err == nil {
				v = c
			} // else no value of the field equals it
		}
		if v.B != nil {
			start := len(f.arena)
			f.arena = append(f.arena, v.B...)
			v.B = f.arena[start:len(f.arena):len(f.arena)]
			if !f.arenaFits() {
				return f.take()
			}
		}
		return o.add(f, v)
	}
	if err := in.each(f, add); err != nil {
		return err
	}
	return o.sortMembers(f, whole(typ))
}

// each runs the get and calls add for each of its values until add fails.
func (in *innerPlan) each(outer *frame, add func(doc.Value) error) error {
	t, err := table(outer.reader, in.get.collection)
	if err != nil {
		return err
	}
	f := in.plan.frame()
	defer in.plan.release(f)
	env := &Env{Ctx: outer.ctx, Params: outer.params, Now: time.UnixMilli(outer.now), Account: outer.account}
	if err := f.begin(env, outer.reader, nil); err != nil {
		return err
	}
	n := 0
	if g := in.get.groups; g != nil {
		rows, err := g.rows(f, t, in.get.pick)
		if err != nil {
			return err
		}
		for _, cells := range rows {
			if err := add(cells[g.columns[0].cell]); err != nil {
				return err
			}
		}
		n = len(rows)
	} else {
		item := &in.get.show.items[0]
		err := in.get.each(f, t, func(f *frame) bool {
			v := item.value(f)
			if f.err == nil {
				f.err = add(v)
			}
			n++
			return f.err == nil
		})
		if err != nil {
			return err
		}
	}
	if err := f.take(); err != nil {
		return err
	}
	run := innerRun{collection: in.get.collection, tested: f.walk.tested, values: n}
	switch {
	case in.get.search != nil:
		run.index = in.get.search.indexName(f)
	case f.walk.access != nil:
		run.index = f.walk.access.indexName()
	}
	outer.inner = append(append(outer.inner, f.inner...), run)
	return nil
}
