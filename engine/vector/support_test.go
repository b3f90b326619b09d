package vector

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// unaligned returns n random numbers at an address that is a multiple of 4 and, mostly, of nothing more.
func unaligned(r *rand.Rand, n int) []float32 {
	at := r.IntN(16)
	v := make([]float32, at+n+16)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v[at : at+n : at+n]
}

// extreme is unaligned with very different magnitudes, zeros of both signs and subnormals.
func extreme(r *rand.Rand, n int) []float32 {
	v := unaligned(r, n)
	for i := range v {
		switch r.IntN(8) {
		case 0:
			v[i] = float32(math.Copysign(0, float64(v[i])))
		case 1:
			v[i] *= 1e-40
		default:
			v[i] *= float32(math.Exp2(float64(r.IntN(60) - 30)))
		}
	}
	return v
}

// matrixOf returns more rows of n numbers than a chunk of their width may hold, and some of their numbers.
func matrixOf(r *rand.Rand, n, some int) (*Matrix[float32], []uint32) {
	m := NewMatrix[float32](n)
	m.shift = 2 // many chunks
	for i := range 23 {
		m.Grow(1)
		copy(m.Row(i), extreme(r, n))
	}
	at := make([]uint32, some)
	for i := range at {
		at[i] = uint32(r.IntN(23))
	}
	return m, at
}

// codesOf returns a code of n bytes, and rows of them with something after it.
func codesOf(r *rand.Rand, n, rows int) ([]int8, *Matrix[int8]) {
	m := NewMatrix[int8](n + 4)
	m.Grow(max(rows, 23))
	for i := range m.Len() {
		for j := range m.Row(i) {
			m.Row(i)[j] = int8(r.IntN(256) - 128)
		}
	}
	code := make([]int8, n)
	for i := range code {
		code[i] = int8(r.IntN(255) - 127)
	}
	return code, m
}

// memory returns v's bytes.
func memory(v []float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v)) }
