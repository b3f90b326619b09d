package doc

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// wholeValue reports whether r is one whole value, encoded as Append would. Nesting may be one deeper than MaxNesting,
// which list fields of json once allowed.
func wholeValue(r Raw) bool { return len(r) > 0 && size(r) == len(r) && valid(r, MaxNesting+1) }

// valid reports whether the content of r, whose size is known to be right, is encoded as Append would.
func valid(r Raw, depth int) bool {
	switch r[0] {
	case tagFloat:
		f, _ := r.Float()
		return !math.IsNaN(f) && !math.IsInf(f, 0)
	case tagText, tagBytes, tagDecimal, tagVector, tagHalfVector, tagSparse:
		content, ok := r.content()
		if !ok || lengthSizeOf(len(content)) != len(r)-1-len(content) {
			return false
		}
		switch r[0] {
		case tagText:
			return utf8.Valid(content)
		case tagDecimal:
			v, err := ParseNumber(content)
			return err == nil && v.Kind == Decimal && bytes.Equal(v.B, content)
		case tagVector, tagHalfVector:
			return validVector(r.vector())
		case tagSparse:
			return validSparse(content)
		}
	case tagList:
		return depth > 0 && validList(r[containerHeader:], depth-1)
	case tagObject:
		return depth > 0 && validObject(r[containerHeader:], depth-1)
	case tagUntyped:
		return false
	}
	return true
}

func validList(b []byte, depth int) bool {
	for len(b) > 0 {
		n := size(b)
		if n == 0 || !valid(Raw(b[:n]), depth) {
			return false
		}
		b = b[n:]
	}
	return true
}

func validObject(b []byte, depth int) bool {
	var last []byte
	for first := true; len(b) > 0; first = false {
		key, value, rest, ok := entry(b)
		if !ok || !first && bytes.Compare(last, key) >= 0 || !utf8.Valid(key) {
			return false
		}
		if lengthSizeOf(len(key)) != len(b)-len(rest)-len(value)-len(key) || !valid(value, depth) {
			return false
		}
		last, b = key, rest
	}
	return true
}

// lengthSizeOf returns the number of bytes that appendLength takes for n.
func lengthSizeOf(n int) int {
	var buf [binary.MaxVarintLen64]byte
	return binary.PutUvarint(buf[:], uint64(n))
}
