package vector

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// littleEndian reports whether floats have the same bytes in memory as in documents.
var littleEndian = func() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}()

// View returns the floats in b, little-endian, four bytes each. On a little-endian machine it is b itself, at any
// address: it must not be written to, and is valid as long as b is.
func View(b []byte) []float32 {
	n := len(b) / 4
	if n == 0 {
		return nil
	}
	if littleEndian {
		return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), n)
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}
