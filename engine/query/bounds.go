package query

import (
	"fenec/engine/collation"
	"fenec/engine/doc"
	"fenec/engine/index"
)

// bounds returns the range of a column's values for which a relation to the operand is true. Nulls are never
// in it, and in a json path only values of the operand's family are. != has no range.
func bounds(rel relation, typ doc.Type, o *operand) (lo, hi index.Bound) {
	switch {
	case whole(typ):
		kind := kindOf(typ)
		return index.Bound{Value: doc.Value{Kind: kind, N: uint64(o.first)}, Inclusive: true},
			index.Bound{Value: doc.Value{Kind: kind, N: uint64(o.last)}, Inclusive: true}
	case typ.Kind == doc.TypeFloat:
		return index.Bound{Value: doc.FloatValue(o.low), Inclusive: true},
			index.Bound{Value: doc.FloatValue(o.high), Inclusive: true}
	}
	at := index.Bound{Value: o.value, Inclusive: rel&equal != 0}
	switch {
	case rel == equal:
		return at, at
	case rel&less != 0:
		return floor(typ, o.value.Kind), at
	}
	return at, ceiling(typ, o.value.Kind)
}

var (
	aboveNull   = index.Bound{}
	unbounded   = index.Bound{Unbounded: true}
	emptyText   = doc.Value{Kind: doc.Text}
	emptyList   = container(doc.OpenList(nil))
	emptyObject = container(doc.OpenObject(nil))
)

func container(open []byte, at int) doc.Value {
	raw, err := doc.Close(open, at)
	if err != nil {
		panic(err) // an empty object has no duplicate key
	}
	return doc.Raw(raw).Value()
}

// floor returns the lower bound of the values of a kind's family.
func floor(typ doc.Type, kind doc.Kind) index.Bound {
	if typ.Kind != doc.TypeJSON {
		return aboveNull
	}
	switch kind {
	case doc.Int, doc.Float, doc.Decimal:
		return index.Bound{Value: doc.BoolValue(true)}
	case doc.Text:
		return index.Bound{Value: emptyText, Inclusive: true}
	case doc.List:
		return index.Bound{Value: emptyList, Inclusive: true}
	case doc.Object:
		return index.Bound{Value: emptyObject, Inclusive: true}
	}
	return aboveNull
}

// ceiling returns the upper bound of the values of a kind's family.
func ceiling(typ doc.Type, kind doc.Kind) index.Bound {
	if typ.Kind != doc.TypeJSON {
		return index.Bound{Unbounded: true}
	}
	switch kind {
	case doc.Bool:
		return index.Bound{Value: doc.BoolValue(true), Inclusive: true}
	case doc.Int, doc.Float, doc.Decimal:
		return index.Bound{Value: emptyText}
	case doc.Text:
		return index.Bound{Value: emptyList}
	case doc.List:
		return index.Bound{Value: emptyObject}
	}
	return index.Bound{Unbounded: true}
}

// higher returns the tighter of two lower bounds, comparing texts by a collation; b is not unbounded.
func higher(by collation.Collation, a, b index.Bound) index.Bound {
	if a.Unbounded {
		return b
	}
	if c := doc.CompareBy(by, a.Value, b.Value); c > 0 || c == 0 && !a.Inclusive {
		return a
	}
	return b
}

// lower returns the tighter of two upper bounds.
func lower(by collation.Collation, a, b index.Bound) index.Bound {
	switch {
	case a.Unbounded:
		return b
	case b.Unbounded:
		return a
	}
	if c := doc.CompareBy(by, a.Value, b.Value); c < 0 || c == 0 && !a.Inclusive {
		return a
	}
	return b
}

// hollow reports whether no value lies between the bounds.
func hollow(by collation.Collation, lo, hi index.Bound) bool {
	if lo.Unbounded || hi.Unbounded {
		return false
	}
	c := doc.CompareBy(by, lo.Value, hi.Value)
	return c > 0 || c == 0 && !(lo.Inclusive && hi.Inclusive)
}
