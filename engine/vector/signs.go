package vector

import (
	"math/bits"
	"slices"
)

// SignSums sums those numbers of a vector of int8 whose bits are set in a row: an inner product with vectors of which only the
// signs are known. The zero value has no numbers. It is not safe for concurrent use.
type SignSums struct {
	biased []uint8  // the numbers plus 128, padded to whole words of bits
	planes []uint64 // without assembly: for each 64 numbers a word with their lowest bits, one with the next and so on
}

// numberBits is the number of bits of a number.
const numberBits = 8

// Reset sets the numbers of s.
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

// Rows stores in out[i] the sum of the numbers whose bits are set in the row at[i] of m. A row has a word for each 64 numbers,
// the lowest bit first, and no bit set past the last number.
func (s *SignSums) Rows(m *Matrix[uint64], at []uint32, out []int32) {
	if len(at) == 0 {
		return
	}
	checkRows(m, len(s.biased)/64, at, len(out))
	s.rows(m, at, out)
}

// rowsGeneric sums bit plane by bit plane, eight words of bits of the numbers at a time (Gao and Long, RaBitQ, 2024, section
// 3.3.2).
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
