package doc

import (
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"

	"fenec/engine/fail"
)

// TypeKind is the declared type of a field. The numbers are part of the file format.
type TypeKind uint8

const (
	TypeBool TypeKind = iota + 1
	TypeInt
	TypeFloat
	TypeText
	TypeBytes
	TypeTimestamp
	TypeJSON
	TypeList
	TypeVector
	TypeSparse
)

// MaxDim and MaxSparseDim are the most dimensions a vector and a sparse vector can have.
const (
	MaxDim       = 65_536
	MaxSparseDim = 1<<31 - 1
)

var typeNames = [...]string{
	TypeBool: "bool", TypeInt: "int", TypeFloat: "float", TypeText: "text", TypeBytes: "bytes",
	TypeTimestamp: "timestamp", TypeJSON: "json", TypeList: "list", TypeVector: "vector", TypeSparse: "sparse",
}

// Type is the type of a field.
type Type struct {
	Kind TypeKind
	Elem TypeKind // of a list's elements, 0 for every other kind
	Dim  int      // of a vector or sparse vector, 0 for every other kind
	F16  bool     // of a vector: its numbers are stored as half precision floats
}

// dimensional reports whether the type has a number of dimensions.
func (t Type) dimensional() bool { return t.Kind == TypeVector || t.Kind == TypeSparse }

// known reports whether t is a type that this version has.
func (t Type) known() bool {
	switch {
	case t.Kind == TypeList:
		return t.Elem >= TypeBool && t.Elem < TypeList && t.Dim == 0 && !t.F16
	case t.Kind == TypeVector:
		return t.Elem == 0 && t.Dim >= 1 && t.Dim <= MaxDim
	case t.Kind == TypeSparse:
		return t.Elem == 0 && t.Dim >= 1 && t.Dim <= MaxSparseDim && !t.F16
	}
	return t.Kind >= TypeBool && t.Kind < TypeList && t.Elem == 0 && t.Dim == 0 && !t.F16
}

// String returns the type's name in the language.
func (t Type) String() string {
	if t.Kind == TypeList {
		return "[" + Type{Kind: t.Elem}.String() + "]"
	}
	if t.Kind == 0 || int(t.Kind) >= len(typeNames) {
		return "unknown type"
	}
	name := typeNames[t.Kind]
	switch {
	case t.F16:
		return name + "<" + strconv.Itoa(t.Dim) + ", f16>"
	case t.dimensional():
		return name + "<" + strconv.Itoa(t.Dim) + ">"
	}
	return name
}

// Append appends v to dst, encoded as a value of the type. Null is a value of every type. An int accepts any number
// equal to an int64, a float any number within its range, a timestamp ISO-8601 text or milliseconds since 1970, bytes
// base64 text, json anything, a vector a list of numbers or its text, a sparse vector its text. Untyped text is read in
// the type's own spelling. what names the value in the error, as in "field year".
func (t Type) Append(dst []byte, v Value, what string) ([]byte, error) {
	switch {
	case v.Kind == Null:
		return append(dst, tagNull), nil
	case t.Holds(&v):
		return Append(dst, v), nil
	case t.Kind == TypeJSON:
		return appendPlain(dst, v, what)
	case t.Kind == TypeList:
		return t.appendList(dst, v, what, Type.Append)
	case t.Kind == TypeVector:
		return t.appendVector(dst, v, what)
	case t.Kind == TypeSparse:
		return t.appendSparse(dst, v, what)
	}
	v, err := t.Convert(v, what)
	if err != nil {
		return nil, err
	}
	return Append(dst, v), nil
}

// own is the kind of the type's values. json and lists check every value further.
var own = [...]Kind{
	TypeBool: Bool, TypeInt: Int, TypeFloat: Float, TypeText: Text, TypeTimestamp: Timestamp, TypeBytes: Bytes,
	TypeList: Null, TypeVector: Vector, TypeSparse: Sparse,
}

// Holds reports whether v is a value of the type without conversion. It is the short path that most values take.
func (t Type) Holds(v *Value) bool {
	if own[t.Kind] != v.Kind {
		return false
	}
	switch v.Kind {
	case Text:
		return utf8.Valid(v.B)
	case Float:
		return canonical(v.Float())
	case Vector:
		return v.Dim() == t.Dim && (v.N == halfWidth) == t.F16
	case Sparse:
		return v.Dim() == t.Dim
	}
	return true
}

// Convert returns v as a value of the type, the same as Append would store; Comparand is for values that are only
// compared. It allocates only for bytes, lists, vectors, json and Untyped text that holds a decimal.
func (t Type) Convert(v Value, what string) (Value, error) {
	if v.Kind == Null {
		return v, nil
	}
	ok := false
	switch t.Kind {
	case TypeBool:
		v, ok = toBool(v)
	case TypeInt:
		return t.toInt(v, what)
	case TypeFloat:
		return t.toFloat(v, what)
	case TypeText:
		return t.toText(v, what)
	case TypeBytes:
		return t.toBytes(v, what)
	case TypeTimestamp:
		return t.toTimestamp(v, what)
	case TypeJSON, TypeList, TypeVector, TypeSparse:
		if v.Kind != List && v.Kind != Object && v.Kind < Timestamp && t.Kind == TypeJSON {
			return v, checkPlain(v, what)
		}
		raw, err := t.Append(nil, v, what)
		return Raw(raw).Value(), err
	}
	if !ok {
		return Value{}, t.expected(v, what)
	}
	return v, nil
}

func (t Type) expected(v Value, what string) error {
	return fail.New(fail.Invalid, "%s: expected %s, got %s", what, t, describe(v))
}

func toBool(v Value) (Value, bool) {
	if v.Kind == Untyped {
		switch unsafeString(v.B) {
		case "true":
			return BoolValue(true), true
		case "false":
			return BoolValue(false), true
		}
	}
	return v, v.Kind == Bool
}

// Number returns v, except that Untyped text which spells a number is returned as that number.
func (v Value) Number() Value {
	if v.Kind == Untyped {
		if n, err := ParseNumber(v.B); err == nil {
			return n
		}
	}
	return v
}

func (t Type) toInt(v Value, what string) (Value, error) {
	if v.Kind == Int {
		return v, nil
	}
	number := v.Number()
	if n, ok := number.Int64(); ok {
		return IntValue(n), nil
	}
	if number.IsNumber() && math.Abs(number.Float64()) >= 1<<63 {
		return Value{}, fail.New(fail.Invalid, "%s: expected int, got %s, which is out of range for 64 bits", what, describe(number))
	}
	return Value{}, t.expected(v, what)
}

func (t Type) toFloat(v Value, what string) (Value, error) {
	number := v.Number()
	if !number.IsNumber() {
		return Value{}, t.expected(v, what)
	}
	f := number.Float64()
	if math.IsInf(f, 0) || math.IsNaN(f) {
		if number.Kind == Float {
			return Value{}, t.expected(number, what)
		}
		return Value{}, fail.New(fail.Invalid, "%s: expected float, got %s, which is out of range", what, describe(number))
	}
	return FloatValue(f + 0), nil // -0 becomes 0
}

func (t Type) toText(v Value, what string) (Value, error) {
	if v.Kind != Text && v.Kind != Untyped {
		return Value{}, t.expected(v, what)
	}
	if !utf8.Valid(v.B) {
		return Value{}, fail.New(fail.Invalid, "%s: expected text, got invalid UTF-8", what)
	}
	return Value{Kind: Text, B: v.B}, nil
}

func (t Type) toBytes(v Value, what string) (Value, error) {
	if v.Kind == Bytes {
		return v, nil
	}
	if v.Kind != Text && v.Kind != Untyped {
		return Value{}, t.expected(v, what)
	}
	b, ok := decodeBase64(v.B)
	if !ok {
		return Value{}, fail.New(fail.Invalid, "%s: expected bytes as base64 text, got %s", what, describe(v))
	}
	return Value{Kind: Bytes, B: b}, nil
}

// decodeBase64 reads base64 with or without its padding.
func decodeBase64(text []byte) ([]byte, bool) {
	encoding := base64.RawStdEncoding
	if len(text)%4 == 0 {
		encoding = base64.StdEncoding
	}
	for _, c := range text {
		if c == '\n' || c == '\r' { // which the decoder would skip
			return nil, false
		}
	}
	b, err := encoding.Strict().AppendDecode(nil, text)
	return b, err == nil
}

func (t Type) toTimestamp(v Value, what string) (Value, error) {
	if v.Kind == Timestamp {
		return v, nil
	}
	number := v.Number()
	if n, ok := number.Int64(); ok {
		return TimestampValue(n), nil
	}
	if v.Kind == Text || v.Kind == Untyped {
		if ms, ok := ParseTimestamp(v.B); ok {
			return TimestampValue(ms), nil
		}
	}
	return Value{}, fail.New(fail.Invalid, "%s: expected timestamp as ISO-8601 text or milliseconds, got %s", what, describe(v))
}

// appendList appends a list, each element encoded as the type's element type. null is an element only of a list of
// json.
func (t Type) appendList(dst []byte, v Value, what string, encode func(t Type, dst []byte, v Value, what string) ([]byte, error)) ([]byte, error) {
	if v.Kind == Untyped {
		raw, err := ParseJSON(nil, v.B)
		if err != nil {
			return nil, t.expected(v, what)
		}
		v = Raw(raw).Value()
	}
	switch {
	case v.Kind != List:
		return nil, t.expected(v, what)
	case t.Elem == TypeJSON:
		return appendPlainAt(dst, v, what, 0)
	}
	dst, at := OpenList(dst)
	elem := Type{Kind: t.Elem}
	n := 0
	var err error
	Raw(v.B).Elements(func(e Raw) bool {
		n++
		if e.IsNull() {
			err = fail.New(fail.Invalid, "%s: expected %s, got null as element %d", what, t, n)
			return false
		}
		var out []byte
		if out, err = encode(elem, dst, e.Value(), "an element of "+what); err == nil {
			dst = out
		}
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	closeContainer(dst, at)
	return dst, nil
}
