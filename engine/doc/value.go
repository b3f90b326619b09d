package doc

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Kind is the kind of a value. The order of the constants is the order of values across kinds; the three kinds of
// numbers are one family that is ordered by value.
type Kind uint8

const (
	Null Kind = iota
	Bool
	Int
	Float
	Decimal // a number that is neither an int64 nor the shortest form of a float64, as its digits
	Text
	List
	Object
	Timestamp
	Bytes
	Vector  // of f32 or f16 numbers
	Sparse  // a vector of few weights that are not 0
	Untyped // text to be read by the type of the field it is compared with or stored in; never stored itself
)

var kindNames = [...]string{
	Null: "null", Bool: "bool", Int: "int", Float: "float", Decimal: "decimal", Text: "text",
	List: "list", Object: "object", Timestamp: "timestamp", Bytes: "bytes",
	Vector: "vector", Sparse: "sparse", Untyped: "untyped",
}

// String returns the kind's name in the language.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Tags begin every encoded value. They are part of the file format: a tag is never given a second meaning. 14 is
// reserved for vectors.
const (
	tagNull byte = iota
	tagFalse
	tagTrue
	tagInt
	tagFloat
	tagDecimal
	tagText
	tagList
	tagObject
	tagTimestamp
	tagBytes
	tagVector
	tagHalfVector
	tagSparse
	tagUntyped = 0xff // only between a request and its statement
)

const (
	fixedSize       = 1 + 8 // an int, float or timestamp with its tag
	containerHeader = 1 + 4 // the tag and length of a list or object
)

// Raw is one encoded value, its tag first. nil is null, as is a null tag.
type Raw []byte

// Value is a decoded value: a small one is in N, a larger one is a view in B of bytes that it does not own.
type Value struct {
	Kind Kind
	N    uint64 // Bool 0 or 1; Int and Timestamp (milliseconds) as the bits of an int64; Float as its bits; Vector 2 if its numbers are f16
	B    []byte // Text, Bytes, Untyped: the content; Decimal: its JSON text; Vector, Sparse: see Floats and Weights; List, Object: the Raw
}

// BoolValue returns b as a value.
func BoolValue(b bool) Value {
	if b {
		return Value{Kind: Bool, N: 1}
	}
	return Value{Kind: Bool}
}

// IntValue returns n as a value.
func IntValue(n int64) Value { return Value{Kind: Int, N: uint64(n)} }

// FloatValue returns f as a value.
func FloatValue(f float64) Value { return Value{Kind: Float, N: math.Float64bits(f)} }

// TimestampValue returns a point in time, in milliseconds since 1970 UTC, as a value.
func TimestampValue(ms int64) Value { return Value{Kind: Timestamp, N: uint64(ms)} }

// TextValue returns a text as a value; it keeps b.
func TextValue(b []byte) Value { return Value{Kind: Text, B: b} }

// Int returns the number of an Int or Timestamp value.
func (v Value) Int() int64 { return int64(v.N) }

// Float returns the number of a Float value.
func (v Value) Float() float64 { return math.Float64frombits(v.N) }

// Bool returns the truth of a Bool value.
func (v Value) Bool() bool { return v.N != 0 }

// IsNumber reports whether v is of one of the three kinds of numbers.
func (v Value) IsNumber() bool { return v.Kind >= Int && v.Kind <= Decimal }

// Kind returns the kind of the encoded value.
func (r Raw) Kind() Kind {
	if len(r) == 0 {
		return Null
	}
	return kindOfTag(r[0])
}

var tagKinds = [...]Kind{
	tagNull: Null, tagFalse: Bool, tagTrue: Bool, tagInt: Int, tagFloat: Float, tagDecimal: Decimal, tagText: Text,
	tagList: List, tagObject: Object, tagTimestamp: Timestamp, tagBytes: Bytes,
	tagVector: Vector, tagHalfVector: Vector, tagSparse: Sparse,
}

func kindOfTag(tag byte) Kind {
	if int(tag) < len(tagKinds) {
		return tagKinds[tag]
	}
	if tag == tagUntyped {
		return Untyped
	}
	return Null
}

// Value decodes the value; its bytes are those of r. Invalid bytes read as null.
func (r Raw) Value() Value {
	if len(r) == 0 {
		return Value{}
	}
	switch tag := r[0]; tag {
	case tagInt, tagFloat, tagTimestamp:
		if len(r) < fixedSize {
			return Value{}
		}
		return Value{Kind: tagKinds[tag], N: binary.LittleEndian.Uint64(r[1:])}
	case tagFalse, tagTrue:
		return Value{Kind: Bool, N: uint64(tag - tagFalse)}
	case tagText, tagBytes, tagDecimal, tagUntyped:
		content, ok := r.content()
		if !ok {
			return Value{}
		}
		return Value{Kind: kindOfTag(tag), B: content}
	case tagVector, tagHalfVector, tagSparse:
		return r.vector()
	case tagList, tagObject:
		return Value{Kind: tagKinds[tag], B: r}
	}
	return Value{}
}

// vector decodes a vector or sparse vector.
func (r Raw) vector() Value {
	content, ok := r.content()
	switch {
	case !ok || r[0] == tagSparse && len(content) < sparseHeader:
		return Value{}
	case r[0] == tagHalfVector:
		return Value{Kind: Vector, N: halfWidth, B: content}
	}
	return Value{Kind: tagKinds[r[0]], B: content}
}

// content returns the content of a text, bytes, decimal, vector, sparse vector or untyped value.
func (r Raw) content() ([]byte, bool) {
	if len(r) < 2 {
		return nil, false
	}
	if n := int(r[1]); n < 0x80 && len(r) >= 2+n {
		return r[2 : 2+n], true
	}
	n, w := binary.Uvarint(r[1:])
	if w <= 0 || n > uint64(len(r)-1-w) {
		return nil, false
	}
	return r[1+w : 1+w+int(n)], true
}

// Int returns the number of an encoded int; ok is false for anything else.
func (r Raw) Int() (n int64, ok bool) {
	if len(r) != fixedSize || r[0] != tagInt {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(r[1:])), true
}

// Float returns the number of an encoded float; ok is false for anything else.
func (r Raw) Float() (f float64, ok bool) {
	if len(r) != fixedSize || r[0] != tagFloat {
		return 0, false
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(r[1:])), true
}

// Timestamp returns the milliseconds since 1970 UTC of an encoded timestamp; ok is false for anything else.
func (r Raw) Timestamp() (ms int64, ok bool) {
	if len(r) != fixedSize || r[0] != tagTimestamp {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(r[1:])), true
}

// Text returns the content of an encoded text; ok is false for anything else.
func (r Raw) Text() (text []byte, ok bool) {
	if len(r) == 0 || r[0] != tagText {
		return nil, false
	}
	return r.content()
}

// IsNull reports whether r is null, as an encoded null or as nil.
func (r Raw) IsNull() bool { return len(r) == 0 || r[0] == tagNull }

// Append appends the encoding of v to dst.
func Append(dst []byte, v Value) []byte {
	switch v.Kind {
	case Bool:
		return append(dst, tagFalse+byte(v.N&1))
	case Int:
		return appendFixed(dst, tagInt, v.N)
	case Float:
		return appendFixed(dst, tagFloat, v.N)
	case Timestamp:
		return appendFixed(dst, tagTimestamp, v.N)
	case Text:
		return appendContent(dst, tagText, v.B)
	case Bytes:
		return appendContent(dst, tagBytes, v.B)
	case Decimal:
		return appendContent(dst, tagDecimal, v.B)
	case Untyped:
		return appendContent(dst, tagUntyped, v.B)
	case Vector:
		if v.N == halfWidth {
			return appendContent(dst, tagHalfVector, v.B)
		}
		return appendContent(dst, tagVector, v.B)
	case Sparse:
		return appendContent(dst, tagSparse, v.B)
	case List, Object:
		return append(dst, v.B...)
	}
	return append(dst, tagNull)
}

func appendFixed(dst []byte, tag byte, n uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, tag), n)
}

func appendContent(dst []byte, tag byte, content []byte) []byte {
	dst = append(dst, tag)
	dst = appendLength(dst, len(content))
	return append(dst, content...)
}

func appendLength(dst []byte, n int) []byte {
	if n < 0x80 {
		return append(dst, byte(n))
	}
	return binary.AppendUvarint(dst, uint64(n))
}

// size returns the length in bytes of the value at the start of b, according to its header; 0 if b is not a whole
// value.
func size(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	n := 0
	switch b[0] {
	case tagNull, tagFalse, tagTrue:
		return 1
	case tagInt, tagFloat, tagTimestamp:
		n = fixedSize
	case tagText, tagBytes, tagDecimal, tagVector, tagHalfVector, tagSparse, tagUntyped:
		if len(b) < 2 {
			return 0
		}
		if b[1] < 0x80 {
			n = 2 + int(b[1])
			break
		}
		length, w := binary.Uvarint(b[1:])
		if w <= 0 || length > uint64(len(b)) {
			return 0
		}
		n = 1 + w + int(length)
	case tagList, tagObject:
		if len(b) < containerHeader {
			return 0
		}
		n = containerHeader + int(binary.LittleEndian.Uint32(b[1:]))
	}
	if n > len(b) {
		return 0
	}
	return n
}
