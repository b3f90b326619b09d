package doc

import (
	"fmt"
	"math"
	"strings"

	"pgregory.net/rapid"
)

// The generators of the property tests draw values that are often equal or close, at the edges above all.

var drawnFloats = []float64{
	0, math.Copysign(0, -1), 0.1, 0.5, 1, 1.5, -1, 3, 1e15, 1e16, 1 << 51, 1<<51 + 0.5, 1 << 52, 1<<52 + 1, 1 << 53, -(1 << 53), 1 << 62, 1 << 63, -(1 << 63),
	1e18, 1e19, 1e22, 1e23, 1e300, -1e300, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 2.2250738585072014e-308, math.Inf(1), math.Inf(-1),
}

var drawnInts = []int64{
	0, 1, -1, 3, 1<<51 - 1, 1 << 51, 1<<51 + 1, 1 << 53, 1<<53 + 1, -(1<<53 + 1), 1e18, 1e18 + 1, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1,
}

var drawnDecimals = []string{
	"9223372036854775808", "-9223372036854775809", "9223372036854775807.5", "4611686018427387904.5", "0.1000000000000000055511151231257827021181583404541015625",
	"0.10000000000000000001", "0.1000000000000000055511151231257827", "1e400", "-1e400", "1e-400", "12345678901234567890", "1e999999998", "-1e-999999998",
	"179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880",
}

func decimalOf(text string) Value {
	v, err := ParseNumber([]byte(text))
	if err != nil {
		panic(err)
	}
	return v
}

func drawNumber() *rapid.Generator[Value] {
	digits := rapid.StringMatching(`-?[1-9][0-9]{0,40}\.[0-9]{0,30}[1-9](e[+-]?[1-9][0-9]{0,2})?`)
	return rapid.OneOf(
		rapid.Map(rapid.SampledFrom(drawnInts), IntValue),
		rapid.Map(rapid.SampledFrom(drawnFloats), FloatValue),
		rapid.Map(rapid.SampledFrom(drawnDecimals), decimalOf),
		rapid.Map(rapid.Int64(), IntValue),
		rapid.Map(rapid.Int64Range(-9, 9), IntValue),
		rapid.Map(rapid.Float64(), FloatValue),
		rapid.Map(rapid.Int64(), func(n int64) Value { return FloatValue(float64(n)) }),
		rapid.Map(digits, decimalOf),
	)
}

func drawText() *rapid.Generator[[]byte] {
	return rapid.Map(rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "a\x00", "abcdefg", "abcdefg\x00", "abcdefgh", "abcdefghi", "Ärger", "\"\\\n\u2028\x7f\x1f", "😀", strings.Repeat("x", 127), strings.Repeat("x", 128), strings.Repeat("é", 9000)}),
		rapid.String(),
	), func(s string) []byte { return []byte(s) })
}

func drawScalar() *rapid.Generator[Value] {
	return rapid.OneOf(
		rapid.Just(Value{}),
		rapid.Map(rapid.Bool(), BoolValue),
		drawNumber(),
		rapid.Map(drawText(), TextValue),
		rapid.Map(rapid.SampledFrom(drawnInts), TimestampValue),
		rapid.Map(drawText(), func(b []byte) Value { return Value{Kind: Bytes, B: b} }),
		drawVector(),
		drawSparse(),
	)
}

var drawnHalves = []float32{0, 1, -1, 0.5, 2, 0.099975586, 65504, -65504, 5.9604645e-8}

// drawVector draws vectors of either width, which are often equal.
func drawVector() *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		number := rapid.SampledFrom(drawnHalves)
		f16 := rapid.Bool().Draw(t, "f16")
		if !f16 {
			number = rapid.OneOf(number, rapid.Float32Range(-math.MaxFloat32, math.MaxFloat32))
		}
		floats := rapid.SliceOfN(number, 1, 40).Draw(t, "numbers")
		return madeVector(f16, floats)
	})
}

func madeVector(f16 bool, floats []float32) Value {
	var b []byte
	for _, f := range floats {
		b = appendFloat32Bytes(b, f)
	}
	raw, err := Type{Kind: TypeVector, Dim: len(floats), F16: f16}.Append(nil, VectorValue(b), "the vector")
	if err != nil {
		panic(err)
	}
	return Raw(raw).Value()
}

// drawSparse draws sparse vectors of few dimensions.
func drawSparse() *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		dim := rapid.IntRange(1, 5).Draw(t, "dim")
		spelled := "{"
		for index, weight := range rapid.MapOfN(rapid.IntRange(1, dim), rapid.SampledFrom(drawnHalves), 0, dim).Draw(t, "weights") {
			if len(spelled) > 1 {
				spelled += ","
			}
			spelled += fmt.Sprintf("%d:%v", index, weight)
		}
		return madeSparse(dim, fmt.Sprintf("%s}/%d", spelled, dim))
	})
}

func madeSparse(dim int, spelled string) Value {
	raw, err := Type{Kind: TypeSparse, Dim: dim}.Append(nil, text(spelled), "the sparse vector")
	if err != nil {
		panic(err)
	}
	return Raw(raw).Value()
}

// drawValue draws values nested up to depth deep.
func drawValue(depth int) *rapid.Generator[Value] {
	if depth == 0 {
		return drawScalar()
	}
	inner := drawValue(depth - 1)
	list := rapid.Map(rapid.SliceOfN(inner, 0, 4), func(items []Value) Value {
		raw, at := OpenList(nil)
		for _, v := range items {
			raw = Append(raw, v)
		}
		return closed(raw, at)
	})
	object := rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"", "a", "aa", "b", "é", "z"}), inner, 0, 4), func(entries map[string]Value) Value {
		raw, at := OpenObject(nil)
		for key, v := range entries {
			raw = Append(AppendKey(raw, key), v)
		}
		return closed(raw, at)
	})
	return rapid.OneOf(inner, list, object)
}

func closed(raw []byte, at int) Value {
	raw, err := Close(raw, at)
	if err != nil {
		panic(err)
	}
	return Raw(raw).Value()
}
