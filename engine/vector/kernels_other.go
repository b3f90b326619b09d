//go:build !amd64

package vector

func dot(a, b *float32, n int) float32 { return dotGeneric(a, b, n) }

func l2(a, b *float32, n int) float32 { return l2Generic(a, b, n) }

func dotRows(query *float32, n int, rows *Matrix[float32], at []uint32, out []float32) {
	dotRowsGeneric(query, n, rows, at, out)
}

func l2Rows(query *float32, n int, rows *Matrix[float32], at []uint32, out []float32) {
	l2RowsGeneric(query, n, rows, at, out)
}

func dotInt8(query *int8, n int, rows *Matrix[int8], at []uint32, out []int32) {
	dotInt8Generic(query, n, rows, at, out)
}

// scale stores v times by in dst, which has the same length and may be v.
func scale(dst, v []float32, by float32) { scaleGeneric(dst, v, by) }

// fromF16Blocks converts nothing and returns 0: there is no assembly.
func fromF16Blocks([]float32, []byte) int { return 0 }

// Prefetch does nothing: there is no assembly.
func (m *Matrix[T]) Prefetch(int) {}

// sumsSigns reports whether there is assembly for SignSums.
func sumsSigns() bool { return false }

func (s *SignSums) rows(m *Matrix[uint64], at []uint32, out []int32) { s.rowsGeneric(m, at, out) }
