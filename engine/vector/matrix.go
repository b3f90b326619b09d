package vector

import (
	"math/bits"
	"unsafe"
)

// Matrix is rows of one width, in chunks without pointers. Rows are added and never move, except those of the last
// chunk, which doubles until it is full; so a matrix is never copied as a whole, and little of it is empty.
type Matrix[T int8 | uint32 | uint64 | float32] struct {
	chunks [][]T
	n      int
	width  int
	shift  uint // a full chunk has 1<<shift rows
}

// chunkBytes is about the size of a full chunk; smallestChunk is how many rows a matrix's first chunk has room for.
const (
	chunkBytes    = 1 << 20
	smallestChunk = 4
)

// NewMatrix returns a matrix without rows. width is the length of a row, at least 1.
func NewMatrix[T int8 | uint32 | uint64 | float32](width int) *Matrix[T] {
	var zero T
	rows := max(chunkBytes/(width*int(unsafe.Sizeof(zero))), smallestChunk)
	return &Matrix[T]{width: width, shift: uint(bits.Len(uint(rows)) - 1)}
}

// Len returns the number of rows.
func (m *Matrix[T]) Len() int { return m.n }

// Bytes returns the memory held in bytes.
func (m *Matrix[T]) Bytes() int64 {
	var zero T
	n := int64(cap(m.chunks)) * int64(unsafe.Sizeof([]T{}))
	for _, c := range m.chunks {
		n += int64(cap(c)) * int64(unsafe.Sizeof(zero))
	}
	return n
}

// Row returns row i. It may be written to.
func (m *Matrix[T]) Row(i int) []T {
	at := (i & (1<<m.shift - 1)) * m.width
	return m.chunks[i>>m.shift][at : at+m.width : at+m.width]
}

// At returns number j of row i.
func (m *Matrix[T]) At(i, j int) T { return m.chunks[i>>m.shift][(i&(1<<m.shift-1))*m.width+j] }

// Grow adds n rows of zeros. It makes room for them and no more, past what doubling gives.
func (m *Matrix[T]) Grow(n int) {
	m.Reserve(n)
	m.n += n
}

// Reserve makes room for n more rows.
func (m *Matrix[T]) Reserve(n int) {
	full := 1 << m.shift
	for want := m.n + n; want > m.room(); {
		last := len(m.chunks) - 1
		if last < 0 || len(m.chunks[last]) == full*m.width {
			rows := min(max(want-(last+1)*full, smallestChunk), full)
			m.chunks = append(m.chunks, make([]T, rows*m.width))
			continue
		}
		rows := min(max(want-last*full, 2*len(m.chunks[last])/m.width), full)
		grown := make([]T, rows*m.width)
		copy(grown, m.chunks[last])
		m.chunks[last] = grown
	}
}

// room returns the number of rows that the chunks have room for.
func (m *Matrix[T]) room() int {
	if len(m.chunks) == 0 {
		return 0
	}
	last := len(m.chunks) - 1
	return last<<m.shift + len(m.chunks[last])/m.width
}

// DotRows stores the dot product of query and the row at[i] of m in out[i]. query has the length of a row.
func DotRows(query []float32, m *Matrix[float32], at []uint32, out []float32) {
	if len(at) == 0 {
		return
	}
	checkRows(m, len(query), at, len(out))
	dotRows(&query[0], len(query), m, at, out)
}

// L2SquaredRows stores the square of the Euclidean distance of query and the row at[i] of m in out[i]. query has the
// length of a row.
func L2SquaredRows(query []float32, m *Matrix[float32], at []uint32, out []float32) {
	if len(at) == 0 {
		return
	}
	checkRows(m, len(query), at, len(out))
	l2Rows(&query[0], len(query), m, at, out)
}

// DotInt8Rows stores the dot product of query and the first numbers of the row at[i] of m in out[i]. query's length is
// a multiple of 16 and below 2^17, past which a sum could overflow; rows may be longer.
func DotInt8Rows(query []int8, m *Matrix[int8], at []uint32, out []int32) {
	if len(at) == 0 {
		return
	}
	checkRows(m, len(query), at, len(out))
	dotInt8(&query[0], len(query), m, at, out)
}

// checkRows keeps the assembly, which checks nothing, within the matrix.
func checkRows[T int8 | uint32 | uint64 | float32](m *Matrix[T], width int, at []uint32, out int) {
	if width > m.width || out < len(at) {
		panic("vector: a query longer than a row, or less room than rows")
	}
	for _, r := range at {
		if int(r) >= m.n {
			panic("vector: a row past the last one")
		}
	}
}
