package doc

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
)

// family groups the kinds that are ordered among each other by value.
func family(k Kind) Kind {
	if k == Float || k == Decimal {
		return Int
	}
	return k
}

// Comparable reports whether < and > are defined for a and b: both are of one family and neither is null.
func Comparable(a, b Value) bool {
	return a.Kind != Null && family(a.Kind) == family(b.Kind)
}

// Compare orders any two values: null < bool < number < text < list < object < timestamp < bytes < vector < sparse
// vector. Numbers of all kinds compare by their exact values, with NaN last. Text and bytes compare by bytes, lists
// element by element, objects entry by entry, key before value, and vectors number by number. A list, object or vector
// that is a prefix of another comes before it.
func Compare(a, b Value) int {
	if a.Kind == b.Kind {
		switch a.Kind {
		case Int, Timestamp:
			return cmp.Compare(int64(a.N), int64(b.N))
		case Text, Bytes, Untyped:
			return bytes.Compare(a.B, b.B)
		case Float:
			return compareFloats(a.Float(), b.Float())
		case Bool:
			return cmp.Compare(a.N, b.N)
		case List:
			return compareLists(Raw(a.B), Raw(b.B))
		case Object:
			return compareObjects(Raw(a.B), Raw(b.B))
		case Vector:
			return compareVectors(a, b)
		case Sparse:
			return compareSparse(a, b)
		case Null:
			return 0
		}
	}
	if fa, fb := family(a.Kind), family(b.Kind); fa != fb {
		return cmp.Compare(fa, fb)
	}
	return compareNumbers(a, b)
}

// Equal reports whether a and b are the same value: 3 equals 3.0, -0.0 equals 0.0, text is equal by bytes.
func Equal(a, b Value) bool {
	if a.Kind == b.Kind {
		switch a.Kind {
		case Int, Timestamp, Bool:
			return a.N == b.N
		case Text, Bytes, Untyped:
			return bytes.Equal(a.B, b.B)
		}
	}
	return Compare(a, b) == 0
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	// At least one is not a number.
	return cmp.Compare(nanRank(a), nanRank(b))
}

func nanRank(f float64) int {
	if math.IsNaN(f) {
		return 1
	}
	return 0
}

// compareNumbers orders numbers of different kinds, or two decimals.
func compareNumbers(a, b Value) int {
	switch {
	case a.Kind == Int && b.Kind == Float:
		return compareIntFloat(a.Int(), b.Float())
	case a.Kind == Float && b.Kind == Int:
		return -compareIntFloat(b.Int(), a.Float())
	case a.Kind == Decimal && b.Kind == Decimal:
		return compareDigits(a.B, b.B)
	case b.Kind == Decimal:
		return -compareDecimal(b.B, a)
	default:
		return compareDecimal(a.B, b)
	}
}

// compareIntFloat orders n and f exactly, though a float64 cannot hold every int64.
func compareIntFloat(n int64, f float64) int {
	switch {
	case f >= 1<<63 || math.IsNaN(f):
		return -1
	case f < -1<<63:
		return 1
	}
	whole := math.Trunc(f)
	if c := cmp.Compare(n, int64(whole)); c != 0 {
		return c
	}
	return cmp.Compare(0, f-whole)
}

// exactDigits is the number of digits after the first that suffices to write any finite float64 exactly.
const exactDigits = 766

// compareDecimal orders a decimal's text and an int or float.
func compareDecimal(text []byte, v Value) int {
	if v.Kind == Int {
		var buf [24]byte
		return compareDigits(text, strconv.AppendInt(buf[:0], v.Int(), 10))
	}
	f := v.Float()
	if math.IsNaN(f) {
		return -1
	}
	if math.IsInf(f, 0) {
		return cmp.Compare(0, f)
	}
	// Rounding preserves order, so the exact digits are needed only if the decimal rounds to f itself.
	nearest := Value{Kind: Decimal, B: text}.Float64()
	if nearest != f {
		return cmp.Compare(nearest, f)
	}
	var buf [exactDigits + 16]byte
	return compareDigits(text, strconv.AppendFloat(buf[:0], f, 'e', exactDigits, 64))
}

// compareDigits orders two numbers by their texts.
func compareDigits(a, b []byte) int {
	x, _ := scanNumber(a)
	y, _ := scanNumber(b)
	if c := cmp.Compare(x.sign(), y.sign()); c != 0 {
		return c
	}
	c := cmp.Compare(x.digits+x.exponent, y.digits+y.exponent)
	if c == 0 {
		c = compareMantissas(significant{a, x.digits}, significant{b, y.digits})
	}
	if x.negative {
		return -c
	}
	return c
}

// sign returns -1, 0 or 1.
func (n numeral) sign() int {
	switch {
	case n.digits == 0:
		return 0
	case n.negative:
		return -1
	}
	return 1
}

func compareMantissas(a, b significant) int {
	a.skipZeros()
	b.skipZeros()
	for a.left > 0 || b.left > 0 {
		if c := cmp.Compare(a.next(), b.next()); c != 0 {
			return c
		}
	}
	return 0
}

func compareLists(a, b Raw) int {
	x, y := a.body(tagList), b.body(tagList)
	for len(x) > 0 && len(y) > 0 {
		n, m := size(x), size(y)
		if n == 0 || m == 0 {
			break
		}
		if c := Compare(Raw(x[:n]).Value(), Raw(y[:m]).Value()); c != 0 {
			return c
		}
		x, y = x[n:], y[m:]
	}
	return cmp.Compare(min(len(x), 1), min(len(y), 1))
}

func compareObjects(a, b Raw) int {
	x, y := a.body(tagObject), b.body(tagObject)
	for len(x) > 0 && len(y) > 0 {
		xk, xv, xr, ok := entry(x)
		yk, yv, yr, also := entry(y)
		if !ok || !also {
			break
		}
		if c := bytes.Compare(xk, yk); c != 0 {
			return c
		}
		if c := Compare(xv.Value(), yv.Value()); c != 0 {
			return c
		}
		x, y = xr, yr
	}
	return cmp.Compare(min(len(x), 1), min(len(y), 1))
}
