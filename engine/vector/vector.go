// Package vector computes on vectors of 32-bit floats: dot products, Euclidean distances and cosines, half precision,
// and rows of vectors in memory that are measured many at a time.
//
// The kernels are in assembly if the processor has AVX2 and FMA, or AVX-512, and in Go otherwise. All of them add in
// the same order: sixty-four running sums, element i in sum i mod 64 as long as there are whole blocks of 64, then
// blocks of 16 in the first sixteen sums, then the rest, padded with zeros, in the next sixteen; the sums are added in
// halves. Each step is a fused multiply-add, rounded once. So a score is the same number on every machine.
//
// Nothing here starts a goroutine or takes a lock.
package vector

import (
	"math"
	"slices"
)

// Dot returns the dot product of a and b, which have the same length.
func Dot(a, b []float32) float32 {
	b = b[:len(a)]
	if len(a) == 0 {
		return 0
	}
	return dot(&a[0], &b[0], len(a))
}

// L2Squared returns the square of the Euclidean distance of a and b, which have the same length.
func L2Squared(a, b []float32) float32 {
	b = b[:len(a)]
	if len(a) == 0 {
		return 0
	}
	return l2(&a[0], &b[0], len(a))
}

// distance returns the root of the squared distance of a and b. If the square is past what a float holds, it returns
// the root of a wider sum.
func distance(squared float32, a, b []float32) float32 {
	if squared <= math.MaxFloat32 {
		return float32(math.Sqrt(float64(squared)))
	}
	var sum float64
	for i, x := range a {
		d := float64(x) - float64(b[i])
		sum += d * d
	}
	return finite(math.Sqrt(sum))
}

// finite returns the nearest finite float.
func finite(x float64) float32 { return float32(max(-math.MaxFloat32, min(x, math.MaxFloat32))) }

// Norm returns the Euclidean length of v. It is finite if v is.
func Norm(v []float32) float32 { return finite(norm(v)) }

// norm returns the Euclidean length of v, computed in 64 bits if the sum of squares is past what 32 bits hold or loses
// digits there.
func norm(v []float32) float64 {
	const tiny = 1e-30
	if s := Dot(v, v); s >= tiny && s <= math.MaxFloat32 {
		return math.Sqrt(float64(s))
	}
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// Normalize appends to dst v scaled to length 1, or zeros if its length is 0. dst may be v[:0].
func Normalize(dst, v []float32) []float32 {
	at := len(dst)
	dst = slices.Grow(dst, len(v))[:at+len(v)]
	out := dst[at:]
	n := norm(v)
	if n == 0 {
		clear(out)
		return dst
	}
	if by := 1 / n; by >= smallest && by <= math.MaxFloat32 {
		scale(out, v, float32(by))
	} else {
		for i, x := range v {
			out[i] = float32(float64(x) * by)
		}
	}
	return dst
}

// smallest is the smallest float with all its digits.
const smallest = 0x1p-126
