package doc

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"testing"

	"fenec/engine/collation"
	"pgregory.net/rapid"
)

func TestCompareIsATotalOrderThatEqualHashAndSortKeyAgreeWith(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := rapid.OneOf(drawValue(2), drawNumber())
		a, b, c := g.Draw(t, "a"), g.Draw(t, "b"), g.Draw(t, "c")
		if Compare(a, a) != 0 || !Equal(a, a) {
			t.Fatalf("%s does not equal itself", describe(a))
		}
		ab, bc, ac := Compare(a, b), Compare(b, c), Compare(a, c)
		if Compare(b, a) != -ab {
			t.Fatalf("a against b is %d, b against a %d", ab, Compare(b, a))
		}
		if ab <= 0 && bc <= 0 && (ac > 0 || ac == 0 && ab+bc < 0) {
			t.Fatalf("a against b %d, b against c %d, a against c %d", ab, bc, ac)
		}
		if Equal(a, b) != (ab == 0) {
			t.Fatalf("Equal says %t, Compare %d", Equal(a, b), ab)
		}
		if ab == 0 && Hash(a) != Hash(b) {
			t.Fatal("equal values hash differently")
		}
		if ka, kb := SortKey(a), SortKey(b); ka != kb && cmp.Compare(ka, kb) != ab {
			t.Fatalf("keys %x and %x, Compare %d", ka, kb, ab)
		} else if ka == kb && KeyExact(ka) && ab != 0 {
			t.Fatalf("the key %x is exact, Compare %d", ka, ab)
		}
		if Comparable(a, b) && family(a.Kind) != family(b.Kind) {
			t.Fatal("values of two families are comparable")
		}
	})
}

func TestACollationsSortKeyAgreesWithItsOrder(t *testing.T) {
	texts := rapid.Map(rapid.OneOf(rapid.StringOf(rapid.SampledFrom([]rune("abAB é\u0301ıiç\x00日"))), rapid.String()), func(s string) Value {
		return TextValue([]byte(s))
	})
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom([]collation.Collation{collation.None, collation.Root, collation.Turkish}).Draw(t, "collation")
		g := rapid.OneOf(texts, texts, drawValue(1))
		a, b := g.Draw(t, "a"), g.Draw(t, "b")
		ab := CompareBy(c, a, b)
		if CompareBy(c, b, a) != -ab {
			t.Fatalf("a against b is %d, b against a %d", ab, CompareBy(c, b, a))
		}
		if Equal(a, b) && ab != 0 {
			t.Fatalf("equal values compare as %d", ab)
		}
		if ka, kb := SortKeyBy(c, a), SortKeyBy(c, b); ka != kb && cmp.Compare(ka, kb) != ab {
			t.Fatalf("keys %x and %x, CompareBy %d", ka, kb, ab)
		} else if ka == kb && KeyExact(ka) && ab != 0 {
			t.Fatalf("the key %x is exact, CompareBy %d", ka, ab)
		}
	})
}

// rational returns a finite number as a fraction; ok is false if its exponent would make it huge.
func rational(v Value) (r *big.Rat, ok bool) {
	switch v.Kind {
	case Int:
		return new(big.Rat).SetInt64(v.Int()), true
	case Float:
		if math.IsInf(v.Float(), 0) {
			return nil, false
		}
		return new(big.Rat).SetFloat64(v.Float()), true
	}
	if n, _ := scanNumber(v.B); n.exponent > 2000 || n.exponent < -2000 {
		return nil, false
	}
	return new(big.Rat).SetString(string(v.B))
}

func TestNumbersCompareAsFractionsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawNumber().Draw(t, "a"), drawNumber().Draw(t, "b")
		x, ok := rational(a)
		y, also := rational(b)
		if !ok || !also {
			t.Skip("infinite or huge")
		}
		if got, want := Compare(a, b), x.Cmp(y); got != want {
			t.Fatalf("%s against %s: got %d, want %d", AppendValueJSON(nil, a), AppendValueJSON(nil, b), got, want)
		}
	})
}

func TestCompareTable(t *testing.T) {
	nan := FloatValue(math.NaN())
	for _, tc := range []struct {
		name string
		a, b Value
		want int
	}{
		{"3 equals 3.0", IntValue(3), FloatValue(3), 0},
		{"-0.0 equals 0.0", FloatValue(math.Copysign(0, -1)), FloatValue(0), 0},
		{"0 equals -0.0", IntValue(0), FloatValue(math.Copysign(0, -1)), 0},
		{"an int64 that no float64 holds lies beside it", IntValue(1<<53 + 1), FloatValue(1 << 53), 1},
		{"the largest int64 is less than the float64 it rounds to", IntValue(math.MaxInt64), FloatValue(1 << 63), -1},
		{"a decimal between an int64 and the next", decimalOf("9223372036854775806.5"), IntValue(math.MaxInt64), -1},
		{"a decimal past all floats", decimalOf("1e400"), FloatValue(math.MaxFloat64), 1},
		{"a decimal past all floats is finite", decimalOf("1e400"), FloatValue(math.Inf(1)), -1},
		{"a decimal too small for a float is not zero", decimalOf("1e-400"), IntValue(0), 1},
		{"a decimal written in two ways", Value{Kind: Decimal, B: []byte("12.50e3")}, IntValue(12500), 0},
		{"no number comes after all numbers", nan, decimalOf("1e400"), 1},
		{"no number equals itself", nan, nan, 0},
		{"null before false", Value{}, BoolValue(false), -1},
		{"true before a number", BoolValue(true), decimalOf("-1e400"), -1},
		{"a number before text", FloatValue(math.Inf(1)), TextValue(nil), -1},
		{"text before a list", TextValue([]byte("z")), encode(t, `[]`).Value(), -1},
		{"a list before an object", encode(t, `[9]`).Value(), encode(t, `{}`).Value(), -1},
		{"a list before a longer one that begins with it", encode(t, `[1]`).Value(), encode(t, `[1,null]`).Value(), -1},
		{"lists by their first difference", encode(t, `[1,9]`).Value(), encode(t, `[2]`).Value(), -1},
		{"objects by key first", encode(t, `{"a":9}`).Value(), encode(t, `{"b":1}`).Value(), -1},
		{"equal numbers in objects", encode(t, `{"a":3}`).Value(), encode(t, `{"a":3.0}`).Value(), 0},
		{"bytes before a vector", Value{Kind: Bytes, B: []byte{0xff}}, madeVector(false, []float32{-1}), -1},
		{"a vector before a sparse one", madeVector(false, []float32{9}), madeSparse(1, "{}/1"), -1},
		{"vectors by their first difference", madeVector(false, []float32{1, 9}), madeVector(false, []float32{2, 1}), -1},
		{"a vector before a longer one that begins with it", madeVector(false, []float32{1}), madeVector(false, []float32{1, -1}), -1},
		{"an f16 vector equals an f32 one", madeVector(true, []float32{1, 0.5}), madeVector(false, []float32{1, 0.5}), 0},
		{"an f16 vector is what it was rounded to", madeVector(true, []float32{0.1}), madeVector(false, []float32{0.1}), -1},
		{"sparse vectors by dimensions first", madeSparse(2, "{1:9}/2"), madeSparse(3, "{}/3"), -1},
		{"sparse vectors by index", madeSparse(9, "{1:9}/9"), madeSparse(9, "{2:1}/9"), -1},
		{"sparse vectors by weight", madeSparse(9, "{1:1,2:5}/9"), madeSparse(9, "{1:2}/9"), -1},
		{"text by bytes", TextValue([]byte("Z")), TextValue([]byte("a")), -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Compare(tc.a, tc.b); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
			if got := Compare(tc.b, tc.a); got != -tc.want {
				t.Errorf("the other way round: got %d, want %d", got, -tc.want)
			}
			if Equal(tc.a, tc.b) && Hash(tc.a) != Hash(tc.b) {
				t.Error("equal values hash differently")
			}
		})
	}
}

func TestHashesOfNeighboursDiffer(t *testing.T) {
	seen := map[uint64]Value{}
	add := func(v Value) {
		h := Hash(v)
		if other, ok := seen[h]; ok && !Equal(other, v) {
			t.Errorf("%s and %s share the hash %x", describe(other), describe(v), h)
		}
		seen[h] = v
	}
	for i := range int64(5000) {
		add(IntValue(i))
		add(FloatValue(float64(i) / 7))
		add(TimestampValue(i))
		add(TextValue(AppendTimestamp(nil, i)))
	}
	for i := float32(0); i < 100; i++ {
		add(madeVector(false, []float32{i, 1}))
		add(madeVector(true, []float32{1, i}))
		add(madeSparse(9, fmt.Sprintf("{1:%v}/9", i)))
		add(madeSparse(9, fmt.Sprintf("{2:%v}/9", i)))
	}
	for _, s := range []string{`[]`, `{}`, `[1,2]`, `[2,1]`, `[[1],2]`, `[[1,2]]`, `{"a":1}`, `{"a":"1"}`, `{"b":1}`, `null`, `true`, `false`, `""`, `1e400`, `-1e400`, `1e401`} {
		add(encode(t, s).Value())
	}
}

func TestComparable(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b Value
		want bool
	}{
		"an int and a decimal":  {IntValue(1), decimalOf("1e400"), true},
		"two nulls":             {Value{}, Value{}, false},
		"a number and a text":   {IntValue(1), TextValue([]byte("1")), false},
		"a number and a time":   {IntValue(1), TimestampValue(1), false},
		"two lists":             {encode(t, "[]").Value(), encode(t, "[1]").Value(), true},
		"a list and an object":  {encode(t, "[]").Value(), encode(t, "{}").Value(), false},
		"a null and an int":     {Value{}, IntValue(1), false},
		"bytes and text":        {Value{Kind: Bytes}, TextValue(nil), false},
		"two vectors":           {madeVector(true, []float32{1}), madeVector(false, []float32{2}), true},
		"a vector and a list":   {madeVector(true, []float32{1}), encode(t, "[1]").Value(), false},
		"true and false":        {BoolValue(true), BoolValue(false), true},
		"a float and an int":    {FloatValue(1), IntValue(1), true},
		"a timestamp and a one": {TimestampValue(2), TimestampValue(1), true},
	} {
		if got := Comparable(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
