package query

import (
	"bytes"
	"math"
	"math/bits"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

var opText = map[syntax.Op]string{
	syntax.Eq: "=", syntax.Ne: "!=", syntax.Lt: "<", syntax.Le: "<=", syntax.Gt: ">", syntax.Ge: ">=",
	syntax.In: "in", syntax.Has: "has", syntax.Contains: "~",
	syntax.Add: "+", syntax.Sub: "-", syntax.Mul: "*", syntax.Div: "/", syntax.Mod: "%",
}

// arithmetic compiles + - * / %.
func arithmetic(op syntax.Op, x, y node, pos syntax.Pos) (node, error) {
	for _, n := range [...]node{x, y} {
		switch n.kind {
		case doc.Int, doc.Float, doc.Decimal, doc.Timestamp, doc.Untyped:
		default:
			return node{}, errorAt(fail.Invalid, n.pos, "%s: expected numbers, got %s", opText[op], n.kind)
		}
	}
	a, b := x.eval, y.eval
	n := node{constant: x.constant && y.constant, kind: arithmeticKind(op, x.kind, y.kind), pos: pos}
	n.eval = func(f *frame) doc.Value {
		v := a(f)
		w := b(f)
		if v.Kind == doc.Int && w.Kind == doc.Int {
			return f.ints(op, v.Int(), w.Int(), pos)
		}
		return f.numbers(op, v, w, pos)
	}
	return n, nil
}

// arithmeticKind returns the kind of a result, if the kinds of the operands determine it.
func arithmeticKind(op syntax.Op, x, y doc.Kind) doc.Kind {
	switch {
	case x == doc.Untyped || y == doc.Untyped:
		return doc.Untyped
	case x == doc.Timestamp && y == doc.Timestamp:
		return doc.Int
	case x == doc.Timestamp || y == doc.Timestamp:
		return doc.Timestamp
	case x == doc.Int && y == doc.Int:
		return doc.Int
	}
	return doc.Float
}

// ints does exact arithmetic on ints. A result that does not fit 64 bits is an error.
func (f *frame) ints(op syntax.Op, a, b int64, pos syntax.Pos) doc.Value {
	var r int64
	ok := true
	switch op {
	case syntax.Add:
		r = a + b
		ok = (r > a) == (b > 0)
	case syntax.Sub:
		r = a - b
		ok = (r < a) == (b > 0)
	case syntax.Mul:
		r, ok = mul(a, b)
	case syntax.Div:
		if b == 0 {
			return f.fail(pos, "division by zero")
		}
		ok = !(a == math.MinInt64 && b == -1)
		r = a / b
	case syntax.Mod:
		if b == 0 {
			return f.fail(pos, "division by zero")
		}
		r = a % b
	}
	if !ok {
		return f.fail(pos, "%d %s %d does not fit an int of 64 bits", a, opText[op], b)
	}
	return doc.IntValue(r)
}

func mul(a, b int64) (int64, bool) {
	abs := func(n int64) uint64 {
		if n < 0 {
			return -uint64(n)
		}
		return uint64(n)
	}
	hi, lo := bits.Mul64(abs(a), abs(b))
	if (a < 0) != (b < 0) {
		return int64(-lo), hi == 0 && lo <= 1<<63
	}
	return int64(lo), hi == 0 && lo < 1<<63
}

// numbers does arithmetic on any values except two ints. The result is null if one is null, a float if one is
// a float. For timestamps see times.
func (f *frame) numbers(op syntax.Op, v, w doc.Value, pos syntax.Pos) doc.Value {
	if v.Kind == doc.Null || w.Kind == doc.Null {
		return doc.Value{}
	}
	if v.Kind == doc.Timestamp || w.Kind == doc.Timestamp {
		return f.times(op, v, w, pos)
	}
	a, okA := f.number(v, pos)
	b, okB := f.number(w, pos)
	if !okA || !okB {
		if okA {
			v = w
		}
		return f.fail(pos, "%s: expected numbers, got %s", opText[op], v.Kind)
	}
	var r float64
	switch op {
	case syntax.Add:
		r = a + b
	case syntax.Sub:
		r = a - b
	case syntax.Mul:
		r = a * b
	default:
		if b == 0 {
			return f.fail(pos, "division by zero")
		}
		if op == syntax.Div {
			r = a / b
		} else {
			r = math.Mod(a, b)
		}
	}
	if math.IsInf(r, 0) || math.IsNaN(r) {
		return f.fail(pos, "%g %s %g does not fit a float", a, opText[op], b)
	}
	return doc.FloatValue(r)
}

// times does arithmetic with a timestamp: a timestamp plus or minus milliseconds, or the milliseconds
// between two.
func (f *frame) times(op syntax.Op, v, w doc.Value, pos syntax.Pos) doc.Value {
	switch {
	case op == syntax.Sub && v.Kind == doc.Timestamp && w.Kind == doc.Timestamp:
		return f.ints(op, v.Int(), w.Int(), pos)
	case op == syntax.Add && v.Kind == doc.Int, (op == syntax.Add || op == syntax.Sub) && w.Kind == doc.Int:
		return instant(f.ints(op, v.Int(), w.Int(), pos))
	case op == syntax.Add || op == syntax.Sub:
		return f.fail(pos, "a timestamp takes %s with an int of milliseconds, got %s %s %s", opText[op], v.Kind, opText[op], w.Kind)
	}
	return f.fail(pos, "a timestamp takes + and - only, got %s", opText[op])
}

// instant converts a number of milliseconds to a timestamp. Null stays null.
func instant(ms doc.Value) doc.Value {
	if ms.Kind == doc.Int {
		ms.Kind = doc.Timestamp
	}
	return ms
}

// number converts a number to the nearest float. A decimal past the range of floats is
// an error of the run.
func (f *frame) number(v doc.Value, pos syntax.Pos) (float64, bool) {
	if !v.IsNumber() {
		return 0, false
	}
	x := v.Float64()
	if math.IsInf(x, 0) {
		f.fail(pos, "%s does not fit a float", v.B)
	}
	return x, true
}

// negated compiles -x. The digits of -9223372036854775808 fit an int only with their sign.
func negated(x node, pos syntax.Pos) (node, error) {
	switch x.kind {
	case doc.Int, doc.Float, doc.Decimal, doc.Untyped:
	default:
		return node{}, errorAt(fail.Invalid, pos, "-: expected a number, got %s", x.kind)
	}
	if x.fixed && x.kind == doc.Decimal {
		v, err := doc.ParseNumber(minus(x.eval(&frame{}).B))
		if err != nil {
			return node{}, placed(pos, err)
		}
		return literal(v, pos), nil
	}
	eval := x.eval
	n := node{constant: x.constant, kind: x.kind, pos: pos}
	n.eval = func(f *frame) doc.Value {
		v := eval(f)
		switch v.Kind {
		case doc.Null:
			return v
		case doc.Int:
			if v.Int() == math.MinInt64 {
				return f.fail(pos, "-(%d) does not fit an int of 64 bits", v.Int())
			}
			return doc.IntValue(-v.Int())
		}
		r, ok := f.number(v, pos)
		if !ok {
			return f.fail(pos, "-: expected a number, got %s", v.Kind)
		}
		return doc.FloatValue(-r)
	}
	return n, nil
}

// minus prepends a minus to digits, or removes the one they have.
func minus(digits []byte) []byte {
	if bytes.HasPrefix(digits, []byte("-")) {
		return digits[1:]
	}
	return append([]byte("-"), digits...)
}
