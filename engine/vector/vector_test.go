package vector

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestFMARoundsOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	float := func() float32 {
		for {
			// Any bits, and often an exponent near to that of the others, for which rounding is hard.
			bits := r.Uint32()
			if r.IntN(4) > 0 {
				bits = bits&0x807fffff | uint32(120+r.IntN(16))<<23
			}
			if r.IntN(4) == 0 {
				bits &^= 0xfff // few digits, so that sums end halfway between two floats
			}
			if f := math.Float32frombits(bits); f-f == 0 {
				return f
			}
		}
	}
	exact := func(f float32) *big.Float { return new(big.Float).SetPrec(2000).SetFloat64(float64(f)) }
	for range 200_000 {
		x, y, z := float(), float(), float()
		sum := new(big.Float).SetPrec(2000).Mul(exact(x), exact(y))
		sum.Add(sum, exact(z))
		want, _ := sum.Float32()
		if got := fma(x, y, z); got != want {
			t.Fatalf("%x*%x + %x is %x, want %x", x, y, z, got, want)
		}
		if got := fmaGeneric(x, y, z); got != want {
			t.Fatalf("%x*%x + %x in 64 bits is %x, want %x", x, y, z, got, want)
		}
	}
}

// score returns the score of v against query.
func score(m Metric, query, v []float32) float32 {
	var s Scorer
	s.Reset(m, query)
	return s.Score(v)
}

func TestScoresAreFinite(t *testing.T) {
	const huge = math.MaxFloat32
	for name, c := range map[string]struct {
		got, want float32
	}{
		"the distance of opposite ends":           {score(L2, []float32{huge, huge}, []float32{-huge, -huge}), huge},
		"a distance whose square is past a float": {score(L2, []float32{3e30}, []float32{-1e30}), 4e30},
		"a distance":                              {score(L2, []float32{1, 2}, []float32{4, 6}), 5},
		"the length of a huge vector":             {Norm([]float32{3e30, 4e30}), 5e30},
		"the length of a tiny one":                {Norm([]float32{3e-30, 4e-30}), 5e-30},
		"the cosine of huge ones":                 {score(Cosine, []float32{huge, 0}, []float32{huge, 0}), 1},
		"the cosine of tiny ones":                 {score(Cosine, []float32{1e-44, 0}, []float32{-1e-44, 0}), -1},
		"the cosine with a vector of length 0":    {score(Cosine, []float32{0, 0}, []float32{1, 2}), 0},
		"a dot product past a float":              {score(DotProduct, []float32{huge, huge}, []float32{huge, huge}), huge},
		"a dot product of two such that are even": {score(DotProduct, []float32{huge, huge}, []float32{huge, -huge}), 0},
		"a score by l2":                           {score(L2, []float32{1, 2}, []float32{4, 6}), 5},
		"nothing":                                 {Dot(nil, nil) + L2Squared(nil, nil), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s is %v, want %v", name, c.got, c.want)
		}
	}
}

func TestNormalizeInPlace(t *testing.T) {
	v := []float32{3, 4}
	if got := Normalize(v[:0], v); !slices.Equal(got, []float32{0.6, 0.8}) || &got[0] != &v[0] {
		t.Errorf("3, 4 at length 1 is %v, want 0.6, 0.8 in place", got)
	}
}

func TestViewOfAnyAddress(t *testing.T) {
	want := []float32{1.5, -2, 3e-20}
	for at := range 8 {
		b := make([]byte, at, 64)
		for _, x := range want {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		if got := View(b[at:]); !slices.Equal(got, want) {
			t.Errorf("floats at offset %d are %v, want %v", at, got, want)
		}
	}
	if got := View(nil); got != nil {
		t.Errorf("the floats of nothing are %v", got)
	}
}

func TestCheckedRows(t *testing.T) {
	m := NewMatrix[float32](4)
	m.Grow(3)
	for name, call := range map[string]func(){
		"a row past the last":  func() { DotRows(make([]float32, 4), m, []uint32{3}, make([]float32, 1)) },
		"too long a query":     func() { L2SquaredRows(make([]float32, 5), m, []uint32{0}, make([]float32, 1)) },
		"too little room":      func() { DotRows(make([]float32, 4), m, []uint32{0, 1}, make([]float32, 1)) },
		"two unequal lengths":  func() { Dot(make([]float32, 4), make([]float32, 3)) },
		"two, the first short": func() { L2Squared(make([]float32, 3), make([]float32, 2)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

func TestRowsStayWhereTheyAreAndLittleIsEmpty(t *testing.T) {
	m := NewMatrix[float32](128)
	for i := range 30_000 {
		m.Grow(1)
		m.Row(i)[0], m.Row(i)[127] = float32(i), float32(-i)
	}
	for i := range 30_000 {
		if row := m.Row(i); len(row) != 128 || row[0] != float32(i) || row[127] != float32(-i) {
			t.Fatalf("row %d is %v … %v", i, row[0], row[127])
		}
	}
	if got, most := m.Bytes(), int64(30_000*512*21/20); got > most {
		t.Errorf("30,000 rows of 512 bytes take %d, want at most %d", got, most)
	}
	exact := NewMatrix[float32](128)
	exact.Reserve(30_000)
	if got, most := exact.Bytes(), int64(30_000*512+4096); got > most {
		t.Errorf("room for 30,000 rows of 512 bytes takes %d, want at most %d", got, most)
	}
}
