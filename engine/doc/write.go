package doc

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// AppendJSON appends an encoded value as JSON text without spaces: ints and decimals by their digits, floats by the
// shortest digits that read back, timestamps as ISO-8601 in UTC, bytes as base64, vectors as lists, sparse vectors as
// text, an object's keys in order. nil is null.
func AppendJSON(dst []byte, r Raw) []byte {
	if len(r) == 0 {
		return append(dst, "null"...)
	}
	switch r[0] {
	case tagText:
		if content, ok := r.content(); ok {
			return appendText(dst, content)
		}
	case tagInt:
		if len(r) >= fixedSize {
			return strconv.AppendInt(dst, int64(binary.LittleEndian.Uint64(r[1:])), 10)
		}
	case tagList:
		return appendListJSON(dst, r)
	case tagObject:
		return appendObjectJSON(dst, r)
	}
	return AppendValueJSON(dst, r.Value())
}

// AppendValueJSON is AppendJSON for a decoded value.
func AppendValueJSON(dst []byte, v Value) []byte {
	switch v.Kind {
	case Bool:
		return strconv.AppendBool(dst, v.Bool())
	case Int:
		return strconv.AppendInt(dst, v.Int(), 10)
	case Float:
		return AppendFloat(dst, v.Float())
	case Decimal:
		return append(dst, v.B...)
	case Text, Untyped:
		return AppendQuoted(dst, v.B)
	case Timestamp:
		dst = AppendTimestamp(append(dst, '"'), v.Int())
		return append(dst, '"')
	case Bytes:
		dst = base64.StdEncoding.AppendEncode(append(dst, '"'), v.B)
		return append(dst, '"')
	case Vector:
		return appendVectorJSON(dst, v)
	case Sparse:
		dst = AppendSparse(append(dst, '"'), v)
		return append(dst, '"')
	case List:
		return appendListJSON(dst, v.B)
	case Object:
		return appendObjectJSON(dst, v.B)
	}
	return append(dst, "null"...)
}

func appendListJSON(dst []byte, r Raw) []byte {
	dst = append(dst, '[')
	for b, first := r.body(tagList), true; len(b) > 0; first = false {
		n := size(b)
		if n == 0 {
			break
		}
		if !first {
			dst = append(dst, ',')
		}
		dst = AppendJSON(dst, Raw(b[:n]))
		b = b[n:]
	}
	return append(dst, ']')
}

func appendObjectJSON(dst []byte, r Raw) []byte {
	dst = append(dst, '{')
	for b, first := r.body(tagObject), true; len(b) > 0; first = false {
		key, value, rest, ok := entry(b)
		if !ok {
			break
		}
		if !first {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, key), ':')
		dst = AppendJSON(dst, value)
		b = rest
	}
	return append(dst, '}')
}

// AppendFloat appends the shortest decimal that reads back as f, with an exponent only below 1e-6 and from 1e21 on. -0
// is 0. NaN and the infinities, which JSON cannot represent, are null.
func AppendFloat(dst []byte, f float64) []byte {
	const few = 1_000_000 // six places after the point
	if scaled := math.Round(f * few); math.Abs(scaled) < 1e15 && scaled/few == f {
		// Fifteen digits identify a float64, so these are its shortest form once trailing zeros are removed.
		return appendScaled(dst, int64(scaled))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	return shortExponent(strconv.AppendFloat(dst, f, 'e', -1, 64))
}

// shortExponent writes an exponent like e-07 as e-7.
func shortExponent(dst []byte) []byte {
	if n := len(dst); dst[n-2] == '0' && dst[n-4] == 'e' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// appendScaled appends n millionths.
func appendScaled(dst []byte, n int64) []byte {
	if n < 0 {
		dst = append(dst, '-')
		n = -n
	}
	dst = strconv.AppendInt(dst, n/1_000_000, 10)
	rest := n % 1_000_000
	if rest == 0 {
		return dst
	}
	dst = append(dst, '.', byte('0'+rest/100_000), byte('0'+rest/10_000%10), byte('0'+rest/1000%10),
		byte('0'+rest/100%10), byte('0'+rest/10%10), byte('0'+rest%10))
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

const (
	everyByte = 0x0101010101010101
	highBits  = 0x8080808080808080
)

// special returns a word in which the high bits mark the bytes that must be escaped in a JSON string: control
// characters, quotes and backslashes. Only the lowest mark is exact.
func special(w uint64) uint64 {
	quote, slash := w^everyByte*'"', w^everyByte*'\\'
	return ((w-everyByte*0x20)&^w | (quote-everyByte)&^quote | (slash-everyByte)&^slash) & highBits
}

// plain returns the length of the run at the start of s that needs no escaping in a JSON string, if it is UTF-8.
func plain(s []byte) int {
	i := 0
	for ; len(s)-i >= 8; i += 8 {
		if m := special(binary.LittleEndian.Uint64(s[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for i < len(s) && s[i] >= 0x20 && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}

// AppendQuoted appends s as a JSON string. Each byte of invalid UTF-8 becomes U+FFFD.
func AppendQuoted(dst, s []byte) []byte {
	if !utf8.Valid(s) {
		s = []byte(string([]rune(string(s))))
	}
	return appendText(dst, s)
}

const hexDigits = "0123456789abcdef"

// appendText is AppendQuoted for text known to be UTF-8, as all stored text is.
func appendText(dst, s []byte) []byte {
	dst = append(dst, '"')
	for {
		n := plain(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return append(dst, '"')
		}
		c := s[n]
		s = s[n+1:]
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
}
