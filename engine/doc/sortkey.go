package doc

import (
	"encoding/binary"
	"math"
)

// The 64 bits of a sort key are divided among the kinds in their order. Numbers, whose precision matters most, have
// half of the range, text a quarter of the rest less one bit.
const (
	numberKeys    = 1 << 62
	textKeys      = 3 << 62
	listKeys      = 7 << 61
	objectKeys    = listKeys + 1<<58
	timestampKeys = listKeys + 2<<58
	bytesKeys     = listKeys + 6<<58
	vectorKeys    = listKeys + 7<<58
	sparseKeys    = vectorKeys + 1<<57

	inexact = 1 // the lowest bit of a key that several values share

	textKeyBytes = 7 // how many bytes of a text are in its key
)

// SortKey returns a 64-bit key that orders as Compare does: if the keys of two values differ, the values are ordered
// like their keys. If the keys are equal, the values are equal if the key is exact, and have to be compared if not.
// Keys are not part of any format.
func SortKey(v Value) uint64 {
	switch v.Kind {
	case Null:
		return 0
	case Bool:
		return 2 + 2*(v.N&1)
	case Int:
		return intKey(v.Int())
	case Float:
		return floatKey(v.Float(), 0)
	case Decimal:
		f := v.Float64()
		return floorKey(f, compareDecimal(v.B, FloatValue(f)))
	case Text:
		return contentKey(textKeys, v.B, textKeyBytes)
	case List:
		return listKeys | inexact
	case Object:
		return objectKeys | inexact
	case Vector:
		return vectorKeys | inexact
	case Sparse:
		return sparseKeys | inexact
	case Timestamp:
		return timestampKey(v.Int())
	}
	return contentKey(bytesKeys, v.B, 6)
}

// KeyExact reports whether only equal values have that sort key.
func KeyExact(key uint64) bool { return key&inexact == 0 }

// exactInts are the ints whose keys are exact: they have no more bits than the key has for a mantissa.
const exactInts = 1 << 51

func intKey(n int64) uint64 {
	f := float64(n)
	if n >= -exactInts && n <= exactInts {
		return floatKey(f, 0)
	}
	return floorKey(f, compareIntFloat(n, f))
}

// floorKey returns the key of a number that rounds to f and compares with it as c.
func floorKey(f float64, c int) uint64 {
	switch {
	case c < 0:
		return floatKey(math.Nextafter(f, math.Inf(-1)), inexact)
	case c > 0:
		return floatKey(f, inexact)
	}
	return floatKey(f, 0)
}

// floatKey returns the key of a number in [f, the next float64); rest is inexact if the number is not f itself. The key
// leaves out the last two bits of f, so it also covers the numbers from the one it is exact for to the next.
func floatKey(f float64, rest uint64) uint64 {
	bits := math.Float64bits(f + 0) // -0 becomes 0
	switch {
	case f != f:
		bits = math.MaxUint64 &^ 3
	case bits>>63 != 0:
		bits = ^bits
	default:
		bits |= 1 << 63
	}
	if bits&3 != 0 {
		rest = inexact
	}
	return numberKeys + bits>>2<<1 | rest
}

// contentKey returns the key of text or bytes from its first bytes, then the length, which distinguishes an end from a
// zero.
func contentKey(base uint64, b []byte, width int) uint64 {
	var head [8]byte
	n := copy(head[:width], b)
	key := binary.BigEndian.Uint64(head[:]) >> (64 - 8*width)
	if len(b) > width {
		return base + (key<<4|8)<<1 + inexact
	}
	return base + (key<<4|uint64(n))<<1
}

// timestampKey is exact for the nine million years on both sides of 1970.
func timestampKey(ms int64) uint64 {
	const limit = 1 << 58
	switch {
	case ms < -limit:
		return timestampKeys | inexact
	case ms >= limit:
		return timestampKeys + (2*limit-1)<<1 + inexact
	}
	return timestampKeys + uint64(ms+limit)<<1
}
