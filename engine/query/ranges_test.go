package query

import (
	"math"
	"strconv"
	"testing"

	"fenec/engine/doc"

	"pgregory.net/rapid"
)

// anyNumber draws an int, a float or a decimal, most of them near to where ints and floats part.
func anyNumber(t *rapid.T, label string) doc.Value {
	edge := rapid.SampledFrom([]float64{0, 1, 1.5, 1 << 53, 1<<53 + 2, 1 << 62, 1 << 63, math.MaxFloat64, 5e-324, 0.1}).Draw(t, label+" edge")
	switch rapid.IntRange(0, 3).Draw(t, label+" kind") {
	case 0:
		return doc.IntValue(rapid.OneOf(rapid.Int64(), rapid.Int64Range(1<<53-3, 1<<53+3), rapid.Int64Range(math.MaxInt64-3, math.MaxInt64)).Draw(t, label))
	case 1:
		return doc.FloatValue(rapid.OneOf(rapid.Just(edge), rapid.Just(-edge), rapid.Float64()).Draw(t, label) + 0)
	}
	digits := strconv.FormatFloat(edge, 'e', 40, 64)
	if rapid.Bool().Draw(t, label+" off") {
		digits = digits[:25] + rapid.SampledFrom([]string{"1", "9"}).Draw(t, label+" digit") + digits[26:]
	}
	v, err := doc.ParseNumber([]byte(digits))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRangesHoldTheNumbersThatARelationHoldsFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyNumber(t, "constant")
		rel := rapid.SampledFrom([]relation{equal, less | greater, less, less | equal, greater, greater | equal}).Draw(t, "relation")
		inside := rel != less|greater
		n := rapid.OneOf(rapid.Int64(), rapid.Int64Range(1<<53-3, 1<<53+3), rapid.SampledFrom([]int64{0, 1, 2, math.MinInt64, math.MaxInt64})).Draw(t, "int")
		first, last := intRange(rel, v)
		if want := rel.holds(doc.Compare(doc.IntValue(n), v)); (n >= first && n <= last) == inside != want {
			t.Fatalf("%d and %s by %b: in %d to %d, want %v", n, doc.Describe(v), rel, first, last, want)
		}
		x := v.Float64()
		switch rapid.IntRange(0, 3).Draw(t, "float") {
		case 0:
			x = math.Nextafter(x, math.Inf(1))
		case 1:
			x = math.Nextafter(x, math.Inf(-1))
		case 2:
			x = rapid.Float64().Draw(t, "any float")
		}
		if math.IsInf(x, 0) {
			return // none is stored
		}
		low, high := floatRange(rel, v)
		if want := rel.holds(doc.Compare(doc.FloatValue(x), v)); (x >= low && x <= high) == inside != want {
			t.Fatalf("%v and %s by %b: in %v to %v, want %v", x, doc.Describe(v), rel, low, high, want)
		}
	})
}
