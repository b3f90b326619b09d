package doc

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"unicode/utf8"

	"fenec/engine/fail"
)

// A json value is plain: it holds only what JSON has. Timestamps, bytes and sparse vectors become text, a vector a
// list, and Untyped text the value it spells.

// appendPlain appends v encoded as a json value.
func appendPlain(dst []byte, v Value, what string) ([]byte, error) {
	if v.Kind == Untyped {
		if out, err := ParseJSON(dst, v.B); err == nil {
			return out, nil
		}
		v.Kind = Text
	}
	return appendPlainAt(dst, v, what, 0)
}

func appendPlainAt(dst []byte, v Value, what string, depth int) ([]byte, error) {
	switch v.Kind {
	case Timestamp:
		var buf [40]byte
		return appendContent(dst, tagText, AppendTimestamp(buf[:0], v.Int())), nil
	case Bytes:
		n := base64.StdEncoding.EncodedLen(len(v.B))
		dst = appendLength(append(dst, tagText), n)
		return base64.StdEncoding.AppendEncode(dst, v.B), nil
	case Vector:
		return appendPlainVector(dst, v), nil
	case Sparse:
		return appendContent(dst, tagText, AppendSparse(nil, v)), nil
	case List, Object:
		if depth == MaxNesting {
			return nil, fail.New(fail.Invalid, "%s is nested more than %d deep", what, MaxNesting)
		}
		if isPlain(v.B, MaxNesting-depth) {
			return append(dst, v.B...), nil
		}
		return appendPlainContainer(dst, v, what, depth+1)
	case Untyped:
		v.Kind = Text
	case Float:
		v = FloatValue(v.Float() + 0) // -0 becomes 0
	}
	if err := checkPlain(v, what); err != nil {
		return nil, err
	}
	return Append(dst, v), nil
}

// checkPlain refuses the scalars that a json value cannot hold.
func checkPlain(v Value, what string) error {
	if f := v.Float(); v.Kind == Float && f-f != 0 {
		return Type{Kind: TypeJSON}.expected(v, what)
	}
	if v.Kind == Text && !utf8.Valid(v.B) {
		return fail.New(fail.Invalid, "%s: expected json, got invalid UTF-8", what)
	}
	return nil
}

func appendPlainContainer(dst []byte, v Value, what string, depth int) ([]byte, error) {
	at := len(dst)
	dst = append(dst, v.B[0], 0, 0, 0, 0)
	var err error
	add := func(e Raw) bool {
		var out []byte
		if out, err = appendPlainAt(dst, e.Value(), what, depth); err == nil {
			dst = out
		}
		return err == nil
	}
	Raw(v.B).Elements(add)
	Raw(v.B).Entries(func(key []byte, e Raw) bool {
		dst = AppendKey(dst, unsafeString(key))
		return add(e)
	})
	if err != nil {
		return nil, err
	}
	closeContainer(dst, at)
	return dst, nil
}

// appendPlainVector appends a vector encoded as the list of the numbers that it is written as.
func appendPlainVector(dst []byte, v Value) []byte {
	dst, at := OpenList(dst)
	var buf [32]byte
	for i := range v.Dim() {
		text := AppendFloat32(buf[:0], v.float(i))
		n, _ := scanNumber(text)
		number, _ := n.binary(text) // the shortest form of a float32 has few digits
		dst = Append(dst, number)
	}
	closeContainer(dst, at)
	return dst
}

// isPlain reports whether the list or object r can be stored as it is: nested at most depth deep, and plain throughout.
func isPlain(r Raw, depth int) bool {
	if depth == 0 {
		return false
	}
	b, keyed := r[containerHeader:], r[0] == tagObject
	for len(b) > 0 {
		if keyed {
			n, w := binary.Uvarint(b)
			b = b[w+int(n):]
		}
		n := size(b)
		if n == 0 {
			return false
		}
		switch b[0] {
		case tagTimestamp, tagBytes, tagVector, tagHalfVector, tagSparse, tagUntyped, tagFloat:
			if b[0] != tagFloat || !canonicalFloat(Raw(b[:n])) {
				return false
			}
		case tagList, tagObject:
			if !isPlain(Raw(b[:n]), depth-1) {
				return false
			}
		}
		b = b[n:]
	}
	return true
}

// canonicalFloat reports whether an encoded float may be stored.
func canonicalFloat(r Raw) bool {
	f, _ := r.Float()
	return canonical(f)
}

// canonical reports whether f is finite and not -0.
func canonical(f float64) bool {
	return f-f == 0 && (f != 0 || !math.Signbit(f))
}
