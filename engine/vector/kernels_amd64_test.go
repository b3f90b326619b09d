package vector

import (
	"math"
	"math/rand/v2"
	"testing"
)

// eachKernel runs a test with every set of kernels that the processor can run.
func eachKernel(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	defer func() { using = best }()
	for using = generic; using <= best; using++ {
		t.Run([]string{"generic", "avx2", "avx512"}[using], run)
	}
}

func TestKernelsAgreeBitForBit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 300; n++ {
		a, b := extreme(r, n), extreme(r, n)
		m, at := matrixOf(r, n, 9)
		code, codes := codesOf(r, (n+15)&^15, 9)
		type answers struct {
			pair   [2]float32
			dots   [9]float32
			l2s    [9]float32
			coded  [9]int32
			halves [300]float32
			unit   [300]float32
		}
		var want answers
		defer func() { using = best }()
		for using = generic; using <= best; using++ {
			var got answers
			got.pair = [2]float32{Dot(a, b), L2Squared(a, b)}
			DotRows(a, m, at, got.dots[:])
			L2SquaredRows(a, m, at, got.l2s[:])
			DotInt8Rows(code, codes, at, got.coded[:])
			copy(got.halves[:], FromF16(nil, memory(a)[:2*n]))
			clearNaNs(got.halves[:])
			copy(got.unit[:], Normalize(nil, a))
			if using == generic {
				want = got
			} else if got != want {
				t.Fatalf("length %d: kernels %d answer\n%v, in Go it is\n%v", n, using, got, want)
			}
			for i, row := range at {
				if one := Dot(a, m.Row(int(row))); math.Float32bits(one) != math.Float32bits(got.dots[i]) {
					t.Fatalf("length %d: kernels %d answer %v for a row, %v for the vector", n, using, got.dots[i], one)
				}
			}
		}
		using = best
	}
}

// clearNaNs makes numbers comparable: a NaN differs from itself.
func clearNaNs(v []float32) {
	for i, x := range v {
		if x != x {
			v[i] = 0
		}
	}
}

func TestKernelsAreNearTheExactSums(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for range 500 {
			n := 1 + r.IntN(2000)
			a, b := unaligned(r, n), unaligned(r, n)
			var dot, l2, size float64
			for i, x := range a {
				p := float64(x) * float64(b[i])
				d := float64(x) - float64(b[i])
				dot, l2, size = dot+p, l2+d*d, size+math.Abs(p)
			}
			if got := Dot(a, b); math.Abs(float64(got)-dot) > 1e-6*size {
				t.Fatalf("dot product of %d: %v, want %v", n, got, dot)
			}
			if got := L2Squared(a, b); math.Abs(float64(got)-l2) > 1e-6*l2 {
				t.Fatalf("squared distance of %d: %v, want %v", n, got, l2)
			}
		}
	})
}

func TestSignSumsAddUpWhatIsSet(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(8, 9))
		var s SignSums
		for n := 1; n < 300; n++ {
			numbers := make([]int8, n)
			for i := range numbers {
				numbers[i] = int8(r.IntN(256) - 128)
			}
			m := NewMatrix[uint64]((n+63)/64 + r.IntN(2)) // rows may be longer
			m.shift = 2
			m.Grow(23)
			at, want := make([]uint32, 9), make([]int32, 9)
			for i := range at {
				at[i] = uint32(r.IntN(m.Len()))
				clear(m.Row(int(at[i])))
			}
			for _, row := range at {
				for j := range numbers {
					m.Row(int(row))[j/64] |= r.Uint64N(2) << (j % 64)
				}
			}
			for i, row := range at {
				for j, c := range numbers {
					want[i] += int32(c) * int32(m.Row(int(row))[j/64]>>(j%64)&1)
				}
			}
			s.Reset(numbers)
			got := make([]int32, 9)
			s.Rows(m, at, got)
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("of %d numbers: row %d adds up to %d, want %d", n, at[i], got[i], want[i])
				}
			}
		}
	})
}

func BenchmarkScore(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	q, v := unaligned(r, 128), unaligned(r, 128)
	for _, m := range []Metric{Cosine, L2, DotProduct} {
		var s Scorer
		s.Reset(m, q)
		b.Run(m.String(), func(b *testing.B) {
			for b.Loop() {
				s.Score(v)
			}
		})
	}
}

func BenchmarkDot(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{128, 768} {
		x, y := unaligned(r, n), unaligned(r, n)
		b.Run(map[int]string{128: "128", 768: "768"}[n], func(b *testing.B) {
			for b.Loop() {
				Dot(x, y)
			}
		})
	}
}

func BenchmarkSignSums(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{128, 768} {
		m := NewMatrix[uint64](n / 64)
		m.Grow(1 << 14)
		at := make([]uint32, m.Len())
		for i := range at {
			at[i] = uint32(i)
			for j := range m.Row(i) {
				m.Row(i)[j] = r.Uint64()
			}
		}
		var s SignSums
		s.Reset(make([]int8, n))
		out := make([]int32, len(at))
		b.Run(map[int]string{128: "128", 768: "768"}[n], func(b *testing.B) {
			for b.Loop() {
				s.Rows(m, at, out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(at)), "ns/row")
		})
	}
}
