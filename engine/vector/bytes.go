package vector

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// littleEndian says that floats lie in memory as they do in documents.
var littleEndian = func() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}()

// View is the floats that b holds, little-endian, four bytes each. Where the machine is little-endian it is b itself, at
// whatever address: not to be written to, and valid for as long as b is.
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
