package query

import (
	"math"

	"fenec/engine/collation"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/index"
	"fenec/engine/query/syntax"
	"fenec/engine/vector"
)

// operand is the constant side of a comparison with a column, made once a run.
type operand struct {
	value  doc.Value      // converted for the column's type
	null   bool           // the constant is null: the comparison is unknown
	first  int64          // of an int, timestamp or id column: the least value that makes the relation true,
	last   int64          // and the greatest; of != those that make it false
	low    float64        // first and
	high   float64        // last of a float column
	values []doc.Value    // of in: the members except null, ascending, without duplicates
	ints   []int64        // of in on an int, timestamp or id column: the members that such a column can hold
	key    []byte         // of < <= > >= on a column with a collation: the text's collation key
	scorer *vector.Scorer // of cosine, l2 and dot: against value
	lo, hi index.Bound    // the column's values that make the relation true; unused by !=

	pattern pattern // of ~ and like
}

func (o *operand) reset() {
	clear(o.values)
	o.pattern.reset()
	*o = operand{values: kept(o.values), ints: kept(o.ints), key: kept(o.key), scorer: o.scorer, pattern: o.pattern}
}

var relations = map[syntax.Op]relation{
	syntax.Eq: equal, syntax.Ne: less | greater, syntax.Lt: less, syntax.Le: less | equal,
	syntax.Gt: greater, syntax.Ge: greater | equal,
}

// binary compiles a comparison or arithmetic. It returns a probe if a column is compared with a constant.
func (c *compiler) binary(e *syntax.Binary) (node, *probe, error) {
	x, err := c.expr(e.X)
	if err != nil {
		return node{}, nil, err
	}
	if inner, ok := e.Y.(*syntax.InnerGet); ok {
		return c.inInner(x, inner, e.Pos)
	}
	y, err := c.expr(e.Y)
	if err != nil {
		return node{}, nil, err
	}
	switch e.Op {
	case syntax.Eq, syntax.Ne, syntax.Lt, syntax.Le, syntax.Gt, syntax.Ge:
		if err := checkOrdered(e.Op, x, y, e.Pos); err != nil {
			return node{}, nil, err
		}
		if err := oneCollation(e.Op, x, y, e.Pos); err != nil {
			return node{}, nil, err
		}
		n, p := c.compare(relations[e.Op], x, y, e.Pos)
		return n, p, nil
	case syntax.In:
		return c.in(x, y, e.Pos)
	}
	var n node
	switch e.Op {
	case syntax.Has:
		n, err = c.has(x, y, e.Pos)
	case syntax.Contains:
		n, err = c.contains(x, y, e.Pos)
	default:
		n, err = arithmetic(e.Op, x, y, e.Pos)
	}
	return n, nil, err
}

// checkOrdered fails for < and the like between vectors, which have equality but no order.
func checkOrdered(op syntax.Op, x, y node, pos syntax.Pos) error {
	for _, n := range [...]node{x, y} {
		if hasNoOrder(n.kind) && !relations[op].equality() {
			return errorAt(fail.Invalid, pos, "%s: expected values that have an order, got %s: vectors are compared by = and != alone", opText[op], n.kind)
		}
	}
	return nil
}

// hasNoOrder reports whether values of a kind have equality but no meaningful order.
func hasNoOrder(k doc.Kind) bool { return k == doc.Vector || k == doc.Sparse }

// compare compiles x related to y.
func (c *compiler) compare(rel relation, x, y node, pos syntax.Pos) (node, *probe) {
	if x.constant && y.column != nil {
		x, y, rel = y, x, rel.flip()
	}
	if x.column != nil && y.constant {
		i := c.bind(bindRelation(rel, x.column, y))
		n := predicate(columnTest(x.column, rel, i), false, pos)
		return n, &probe{column: x.column, rel: rel, operand: i}
	}
	x, y = x.as(y.kind), y.as(x.kind)
	switch {
	case y.constant && x.kind == doc.Timestamp && y.kind != doc.Timestamp:
		y = c.asTimestamp(y)
	case x.constant && y.kind == doc.Timestamp && x.kind != doc.Timestamp:
		x = c.asTimestamp(x)
	case y.constant && x.kind == doc.Vector && y.kind != doc.Vector:
		y = c.asVector(y)
	case x.constant && y.kind == doc.Vector && x.kind != doc.Vector:
		x = c.asVector(x)
	case x.constant != y.constant:
		x, y = c.once(x), c.once(y)
	}
	a, b, by := x.eval, y.eval, collated(x, y)
	test := func(f *frame) truth {
		v := a(f)
		w := b(f)
		if v.Kind == doc.Null || w.Kind == doc.Null {
			return unknown
		}
		return related(rel, by, v, w)
	}
	return predicate(test, x.constant && y.constant, pos), nil
}

// once makes a constant that has to be computed be computed once per run.
func (c *compiler) once(n node) node {
	if !n.constant || n.fixed {
		return n
	}
	eval := n.eval
	i := c.bind(func(f *frame, o *operand) error {
		o.value = eval(f)
		return f.take()
	})
	n.eval = func(f *frame) doc.Value { return f.operands[i].value }
	return n
}

// asTimestamp reads a constant that is compared with a timestamp as one. It parses text once per run.
func (c *compiler) asTimestamp(n node) node {
	given, pos := n.given(), n.pos
	i := c.bind(func(f *frame, o *operand) error {
		v := given(f)
		if err := f.take(); err != nil {
			return err
		}
		if v.Kind == doc.Null {
			o.value = v
			return nil
		}
		var err error
		o.value, err = doc.Type{Kind: doc.TypeTimestamp}.Convert(v, "the value")
		return placed(pos, err)
	})
	return node{eval: func(f *frame) doc.Value { return f.operands[i].value }, kind: doc.Timestamp, constant: true, pos: pos}
}

// asVector reads a constant that is compared with a vector as one, once per run.
func (c *compiler) asVector(n node) node {
	given, pos := n.given(), n.pos
	i := c.bind(func(f *frame, o *operand) error {
		o.value = f.asVector("the value", given(f), pos)
		return f.take()
	})
	return node{eval: func(f *frame) doc.Value { return f.operands[i].value }, kind: doc.Vector, constant: true, pos: pos}
}

// related compares two values, neither null.
func related(rel relation, by collation.Collation, v, w doc.Value) truth {
	switch rel {
	case equal:
		return truthOf(doc.Equal(v, w))
	case less | greater:
		return truthOf(!doc.Equal(v, w))
	}
	if !doc.Comparable(v, w) {
		return unknown
	}
	return truthOf(rel.holds(doc.CompareBy(by, v, w)))
}

// bindRelation converts a comparison's constant for the column's type and computes the range of values for which the
// relation is true.
func bindRelation(rel relation, col *column, constant node) func(*frame, *operand) error {
	given, pos := constant.given(), constant.pos
	return func(f *frame, o *operand) error {
		v := given(f)
		if err := f.take(); err != nil {
			return err
		}
		if v.Kind == doc.Null {
			o.null = true
			return nil
		}
		if col.typ.Kind == doc.TypeTimestamp && !rel.equality() && fraction(v.Number()) {
			o.value = v.Number() // of milliseconds
		} else {
			var err error
			if o.value, err = col.typ.Comparand(v, col.what); err != nil {
				return placed(pos, err)
			}
		}
		switch {
		case whole(col.typ):
			o.first, o.last = intRange(rel, o.value)
		case col.typ.Kind == doc.TypeFloat:
			o.low, o.high = floatRange(rel, o.value)
		}
		if col.collate != collation.None && !rel.equality() {
			o.key = col.collate.AppendKey(o.key[:0], o.value.B)
		}
		o.lo, o.hi = bounds(rel, col.typ, o)
		return nil
	}
}

// whole reports whether a type's values are int64s.
func whole(t doc.Type) bool { return t.Kind == doc.TypeInt || t.Kind == doc.TypeTimestamp }

// fraction reports whether v is a number that may not be an int64.
func fraction(v doc.Value) bool { return v.Kind == doc.Float || v.Kind == doc.Decimal }

// wholeOf returns an int, or the milliseconds of a timestamp, or a number equal to an int64.
func wholeOf(v doc.Value) (n int64, ok bool) {
	if v.Kind == doc.Timestamp {
		return v.Int(), true
	}
	return v.Int64()
}

// intRange returns the range of int64s related to v, an int64 or another number; of != the range that is not. No int64 is
// first > last.
func intRange(rel relation, v doc.Value) (first, last int64) {
	n, ok := wholeOf(v)
	switch {
	case ok:
		return reach(rel, n)
	case rel.equality():
		return 1, 0
	}
	return between(rel, v)
}

// floatRange returns the range of floats related to a number; of != the range that is not. No float is low > high.
func floatRange(rel relation, v doc.Value) (low, high float64) {
	x := v.Float64()
	low, high = x, x
	// From here on low is the least float that is greater than the number, or equal to it if the relation includes
	// equal; high is the greatest that is less. A number that is not a float lies between the two.
	c := doc.Compare(v, doc.FloatValue(x))
	if c < 0 || c == 0 && rel == less {
		high = math.Nextafter(x, math.Inf(-1))
	}
	if c > 0 || c == 0 && rel == greater {
		low = math.Nextafter(x, math.Inf(1))
	}
	switch {
	case rel.equality():
	case rel&less != 0:
		low = math.Inf(-1)
	default:
		high = math.Inf(1)
	}
	return low, high
}

// reach returns the range of int64s related to n; of != the range that is not. No int64 is first > last.
func reach(rel relation, n int64) (first, last int64) {
	first, last = n, n
	switch rel {
	case less, less | equal:
		first = math.MinInt64
	case greater, greater | equal:
		last = math.MaxInt64
	}
	switch {
	case rel == less && n == math.MinInt64, rel == greater && n == math.MaxInt64:
		return 1, 0
	case rel == less:
		last--
	case rel == greater:
		first++
	}
	return first, last
}

// between returns the range of int64s that are less or greater than a number which may have a fraction or lie
// past 64 bits.
func between(rel relation, v doc.Value) (first, last int64) {
	// The int64s in order begin with those that are less than v (or equal, for <= and >). Find where those end.
	orEqual := rel == less|equal || rel == greater
	before := func(at uint64) bool {
		c := doc.Compare(doc.IntValue(int64(at^1<<63)), v)
		return c < 0 || c == 0 && orEqual
	}
	low, high := uint64(0), uint64(math.MaxUint64)
	if before(high) {
		if rel&less != 0 {
			return math.MinInt64, math.MaxInt64
		}
		return 1, 0
	}
	for low < high {
		if mid := low + (high-low)/2; before(mid) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	split := int64(low ^ 1<<63) // the first that is not before
	switch {
	case rel&greater != 0:
		return split, math.MaxInt64
	case low == 0:
		return 1, 0
	}
	return math.MinInt64, split - 1
}
