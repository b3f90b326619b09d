package vector

import (
	"math"
	"unsafe"
)

// lanes is the number of running sums of a kernel, block the width of its steps past the last whole round of them.
const (
	lanes = 64
	block = 16
)

func dotGeneric(a, b *float32, n int) float32 {
	x, y := unsafe.Slice(a, n), unsafe.Slice(b, n)
	var sums [lanes]float32
	for len(x) >= lanes {
		dotInto(sums[:], x, y)
		x, y = x[lanes:], y[lanes:]
	}
	for len(x) >= block {
		dotInto(sums[:block], x, y)
		x, y = x[block:], y[block:]
	}
	if len(x) > 0 {
		var p, q [block]float32
		copy(p[:], x)
		copy(q[:], y)
		dotInto(sums[block:2*block], p[:], q[:])
	}
	return reduce(&sums)
}

func l2Generic(a, b *float32, n int) float32 {
	x, y := unsafe.Slice(a, n), unsafe.Slice(b, n)
	var sums [lanes]float32
	for len(x) >= lanes {
		l2Into(sums[:], x, y)
		x, y = x[lanes:], y[lanes:]
	}
	for len(x) >= block {
		l2Into(sums[:block], x, y)
		x, y = x[block:], y[block:]
	}
	if len(x) > 0 {
		var p, q [block]float32
		copy(p[:], x)
		copy(q[:], y)
		l2Into(sums[block:2*block], p[:], q[:])
	}
	return reduce(&sums)
}

func dotInto(sums, x, y []float32) {
	x, y = x[:len(sums)], y[:len(sums)]
	for i, s := range sums {
		sums[i] = fma(x[i], y[i], s)
	}
}

func l2Into(sums, x, y []float32) {
	x, y = x[:len(sums)], y[:len(sums)]
	for i, s := range sums {
		d := x[i] - y[i]
		sums[i] = fma(d, d, s)
	}
}

// reduce adds the sums in the order in which the assembly adds its registers: sixteens crosswise, then halves.
func reduce(sums *[lanes]float32) float32 {
	for i := range 16 {
		sums[i] = (sums[i] + sums[i+16]) + (sums[i+32] + sums[i+48])
	}
	for half := 8; half > 0; half /= 2 {
		for i := range half {
			sums[i] += sums[i+half]
		}
	}
	return sums[0]
}

// fmaGeneric returns x*y + z rounded once. In 64 bits the product is exact; the sum is rounded to odd, which keeps
// enough of it for the second rounding to be correct (Boldo and Melquiond 2008).
func fmaGeneric(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	t := s - p
	rest := (p - (s - t)) + (c - t) // the error of s (Knuth's two-sum)
	if rest == 0 || rest != rest {
		return float32(s)
	}
	if bits := math.Float64bits(s); bits&1 == 0 {
		if (rest > 0) == (s > 0) {
			s = math.Float64frombits(bits + 1)
		} else {
			s = math.Float64frombits(bits - 1)
		}
	}
	return float32(s)
}

func scaleGeneric(dst, v []float32, by float32) {
	for i, x := range v {
		dst[i] = x * by
	}
}

func dotRowsGeneric(query *float32, n int, rows *Matrix[float32], at []uint32, out []float32) {
	for i, r := range at {
		out[i] = dotGeneric(query, &rows.Row(int(r))[0], n)
	}
}

func l2RowsGeneric(query *float32, n int, rows *Matrix[float32], at []uint32, out []float32) {
	for i, r := range at {
		out[i] = l2Generic(query, &rows.Row(int(r))[0], n)
	}
}

func dotInt8Generic(query *int8, n int, rows *Matrix[int8], at []uint32, out []int32) {
	x := unsafe.Slice(query, n)
	for i, r := range at {
		y := rows.Row(int(r))[:n]
		var sum int32
		for j, v := range x {
			sum += int32(v) * int32(y[j])
		}
		out[i] = sum
	}
}
