package query

import (
	"slices"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// in compiles `x in [..]` and `x in $1`.
func (c *compiler) in(x, y node, pos syntax.Pos) (node, *probe, error) {
	if x.column != nil && y.constant {
		i := c.bind(bindMembers(x.column, y))
		n := predicate(memberTest(x.column, i), false, pos)
		return n, &probe{column: x.column, member: true, operand: i}, nil
	}
	if y.list != nil {
		return c.memberOf(x, y.list, pos), nil, nil
	}
	a, b := x.eval, y.eval
	test := func(f *frame) truth {
		v, w := a(f), b(f)
		switch {
		case w.Kind == doc.List && doc.Raw(w.B).Count() == 0:
			return no // also for null
		case v.Kind == doc.Null || w.Kind == doc.Null:
			return unknown
		case w.Kind != doc.List:
			f.fail(y.pos, "in: expected a list, got %s", w.Kind)
			return unknown
		}
		found, null := false, false
		doc.Raw(w.B).Elements(func(e doc.Raw) bool {
			found = doc.Equal(v, e.Value())
			null = null || e.IsNull()
			return !found
		})
		return member(found, null)
	}
	return predicate(test, x.constant && y.constant, pos), nil, nil
}

// memberOf compares x with each item of a list: x = a or x = b ...
func (c *compiler) memberOf(x node, items []node, pos syntax.Pos) node {
	tests := make([]testFunc, len(items))
	constant := x.constant
	for i, item := range items {
		n, _ := c.compare(equal, x, item, pos)
		tests[i] = n.test
		constant = constant && item.constant
	}
	some := anyOf(tests)
	if len(items) > 0 {
		return predicate(some, constant, pos)
	}
	eval := x.eval
	return predicate(func(f *frame) truth {
		eval(f) // for its error
		return no
	}, constant, pos)
}

// bindMembers converts a list of constants for the column's type and sorts it.
func bindMembers(col *column, list node) func(*frame, *operand) error {
	return func(f *frame, o *operand) error {
		add := func(v doc.Value, pos syntax.Pos) error {
			if v.Kind == doc.Null {
				o.null = true
				return nil
			}
			v, err := col.typ.Comparand(v, col.what)
			if err != nil {
				return placed(pos, err)
			}
			return o.add(f, v)
		}
		if err := eachMember(f, list, add); err != nil {
			return err
		}
		return o.sortMembers(f, whole(col.typ))
	}
}

// add appends a member of an in.
func (o *operand) add(f *frame, v doc.Value) error {
	if filled(o.values) && !f.fits() {
		return f.take()
	}
	o.values = append(o.values, v)
	return nil
}

// sortMembers sorts the members of an in for memberTest and the indexes, and removes duplicates.
func (o *operand) sortMembers(f *frame, whole bool) error {
	compared := 0
	slices.SortFunc(o.values, func(a, b doc.Value) int {
		if compared++; compared&(comparesPerCheck-1) == 0 {
			f.goesOn()
		}
		if f.err != nil {
			return 0 // from here on all are equal, so that the sort ends soon
		}
		return doc.Compare(a, b)
	})
	o.values = slices.CompactFunc(o.values, doc.Equal)
	if whole {
		for _, v := range o.values {
			if n, ok := wholeOf(v); ok {
				o.ints = append(o.ints, n)
			}
		}
	}
	if len(o.values) >= fewItems {
		f.fits()
	}
	return f.take()
}

// eachMember calls add for each member of a constant list, which is a list expression or one value.
func eachMember(f *frame, list node, add func(doc.Value, syntax.Pos) error) error {
	if list.list != nil {
		for _, item := range list.list {
			v := item.given()(f)
			if err := f.take(); err != nil {
				return err
			}
			if err := add(v, item.pos); err != nil {
				return err
			}
		}
		return nil
	}
	v := list.eval(f)
	if err := f.take(); err != nil {
		return err
	}
	switch v.Kind {
	case doc.List:
	case doc.Null:
		return add(v, list.pos) // null instead of a list is as unknown as a null member
	default:
		return errorAt(fail.Invalid, list.pos, "in: expected a list, got %s", v.Kind)
	}
	var err error
	doc.Raw(v.B).Elements(func(e doc.Raw) bool {
		err = add(e.Value(), list.pos)
		return err == nil
	})
	return err
}

// has compiles `x has y`: whether the list x holds the value y.
func (c *compiler) has(x, y node, pos syntax.Pos) (node, error) {
	if x.kind != doc.List && x.kind != doc.Untyped {
		return node{}, errorAt(fail.Invalid, x.pos, "has: expected a list, got %s", x.described())
	}
	a, b := x.eval, y.eval
	if col := x.column; col != nil && y.constant {
		i := c.bind(bindElement(col, y))
		b = func(f *frame) doc.Value { return f.operands[i].value }
	}
	test := func(f *frame) truth {
		v, w := a(f), b(f)
		if v.Kind == doc.Null || w.Kind == doc.Null {
			return unknown
		}
		found := false
		if v.Kind == doc.List {
			doc.Raw(v.B).Elements(func(e doc.Raw) bool {
				found = doc.Equal(e.Value(), w)
				return !found
			})
		}
		return truthOf(found)
	}
	return predicate(test, x.constant && y.constant, pos), nil
}

// bindElement converts a constant for the elements of a list column.
func bindElement(col *column, constant node) func(*frame, *operand) error {
	typ := doc.Type{Kind: doc.TypeJSON}
	if col.typ.Kind == doc.TypeList {
		typ.Kind = col.typ.Elem
	}
	given, pos := constant.given(), constant.pos
	return func(f *frame, o *operand) error {
		v := given(f)
		if err := f.take(); err != nil || v.Kind == doc.Null {
			return err
		}
		var err error
		o.value, err = typ.Comparand(v, col.what)
		return placed(pos, err)
	}
}
