package hnsw

import (
	"bytes"
	"math"
	"slices"
	"unsafe"

	"fenec/engine/vector"
)

// space holds the nodes' vectors, or their codes, and measures raw distances between them: the square of the Euclidean
// distance or the negated dot product; lower is nearer. By codes they are estimates.
type space struct {
	Options
	rows  *vector.Matrix[float32] // if nothing is quantised
	signs *vector.Matrix[uint64]  // for long rows: whether each component is negative
	codes *vector.Matrix[int8]    // Int8: see encode
	bit   *bitCodes               // Bit
	room  []float32               // of set
}

// leastSigned is the least number of components of vectors whose signs are stored too, which takes a 32nd of their size or a
// little more. Shorter ones are measured as fast as signs are read.
const leastSigned = 64

// target is the vector from which distances are measured.
type target struct {
	floats []float32
	codes  []int8
	scale  float32
	square float32
	signed vector.SignSums
	sums   []int32 // of the last measure
	buf    []int8

	signs       []uint64 // of a node, by bits
	coded       bool     // a query, by bits: measured by signed, not signs
	along       float32  // see centre.residual
	slope, base float32  // with the sum of signed they give an inner product, up to the scale of a code
	residual    []float32
}

func newSpace(o Options) space {
	s := space{Options: o}
	switch o.Quant {
	case vector.Int8:
		s.codes = vector.NewMatrix[int8](s.codeWidth() + s.factors()*4)
	case vector.Bit:
		s.bit = newBitCodes(o)
	default:
		s.rows = vector.NewMatrix[float32](o.Dim)
		if o.Dim >= leastSigned {
			s.signs = vector.NewMatrix[uint64](wordsOf(o.Dim))
		}
	}
	return s
}

func (s *space) bytes() int64 {
	switch s.Quant {
	case vector.Int8:
		return s.codes.Bytes()
	case vector.Bit:
		return s.bit.bytes()
	}
	if s.signs != nil {
		return s.rows.Bytes() + s.signs.Bytes()
	}
	return s.rows.Bytes()
}

func (s *space) reserve(n int) {
	switch s.Quant {
	case vector.Int8:
		s.codes.Reserve(n)
	case vector.Bit:
		s.bit.rows.Reserve(n)
	default:
		s.rows.Reserve(n)
		if s.signs != nil {
			s.signs.Reserve(n)
		}
	}
}

// prepare appends v to dst as the graph holds it: at length 1 if the metric is the cosine, and without signs on zeros, so
// that vectors are equal exactly if their bytes are.
func (s *space) prepare(dst, v []float32) []float32 {
	at := len(dst)
	if s.Metric == vector.Cosine {
		dst = vector.Normalize(dst, v)
	} else {
		dst = append(dst, v...)
	}
	for i, x := range dst[at:] {
		if x == 0 {
			dst[at+i] = 0
		}
	}
	return dst
}

// grow adds a row.
func (s *space) grow() {
	switch s.Quant {
	case vector.Int8:
		s.codes.Grow(1)
	case vector.Bit:
		s.bit.rows.Grow(1)
	default:
		s.rows.Grow(1)
		if s.signs != nil {
			s.signs.Grow(1)
		}
	}
}

// set stores v, prepared, as the vector of a node.
func (s *space) set(node int, v []float32) {
	switch s.Quant {
	case vector.Int8:
		row := s.codes.Row(node)
		f := s.encode(row[:s.codeWidth()], v)
		copy(factorsIn(row, s.codeWidth()), f[:])
	case vector.Bit:
		s.room = s.bit.encode(s.bit.rows.Row(node), v, s.room)
	default:
		copy(s.rows.Row(node), v)
		if s.signs != nil {
			signs(s.signs.Row(node), v)
		}
	}
}

// codeWidth returns the bytes of an Int8 code, a multiple of 16.
func (s *space) codeWidth() int { return (s.Dim + 15) &^ 15 }

// factors returns the number of floats after an Int8 code: the size of a step, and for the Euclidean distance the square of
// the vector's length.
func (s *space) factors() int {
	if s.Metric == vector.L2 {
		return 2
	}
	return 1
}

// factorsIn returns the floats after a code of width bytes; width is a multiple of 16, which keeps them aligned.
func factorsIn(row []int8, width int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&row[width])), (len(row)-width)/4)
}

// encode rounds v to numbers from -127 to 127. Its largest component becomes 127 or -127.
func (s *space) encode(code []int8, v []float32) (factors [2]float32) {
	var largest float32
	for _, x := range v {
		largest = max(largest, x, -x)
	}
	factors[0] = largest / 127
	if s.factors() == 2 {
		factors[1] = vector.Dot(v, v)
	}
	clear(code)
	if largest == 0 {
		return factors
	}
	scale := 127 / float64(largest)
	for i, x := range v {
		code[i] = int8(math.RoundToEven(float64(x) * scale))
	}
	return factors
}

func signs(words []uint64, v []float32) {
	clear(words)
	for i, x := range v {
		words[i/64] |= uint64(math.Float32bits(x)>>31) << (i % 64)
	}
}

// encodes reports whether v, prepared, has the code that the node has.
func (s *space) encodes(node int, v []float32) bool {
	if s.Quant == vector.Bit {
		row := make([]uint64, s.bit.words+1)
		s.bit.encode(row, v, nil)
		return slices.Equal(row, s.bit.rows.Row(node))
	}
	row := s.codes.Row(node)
	code := make([]int8, s.codeWidth())
	f := s.encode(code, v)
	return equalMemory(code, row[:len(code)]) && equalMemory(f[:s.factors()], factorsIn(row, len(code)))
}

// wordsOf returns how many words the signs of a vector take.
func wordsOf(dim int) int { return (dim + 63) / 64 }

func equalMemory[T any](a, b []T) bool {
	size := len(a) * int(unsafe.Sizeof(a[0]))
	return bytes.Equal(unsafe.Slice((*byte)(unsafe.Pointer(&a[0])), size), unsafe.Slice((*byte)(unsafe.Pointer(&b[0])), size))
}

// aim makes v, prepared, the target of measurements.
func (s *space) aim(t *target, v []float32) {
	switch s.Quant {
	case vector.Int8:
		t.buf = slices.Grow(t.buf[:0], s.codeWidth())[:s.codeWidth()]
		f := s.encode(t.buf, v)
		t.codes, t.scale, t.square = t.buf, f[0], f[1]
	case vector.Bit:
		s.bit.aim(t, s, v)
	default:
		t.floats = v
	}
}

// aimAt makes a node the target of measurements.
func (s *space) aimAt(t *target, node int) {
	switch s.Quant {
	case vector.Int8:
		row := s.codes.Row(node)
		t.codes = row[:s.codeWidth()]
		f := factorsIn(row, len(t.codes))
		t.scale, t.square = f[0], f[len(f)-1]
	case vector.Bit:
		t.signs, t.coded = s.bit.rows.Row(node), false
	default:
		t.floats = s.rows.Row(node)
	}
}

// measure stores the distance of each node in out, which has the same length.
func (s *space) measure(t *target, nodes []uint32, out []float32) {
	switch {
	case s.Quant == vector.Int8:
		s.measureInt8(t, nodes, out)
	case s.Quant == vector.Bit:
		s.bit.measure(t, nodes, out)
	case s.Metric == vector.L2:
		vector.L2SquaredRows(t.floats, s.rows, nodes, out)
	default:
		vector.DotRows(t.floats, s.rows, nodes, out)
		for i, d := range out[:len(nodes)] {
			out[i] = -d
		}
	}
}

// aimSigned makes v the target of measurements of signs, and returns the size of a step of its sums.
func (s *space) aimSigned(t *target, v []float32) float32 {
	t.buf = slices.Grow(t.buf[:0], s.codeWidth())[:s.codeWidth()]
	f := s.encode(t.buf, v)
	t.signed.Reset(t.buf[:s.Dim])
	return f[0]
}

// sumsOf returns the buffer for the sums of n nodes.
func (t *target) sumsOf(n int) []int32 {
	if cap(t.sums) < n {
		t.sums = make([]int32, n)
	}
	return t.sums[:n]
}

func (s *space) measureInt8(t *target, nodes []uint32, out []float32) {
	sums := t.sumsOf(len(nodes))
	vector.DotInt8Rows(t.codes, s.codes, nodes, sums)
	width := s.codeWidth()
	for i, n := range nodes {
		f := factorsIn(s.codes.Row(int(n)), width)
		dot := float32(sums[i]) * t.scale * f[0]
		if s.Metric == vector.L2 {
			out[i] = t.square + f[1] - 2*dot
		} else {
			out[i] = -dot
		}
	}
}
