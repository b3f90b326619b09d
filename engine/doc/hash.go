package doc

import (
	"math"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// Hash returns a 64-bit hash of a value. Equal values have equal hashes, whatever their kinds. The reverse does not
// hold: a caller that looks up by hash must compare what it finds. The hashes are not part of any format and may
// change.
func Hash(v Value) uint64 {
	switch v.Kind {
	case Null:
		return mix(1)
	case Bool:
		return mix(2 + v.N)
	case Int:
		return hashInt(v.Int())
	case Float:
		return hashFloat(v.Float())
	case Decimal:
		return hashDecimal(v)
	case Timestamp:
		return mix(v.N ^ 0x7f4a7c15_9e3779b9)
	case List:
		return hashList(v.B)
	case Object:
		return hashObject(v.B)
	case Vector:
		return hashVector(v)
	case Sparse:
		return mix(xxhash.Sum64(v.B) + 1)
	case Bytes:
		return mix(xxhash.Sum64(v.B))
	}
	return xxhash.Sum64(v.B)
}

func hashList(r Raw) uint64 {
	h := uint64(5)
	for b := r.body(tagList); len(b) > 0; {
		n := size(b)
		if n == 0 {
			break
		}
		h = mix(h ^ Hash(Raw(b[:n]).Value()))
		b = b[n:]
	}
	return h
}

func hashObject(r Raw) uint64 {
	h := uint64(6)
	for b := r.body(tagObject); len(b) > 0; {
		key, value, rest, ok := entry(b)
		if !ok {
			break
		}
		h = mix(mix(h^xxhash.Sum64(key)) ^ Hash(value.Value()))
		b = rest
	}
	return h
}

// hashVector hashes the numbers as f32, the precision in which vectors of either width are compared.
func hashVector(v Value) uint64 {
	h := uint64(8)
	for i := range v.Dim() {
		h = mix(h ^ uint64(math.Float32bits(v.float(i))))
	}
	return h
}

func hashInt(n int64) uint64 { return mix(uint64(n) ^ 0x9e3779b9_7f4a7c15) }

func hashFloat(f float64) uint64 {
	if n, ok := intOfFloat(f); ok {
		return hashInt(n)
	}
	if math.IsNaN(f) {
		return mix(7)
	}
	return mix(math.Float64bits(f) ^ 0x85ebca6b_c2b2ae35)
}

// hashDecimal hashes the int or float that equals the decimal, if there is one, since equal values must hash alike.
func hashDecimal(v Value) uint64 {
	if n, ok := v.Int64(); ok {
		return hashInt(n)
	}
	if f := v.Float64(); compareDecimal(v.B, FloatValue(f)) == 0 {
		return hashFloat(f)
	}
	n, _ := scanNumber(v.B)
	var buf [64]byte
	b := strconv.AppendInt(buf[:0], int64(n.digits+n.exponent), 10)
	if n.negative {
		b = append(b, '-')
	} else {
		b = append(b, '+')
	}
	digits := significant{v.B, n.digits}
	digits.skipZeros()
	for digits.left > 0 {
		b = append(b, digits.next())
	}
	return xxhash.Sum64(b)
}

// mix is the finaliser of splitmix64 (Steele, Lea and Flood 2014).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
