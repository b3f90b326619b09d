package doc

import (
	"fmt"
	"unicode/utf8"
)

// shortText is the number of bytes of a value that an error shows.
const shortText = 40

// short returns s, truncated if it is long.
func short(s []byte) string {
	if len(s) <= shortText {
		return string(s)
	}
	n := shortText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return string(s[:n]) + "..."
}

// quoteShort returns s in quotes, truncated if it is long.
func quoteShort(s []byte) string { return fmt.Sprintf("%q", short(s)) }

// describe names a value for an error: its kind and, if it is small, its content.
func describe(v Value) string {
	switch v.Kind {
	case Null:
		return "null"
	case Bool:
		return fmt.Sprintf("bool %t", v.Bool())
	case Int, Float, Decimal:
		if f := v.Float(); v.Kind == Float && f-f != 0 {
			return "a number that is not finite"
		}
		return "number " + short(AppendValueJSON(nil, v))
	case Text, Untyped:
		return "text " + quoteShort(v.B)
	case Timestamp:
		return "timestamp " + string(AppendTimestamp(nil, v.Int()))
	case Bytes:
		return fmt.Sprintf("%d bytes", len(v.B))
	case Vector:
		return "a vector of " + numbers(v.Dim())
	case Sparse:
		return "a sparse vector of " + counted(v.Dim(), "dimension")
	case List:
		return "a list"
	case Object:
		return "an object"
	}
	return v.Kind.String()
}

// numbers returns a count of numbers in words.
func numbers(n int) string { return counted(n, "number") }

// counted returns a count of things in words.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Describe names a value for an error message: its kind and, if it is small, its content, as in `text "abc"`.
func Describe(v Value) string { return describe(v) }
