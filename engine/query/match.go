package query

import (
	"bytes"
	"slices"

	"fenec/engine/collation"
	"fenec/engine/doc"
)

// columnTest compares a column with the run's operand i, reading the column's bytes in place.
func columnTest(col *column, rel relation, i int) testFunc {
	switch {
	case col.id:
		return idTest(rel, i)
	case col.keys != nil || col.typ.Kind == doc.TypeJSON:
		return jsonTest(col, rel, i)
	}
	switch col.typ.Kind {
	case doc.TypeInt:
		return intTest(col.slot, rel, i)
	case doc.TypeTimestamp:
		return timestampTest(col.slot, rel, i)
	case doc.TypeFloat:
		return floatTest(col.slot, rel, i)
	case doc.TypeText:
		return textTest(col, rel, i)
	}
	return valueTest(col.slot, rel, i)
}

func idTest(rel relation, i int) testFunc {
	inside := rel != less|greater
	return func(f *frame) truth {
		o := &f.operands[i]
		if o.null {
			return unknown
		}
		n := f.doc.ID()
		return truthOf((n >= o.first && n <= o.last) == inside)
	}
}

func intTest(slot int, rel relation, i int) testFunc {
	inside := rel != less|greater
	return func(f *frame) truth {
		o := &f.operands[i]
		n, ok := f.doc.Field(slot).Int()
		if !ok || o.null {
			return unknown
		}
		return truthOf((n >= o.first && n <= o.last) == inside)
	}
}

func timestampTest(slot int, rel relation, i int) testFunc {
	inside := rel != less|greater
	return func(f *frame) truth {
		o := &f.operands[i]
		n, ok := f.doc.Field(slot).Timestamp()
		if !ok || o.null {
			return unknown
		}
		return truthOf((n >= o.first && n <= o.last) == inside)
	}
}

func floatTest(slot int, rel relation, i int) testFunc {
	inside := rel != less|greater
	return func(f *frame) truth {
		o := &f.operands[i]
		x, ok := f.doc.Field(slot).Float()
		if !ok || o.null {
			return unknown
		}
		return truthOf((x >= o.low && x <= o.high) == inside)
	}
}

func textTest(col *column, rel relation, i int) testFunc {
	slot := col.slot
	switch {
	case rel.equality():
		same := rel == equal
		return func(f *frame) truth {
			o := &f.operands[i]
			s, ok := f.doc.Field(slot).Text()
			if !ok || o.null {
				return unknown
			}
			return truthOf(bytes.Equal(s, o.value.B) == same)
		}
	case col.collate != collation.None:
		return collatedTest(col, rel, i)
	}
	return func(f *frame) truth {
		o := &f.operands[i]
		s, ok := f.doc.Field(slot).Text()
		if !ok || o.null {
			return unknown
		}
		return truthOf(rel.holds(bytes.Compare(s, o.value.B)))
	}
}

// collatedTest is textTest by the column's collation. The operand's key is made once per run, and of a row's
// key only as much as the operand's has.
func collatedTest(col *column, rel relation, i int) testFunc {
	slot, by := col.slot, col.collate
	return func(f *frame) truth {
		o := &f.operands[i]
		s, ok := f.doc.Field(slot).Text()
		if !ok || o.null {
			return unknown
		}
		key, whole := by.AppendPrefix(f.fold[:0], s, len(o.key))
		f.fold = key
		c := bytes.Compare(key, o.key)
		if c == 0 && !whole {
			c = 1
		}
		return truthOf(rel.holds(c))
	}
}

// valueTest is for types whose values are all of one kind and seldom compared: bool, bytes, lists.
func valueTest(slot int, rel relation, i int) testFunc {
	return func(f *frame) truth {
		o := &f.operands[i]
		r := f.doc.Field(slot)
		if r.IsNull() || o.null {
			return unknown
		}
		return truthOf(rel.holds(doc.Compare(r.Value(), o.value)))
	}
}

// jsonTest compares values of any kinds.
func jsonTest(col *column, rel relation, i int) testFunc {
	slot, keys := col.slot, col.keys
	return func(f *frame) truth {
		o := &f.operands[i]
		r := f.doc.Field(slot).Path(keys)
		if r.IsNull() || o.null {
			return unknown
		}
		return related(rel, collation.None, r.Value(), o.value)
	}
}

// memberTest tests whether a column's value is among the values of the run's operand i. If the list has a null
// member (operand.null), the result for any value not found is unknown.
func memberTest(col *column, i int) testFunc {
	eval := col.eval()
	if !whole(col.typ) {
		return memberOf(eval, i)
	}
	return func(f *frame) truth {
		o := &f.operands[i]
		v := eval(f)
		if v.Kind == doc.Null {
			return o.nullMember()
		}
		_, found := slices.BinarySearch(o.ints, v.Int())
		return member(found, o.null)
	}
}

// memberOf is memberTest for any expression.
func memberOf(eval evalFunc, i int) testFunc {
	return func(f *frame) truth {
		o := &f.operands[i]
		v := eval(f)
		if v.Kind == doc.Null {
			return o.nullMember()
		}
		_, found := slices.BinarySearchFunc(o.values, v, doc.Compare)
		return member(found, o.null)
	}
}

// nullMember returns the result of `in` for a null: unknown, but no for an empty list.
func (o *operand) nullMember() truth {
	if len(o.values) == 0 && !o.null {
		return no
	}
	return unknown
}

// member returns the result of `in` for a value that is not null.
func member(found, null bool) truth {
	switch {
	case found:
		return yes
	case null:
		return unknown
	}
	return no
}
