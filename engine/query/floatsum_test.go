package query

import (
	"math"
	"math/big"
	"testing"

	"fenec/engine/doc"

	"pgregory.net/rapid"
)

// summed is the sum and the average of floats, as rows of one collection hold them.
func summed(t testing.TB, values ...float64) (sum, mean doc.Value, fits bool) {
	schema := &doc.Schema{Fields: []doc.Field{{Name: "x", Type: doc.Type{Kind: doc.TypeFloat}}}, Slots: 1}
	add, avg := &floatTally{column: &column{}}, &floatTally{column: &column{}, mean: true}
	add.open()
	avg.open()
	var b doc.Builder
	for i, x := range values {
		b.Reset(schema.Slots)
		if err := b.Set(0, schema.Fields[0].Type, doc.FloatValue(x), "x"); err != nil {
			t.Fatal(err)
		}
		d := doc.Document(b.AppendTo(nil, int64(i+1)))
		add.add(0, d)
		avg.add(0, d)
	}
	sum, fits = add.value(0)
	mean, _ = avg.value(0)
	return sum, mean, fits
}

func TestFloatsAreSummedWithWhatEachAdditionRoundsAway(t *testing.T) {
	const large, most = 1e308, math.MaxFloat64
	tenths := make([]float64, 10)
	for i := range tenths {
		tenths[i] = 0.1
	}
	for _, tc := range []struct {
		name   string
		values []float64
		want   float64
		fits   bool
	}{
		{"ten tenths are one", tenths, 1, true},
		{"what is small beside the sum counts", []float64{1e100, 1, -1e100}, 1, true},
		{"what comes before the large one counts", []float64{1, 1e100, 1, -1e100}, 2, true},
		{"the least float counts", []float64{1, 5e-324, -1}, 5e-324, true},
		{"a sum that passes the range and comes back", []float64{large, large, -large}, large, true},
		{"one that passes it twice, above and below", []float64{large, large, -large, -large, -large, -large, large, large, 1}, 1, true},
		{"one that passes it and keeps what is small", []float64{most, 1, most, -most, -most}, 1, true},
		{"one that ends at the last float", []float64{most, most, -most}, most, true},
		{"one that ends past it", []float64{large, large}, 0, false},
		{"one that ends past it below", []float64{-most, 3, -most}, 0, false},
		{"one that the small ones take past it", []float64{most, 0x1p970, 0x1p969, 0x1p969}, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sum, mean, fits := summed(t, tc.values...)
			if fits != tc.fits || fits && sum.Float() != tc.want {
				t.Fatalf("the sum is %v, fits %v, want %v, %v", sum.Float(), fits, tc.want, tc.fits)
			}
			if want := tc.want / float64(len(tc.values)); fits && mean.Float() != want {
				t.Errorf("the average is %v, want %v", mean.Float(), want)
			}
		})
	}
}

func TestASumOfFloatsIsTheirSum(t *testing.T) {
	ordinary := rapid.Float64Range(-1000, 1000)
	extreme := rapid.SampledFrom([]float64{1e308, -1e308, math.MaxFloat64, -math.MaxFloat64, 1, -1, 5e-324, 1e-300, 0x1p970, 0.1})
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(ordinary, extreme, rapid.Float64()), 1, 40).Draw(rt, "values")
		exact, size := new(big.Float).SetPrec(exactBits), new(big.Float).SetPrec(exactBits)
		for _, x := range values {
			exact.Add(exact, big.NewFloat(x))
			size.Add(size, big.NewFloat(math.Abs(x)))
		}
		want, _ := exact.Float64()
		// Neumaier: off by a rounding of the sum, and by n^2 u^2 of what was added.
		n := float64(len(values))
		bound := new(big.Float).SetPrec(exactBits).Mul(size, big.NewFloat(n*n*0x1p-106))
		bound.Add(bound, new(big.Float).SetPrec(exactBits).Mul(new(big.Float).Abs(exact), big.NewFloat(0x1p-53)))
		bound.Add(bound, big.NewFloat(5e-324))
		sum, _, fits := summed(t, values...)
		// From the last float and half of its last bit on a sum is past the range; so near to that as the bound, either answers.
		edge := new(big.Float).SetPrec(exactBits).Add(big.NewFloat(math.MaxFloat64), big.NewFloat(0x1p970))
		edge.Sub(edge, new(big.Float).Abs(exact))
		if math.IsInf(want, 0) == fits && edge.Abs(edge).Cmp(bound) > 0 {
			rt.Fatalf("%v fits: %v, and the sum is %v", values, fits, want)
		}
		off := new(big.Float).SetPrec(exactBits).Sub(exact, big.NewFloat(sum.Float()))
		if fits && off.Abs(off).Cmp(bound) > 0 {
			rt.Fatalf("%v is %v, want %v", values, sum.Float(), want)
		}
	})
}
