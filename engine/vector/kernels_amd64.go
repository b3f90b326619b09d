package vector

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// feature is a set of kernels by what they need of the processor.
type feature uint8

const (
	generic feature = iota
	avx2            // with FMA and BMI2
	avx512          // F, BW, DQ and VL
)

// best is the best set that the processor supports; using is the one in use, which only tests change.
var (
	best  = detect()
	using = best
)

func detect() feature {
	x := &cpu.X86
	switch {
	case !x.HasAVX2 || !x.HasFMA || !x.HasBMI2:
		return generic
	case !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512DQ || !x.HasAVX512VL:
		return avx2
	}
	return avx512
}

// Arguments of the assembly: n is the number of floats, or of bytes in an int8 row. Rows are found through the headers of the
// matrix's chunks, of 1<<shift rows each, stride bytes apart. For scale n is a multiple of 8, for halves of 16.
//
//go:noescape
func dotAVX2(a, b *float32, n int) float32

//go:noescape
func dotAVX512(a, b *float32, n int) float32

//go:noescape
func l2AVX2(a, b *float32, n int) float32

//go:noescape
func l2AVX512(a, b *float32, n int) float32

//go:noescape
func dotRowsAVX2(query *float32, n int, chunks *[]float32, shift uint, stride int, at *uint32, count int, out *float32)

//go:noescape
func dotRowsAVX512(query *float32, n int, chunks *[]float32, shift uint, stride int, at *uint32, count int, out *float32)

//go:noescape
func l2RowsAVX2(query *float32, n int, chunks *[]float32, shift uint, stride int, at *uint32, count int, out *float32)

//go:noescape
func l2RowsAVX512(query *float32, n int, chunks *[]float32, shift uint, stride int, at *uint32, count int, out *float32)

//go:noescape
func dotInt8AVX2(query *int8, n int, chunks *[]int8, shift uint, stride int, at *uint32, count int, out *int32)

//go:noescape
func signSumsAVX2(biased *uint8, words int, chunks *[]uint64, shift uint, stride int, at *uint32, count int, out *int32)

//go:noescape
func signSumsAVX512(biased *uint8, words int, chunks *[]uint64, shift uint, stride int, at *uint32, count int, out *int32)

//go:noescape
func scaleAVX2(dst, v *float32, n int, by float32)

//go:noescape
func fromF16AVX512(dst *float32, src *byte, n int)

//go:noescape
func prefetch(p unsafe.Pointer)

func dot(a, b *float32, n int) float32 {
	switch using {
	case avx512:
		return dotAVX512(a, b, n)
	case avx2:
		return dotAVX2(a, b, n)
	}
	return dotGeneric(a, b, n)
}

func l2(a, b *float32, n int) float32 {
	switch using {
	case avx512:
		return l2AVX512(a, b, n)
	case avx2:
		return l2AVX2(a, b, n)
	}
	return l2Generic(a, b, n)
}

func dotRows(query *float32, n int, m *Matrix[float32], at []uint32, out []float32) {
	switch using {
	case avx512:
		dotRowsAVX512(query, n, &m.chunks[0], m.shift, 4*m.width, &at[0], len(at), &out[0])
	case avx2:
		dotRowsAVX2(query, n, &m.chunks[0], m.shift, 4*m.width, &at[0], len(at), &out[0])
	default:
		dotRowsGeneric(query, n, m, at, out)
	}
}

func l2Rows(query *float32, n int, m *Matrix[float32], at []uint32, out []float32) {
	switch using {
	case avx512:
		l2RowsAVX512(query, n, &m.chunks[0], m.shift, 4*m.width, &at[0], len(at), &out[0])
	case avx2:
		l2RowsAVX2(query, n, &m.chunks[0], m.shift, 4*m.width, &at[0], len(at), &out[0])
	default:
		l2RowsGeneric(query, n, m, at, out)
	}
}

func dotInt8(query *int8, n int, m *Matrix[int8], at []uint32, out []int32) {
	if using == generic {
		dotInt8Generic(query, n, m, at, out)
		return
	}
	dotInt8AVX2(query, n, &m.chunks[0], m.shift, m.width, &at[0], len(at), &out[0])
}

// sumsSigns reports whether there is assembly for SignSums.
func sumsSigns() bool { return using != generic }

func (s *SignSums) rows(m *Matrix[uint64], at []uint32, out []int32) {
	words := len(s.biased) / 64
	switch using {
	case avx512:
		signSumsAVX512(&s.biased[0], words, &m.chunks[0], m.shift, 8*m.width, &at[0], len(at), &out[0])
	case avx2:
		signSumsAVX2(&s.biased[0], words, &m.chunks[0], m.shift, 8*m.width, &at[0], len(at), &out[0])
	default:
		s.rowsGeneric(m, at, out)
	}
}

// scale stores v times by in dst, which has the same length and may be v.
func scale(dst, v []float32, by float32) {
	done := 0
	if whole := len(v) &^ 7; whole > 0 && using != generic {
		scaleAVX2(&dst[0], &v[0], whole, by)
		done = whole
	}
	scaleGeneric(dst[done:], v[done:], by)
}

// fromF16Blocks converts the beginning of src by assembly as far as possible, and returns how many numbers it converted.
func fromF16Blocks(dst []float32, src []byte) int {
	n := len(dst) &^ (block - 1)
	if n == 0 || using != avx512 {
		return 0
	}
	fromF16AVX512(&dst[0], &src[0], n)
	return n
}

// Prefetch makes the processor load the beginning of row i into its cache.
func (m *Matrix[T]) Prefetch(i int) {
	at := (i & (1<<m.shift - 1)) * m.width
	prefetch(unsafe.Pointer(&m.chunks[i>>m.shift][at]))
}
