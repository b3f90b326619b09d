package doc

import (
	"cmp"
	"encoding/binary"
	"math"
	"unicode/utf8"

	"fenec/engine/fail"
	"fenec/engine/vector"
)

// halfWidth is N of a Vector value whose numbers take two bytes each; N is 0 if they take four.
const halfWidth = 2

// VectorValue returns the floats in b, little-endian and four bytes each, as a vector; it keeps b. They must be finite,
// and none may be -0.
func VectorValue(b []byte) Value { return Value{Kind: Vector, B: b} }

// Dim returns the number of dimensions of a vector or sparse vector, 0 for anything else.
func (v Value) Dim() int {
	switch v.Kind {
	case Vector:
		return len(v.B) / v.width()
	case Sparse:
		return int(binary.LittleEndian.Uint32(v.B))
	}
	return 0
}

// width returns the number of bytes of each number of a vector.
func (v Value) width() int {
	if v.N == halfWidth {
		return halfWidth
	}
	return 4
}

// Floats returns the numbers of a vector: a view of its bytes, or, if they are half precision, appended to dst[:0].
func (v Value) Floats(dst []float32) []float32 {
	if v.N == halfWidth {
		return vector.FromF16(dst[:0], v.B)
	}
	return vector.View(v.B)
}

// float returns number i of a vector.
func (v Value) float(i int) float32 {
	if v.N == halfWidth {
		var one [1]float32
		return vector.FromF16(one[:0], v.B[2*i:2*i+2])[0]
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(v.B[4*i:]))
}

// appendVector appends v, a list of numbers, the text of one, or a vector, encoded as a vector.
func (t Type) appendVector(dst []byte, v Value, what string) ([]byte, error) {
	if t.F16 {
		return t.appendHalves(dst, v, what)
	}
	dst = appendLength(append(dst, tagVector), 4*t.Dim)
	return t.appendFloats(dst, v, what)
}

// appendHalves appends v encoded as a vector of half precision: each number as a float32, rounded to half precision.
func (t Type) appendHalves(dst []byte, v Value, what string) ([]byte, error) {
	dst = appendLength(append(dst, tagHalfVector), 2*t.Dim)
	at := len(dst)
	dst, err := t.appendFloats(dst, v, what)
	if err != nil {
		return nil, err
	}
	end := len(dst)
	floats := vector.View(dst[at:])
	dst, past := vector.AppendF16(dst, floats)
	if past >= 0 {
		return nil, t.pastRange(string(AppendFloat32(nil, floats[past])), past+1, what)
	}
	for half := dst[end:]; len(half) > 0; half = half[2:] {
		if binary.LittleEndian.Uint16(half) == 1<<15 { // a small negative number became -0
			half[1] = 0
		}
	}
	return dst[:at+copy(dst[at:], dst[end:])], nil
}

// appendFloats appends the numbers of v, four bytes each.
func (t Type) appendFloats(dst []byte, v Value, what string) ([]byte, error) {
	at := len(dst)
	var err error
	switch v.Kind {
	case Vector:
		if v.Dim() != t.Dim {
			return nil, t.expected(v, what)
		}
		for i := range t.Dim {
			dst = appendFloat32Bytes(dst, v.float(i))
		}
	case List:
		dst, err = t.appendElements(dst, Raw(v.B), what)
	case Text, Untyped:
		dst, err = t.appendSpelled(dst, v, what)
	default:
		return nil, t.expected(v, what)
	}
	if err != nil {
		return nil, err
	}
	if n := (len(dst) - at) / 4; n != t.Dim {
		return nil, fail.New(fail.Invalid, "%s: expected %s, got a list of %s", what, t, numbers(n))
	}
	return dst, nil
}

// AppendFloats appends numbers, which must be finite, as the bytes of a VectorValue.
func AppendFloats(dst []byte, v []float32) []byte {
	for _, f := range v {
		dst = appendFloat32Bytes(dst, f)
	}
	return dst
}

func appendFloat32Bytes(dst []byte, f float32) []byte {
	return binary.LittleEndian.AppendUint32(dst, math.Float32bits(f+0)) // -0 becomes 0
}

// appendElements appends the numbers of an encoded list.
func (t Type) appendElements(dst []byte, list Raw, what string) ([]byte, error) {
	i := 0
	for b := list.body(tagList); len(b) > 0; {
		n := size(b)
		if n == 0 {
			break
		}
		i++
		v := Raw(b[:n]).Value()
		if !v.IsNumber() {
			return nil, fail.New(fail.Invalid, "%s: expected %s, got %s as number %d", what, t, describe(v), i)
		}
		f := float32Of(v)
		if f-f != 0 {
			return nil, t.notFinite(v, i, what)
		}
		dst = appendFloat32Bytes(dst, f)
		b = b[n:]
	}
	return dst, nil
}

// float32Of returns the float32 nearest to a number, infinite if out of range.
func float32Of(v Value) float32 {
	switch v.Kind {
	case Int:
		return float32(v.Int())
	case Float:
		return narrow(v.Float())
	}
	return nearest32(v.B)
}

// notFinite returns the error for number i, which is not a number or becomes infinite.
func (t Type) notFinite(v Value, i int, what string) error {
	if f := v.Float(); v.Kind == Float && f-f != 0 {
		return fail.New(fail.Invalid, "%s: expected %s, got %s as number %d", what, t, describe(v), i)
	}
	return t.pastRange(short(AppendValueJSON(nil, v)), i, what)
}

func (t Type) pastRange(number string, i int, what string) error {
	storage := "f32"
	if t.F16 {
		storage = "f16"
	}
	return fail.New(fail.Invalid, "%s: expected %s, got %s as number %d, which is past the range of %s", what, t, number, i, storage)
}

// appendSpelled appends the numbers of a text `[1,2,3]`.
func (t Type) appendSpelled(dst []byte, v Value, what string) ([]byte, error) {
	s := skipSpaces(v.B)
	if len(s) == 0 || s[0] != '[' || !utf8.Valid(s) {
		return nil, t.expected(v, what)
	}
	s = skipSpaces(s[1:])
	for i := 1; len(s) == 0 || s[0] != ']' || i > 1; i++ {
		f, n := parseFloat32(s)
		if n == 0 {
			return nil, fail.New(fail.Invalid, "%s: expected %s, got %s, whose element %d is not a number", what, t, describe(v), i)
		}
		if f-f != 0 {
			return nil, t.pastRange(short(s[:n]), i, what)
		}
		dst = appendFloat32Bytes(dst, f)
		if s = skipSpaces(s[n:]); len(s) == 0 || s[0] != ',' {
			break
		}
		s = skipSpaces(s[1:])
	}
	if len(s) == 0 || s[0] != ']' || len(skipSpaces(s[1:])) > 0 {
		return nil, fail.New(fail.Invalid, "%s: expected %s, got %s, which does not end with ]", what, t, describe(v))
	}
	return dst, nil
}

func skipSpaces(s []byte) []byte {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t' || s[0] == '\n' || s[0] == '\r') {
		s = s[1:]
	}
	return s
}

// VectorOf reads a list of numbers, the text of one or a vector as a vector of f32 with as many dimensions as there are
// numbers. what names the value in the error.
func VectorOf(v Value, what string) (Value, error) {
	t := Type{Kind: TypeVector}
	switch v.Kind {
	case Vector:
		return v, nil
	case List:
		t.Dim = Raw(v.B).Count()
	case Text, Untyped:
		if s := skipSpaces(v.B); len(s) == 0 || s[0] != '[' {
			return Value{}, wantsVector(v, what)
		}
		t.Dim = 1
		for _, c := range v.B {
			if c == ',' {
				t.Dim++
			}
		}
	default:
		return Value{}, wantsVector(v, what)
	}
	if t.Dim < 1 || t.Dim > MaxDim {
		return Value{}, fail.New(fail.Invalid, "%s: expected a vector of 1 to %d numbers, got a list of %d", what, MaxDim, t.Dim)
	}
	raw, err := t.appendVector(nil, v, what)
	return Raw(raw).Value(), err
}

func wantsVector(v Value, what string) error {
	return fail.New(fail.Invalid, "%s: expected a vector, got %s", what, describe(v))
}

// appendVectorJSON appends a vector as the list of its numbers, each the shortest that reads back.
func appendVectorJSON(dst []byte, v Value) []byte {
	dst = append(dst, '[')
	for i := range v.Dim() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendFloat32(dst, v.float(i))
	}
	return append(dst, ']')
}

// compareVectors orders vectors number by number; a prefix of another comes before it.
func compareVectors(a, b Value) int {
	n, m := a.Dim(), b.Dim()
	for i := range min(n, m) {
		if c := cmp.Compare(a.float(i), b.float(i)); c != 0 {
			return c
		}
	}
	return cmp.Compare(n, m)
}

// validVector reports whether the content of a vector is encoded as Append would: finite numbers, none of them -0.
func validVector(v Value) bool {
	n := v.Dim()
	if n < 1 || n > MaxDim || n*v.width() != len(v.B) {
		return false
	}
	for i := range n {
		if f := v.float(i); f-f != 0 || f == 0 && math.Signbit(float64(f)) {
			return false
		}
	}
	return true
}
