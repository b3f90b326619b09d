package vector

import (
	"encoding/binary"
	"math"
)

// FromF16 appends to dst the half-precision floats (IEEE 754 binary16) in b, little-endian, two bytes each.
func FromF16(dst []float32, b []byte) []float32 {
	at := len(dst)
	n := len(b) / 2
	if cap(dst)-at < n {
		dst = append(dst, make([]float32, n)...)
	} else {
		dst = dst[:at+n]
	}
	out := dst[at:]
	for i := fromF16Blocks(out, b); i < n; i++ {
		out[i] = fromF16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return dst
}

func fromF16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent := uint32(h>>10) & 0x1f
	fraction := uint32(h & 0x3ff)
	switch exponent {
	case 0: // zero, or subnormal: fraction * 2^-24, which a float holds exactly
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*(1.0/(1<<24))))
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// AppendF16 appends v as half-precision floats, little-endian, each rounded to the nearest, ties to even. If one is
// past the largest, 65504, once rounded, it returns dst unchanged with the place of that one; otherwise the place is
// -1.
func AppendF16(dst []byte, v []float32) (_ []byte, overflow int) {
	at := len(dst)
	for i, x := range v {
		h, ok := toF16(x)
		if !ok {
			return dst[:at], i
		}
		dst = binary.LittleEndian.AppendUint16(dst, h)
	}
	return dst, -1
}

// toF16 returns false if x is infinite once rounded, or not a number.
func toF16(x float32) (uint16, bool) {
	bits := math.Float32bits(x)
	sign := uint16(bits>>16) & 0x8000
	bits &^= 1 << 31
	if bits < (127-14)<<23 {
		// Subnormal: a sum with 1/2 leaves the fraction, rounded, in the low bits.
		sum := math.Float32frombits(bits) + 0.5
		return sign | uint16(math.Float32bits(sum)-math.Float32bits(0.5)), true
	}
	bits += 0xfff + bits>>13&1
	bits -= (127 - 15) << 23
	if bits >= 0x1f<<23 {
		return 0, false
	}
	return sign | uint16(bits>>13), true
}
