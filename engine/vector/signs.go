package vector

import (
	"math/bits"
	"slices"
)

// SignSums adds up those numbers of a vector of bytes that rows of bits name: what an inner product with vectors of which only
// the signs are known comes to. The zero value has no numbers. It is for one goroutine.
type SignSums struct {
	biased []uint8  // the numbers and 128, as far as whole words of bits go
	planes []uint64 // of each 64 numbers a word with their lowest bits, one with the next and so on; where there is no assembly
}

// numberBits is the bits of a number.
const numberBits = 8

// Reset makes s add up these numbers from now on.
func (s *SignSums) Reset(numbers []int8) {
	words := (len(numbers) + 63) / 64
	s.biased = slices.Grow(s.biased[:0], 64*words)[:64*words]
	clear(s.biased)
	for i, c := range numbers {
		s.biased[i] = uint8(c) ^ 0x80
	}
	if sumsSigns() {
		return
	}
	s.planes = slices.Grow(s.planes[:0], numberBits*words)[:numberBits*words]
	clear(s.planes)
	for i, c := range numbers {
		for b := range numberBits {
			s.planes[i/64*numberBits+b] |= uint64(uint8(c)>>b&1) << (i % 64)
		}
	}
}

// Rows puts into out[i] the sum of the numbers whose bits are set in the row at[i] of m. A row has a word for each 64 numbers,
// the lowest bit first, and no bit set past the last number.
func (s *SignSums) Rows(m *Matrix[uint64], at []uint32, out []int32) {
	if len(at) == 0 {
		return
	}
	checkRows(m, len(s.biased)/64, at, len(out))
	s.rows(m, at, out)
}

// rowsGeneric adds up eight words of bits of the numbers at a time (Gao and Long, RaBitQ, 2024, section 3.3.2).
func (s *SignSums) rowsGeneric(m *Matrix[uint64], at []uint32, out []int32) {
	for i, r := range at {
		sum := 0
		for j, w := range m.Row(int(r))[:len(s.biased)/64] {
			p := (*[numberBits]uint64)(s.planes[j*numberBits:])
			for b := range numberBits - 1 {
				sum += bits.OnesCount64(w&p[b]) << b
			}
			sum -= bits.OnesCount64(w&p[numberBits-1]) << (numberBits - 1)
		}
		out[i] = int32(sum)
	}
}
