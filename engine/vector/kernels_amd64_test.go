package vector

import (
	"math"
	"math/rand/v2"
	"testing"
)

// eachKernel runs a test with every set of kernels that the processor can run.
func eachKernel(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	for f := generic; f <= best; f++ {
		using = f
		t.Run([]string{"generic", "avx2", "avx512"}[f], run)
	}
	using = best
}

// unaligned is n random numbers at an address that is a multiple of 4 and, mostly, of nothing more.
func unaligned(r *rand.Rand, n int) []float32 {
	at := r.IntN(16)
	v := make([]float32, at+n+16)
	for i := range v {
		v[i] = float32(r.NormFloat64()) * float32(math.Exp2(float64(r.IntN(40)-20)))
	}
	return v[at : at+n : at+n]
}

func TestKernelsAgreeBitForBit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 400; n++ {
		for range 5 {
			a, b := unaligned(r, n), unaligned(r, n)
			if r.IntN(4) == 0 {
				a[r.IntN(n)] = 1e-40 // subnormal, and signs of zeros
				b[r.IntN(n)] = -1e-30
			}
			using = generic
			dot, l2 := Dot(a, b), L2Squared(a, b)
			for using = generic; using <= best; using++ {
				if got := Dot(a, b); math.Float32bits(got) != math.Float32bits(dot) {
					t.Fatalf("kernels %d: the dot product of %d is %x, in Go it is %x", using, n, got, dot)
				}
				if got := L2Squared(a, b); math.Float32bits(got) != math.Float32bits(l2) {
					t.Fatalf("kernels %d: the squared distance of %d is %x, in Go it is %x", using, n, got, l2)
				}
			}
		}
	}
	using = best
}
