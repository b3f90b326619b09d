package collation

import (
	"bytes"
	"math"
	"unicode/utf8"
)

// A key has up to three parts, each the weights of one level in the order of the text:
//
//	primary [1 secondary [1 tertiary]]
//
// The 1 is less than every weight, so a text comes before the texts it is a prefix of. The weights at the end of a
// secondary or tertiary part that most characters have (a letter without an accent; a letter that is not a capital) are
// left out, which changes no order because no weight is smaller. Parts that are then empty are left out too. The key of
// `james` is five bytes.

// separator comes before a secondary or tertiary part.
const separator = 1

// AppendKey appends the sort key of a text: bytes.Compare of two keys is the collation of their texts. Texts that are
// equal under the collation have the same key. Under None a text is its own key. A byte that is not UTF-8 counts as
// U+FFFD. Keys are not part of any format.
//
// The weights of a character are read from golang.org/x/text/collate once and cached. A text is then read rune by rune,
// unless it has a character that acts on its neighbours: a combining mark, or the first half of a contraction.
func (c Collation) AppendKey(dst, text []byte) []byte {
	dst, _ = c.AppendPrefix(dst, text, math.MaxInt)
	return dst
}

// AppendPrefix appends the first n bytes of the text's key, or all of it, and reports whether that was all. Of a long
// text it reads little more than the n bytes need.
func (c Collation) AppendPrefix(dst, text []byte, n int) (key []byte, whole bool) {
	start := len(dst)
	switch {
	case c == None:
		dst = append(dst, text[:min(n, len(text))]...)
		return dst, len(dst)-start == len(text)
	case n < math.MaxInt/2:
		n += start
	}
	o := orders[c]()
	dst, seen := o.appendPrimary(dst, text, n)
	switch {
	case seen&acts != 0:
		dst = o.appendWhole(dst[:start], text)
	case len(dst) <= n:
		if seen&accented != 0 {
			dst = o.appendSecondary(append(dst, separator), text)
		}
		if seen&cased != 0 {
			if seen&accented == 0 {
				dst = append(dst, separator)
			}
			dst = o.appendTertiary(append(dst, separator), text)
		}
	}
	if len(dst) > n {
		return dst[:n], false
	}
	return dst, true
}

// Compare returns a negative number if a comes before b, 0 if they are equal under the collation, a positive number if
// a comes after b.
func (c Collation) Compare(a, b []byte) int {
	if c == None {
		return bytes.Compare(a, b)
	}
	if bytes.Equal(a, b) {
		return 0
	}
	var x, y [96]byte
	return bytes.Compare(c.AppendKey(x[:0], a), c.AppendKey(y[:0], b))
}

// appendPrimary appends the primary weights of a text until dst is longer than n or a character acts on its neighbours,
// and returns the traits of the characters it read. It also reads the character after those that made dst too long,
// which may act on them.
func (o *order) appendPrimary(dst, text []byte, n int) ([]byte, traits) {
	seen := traits(0)
	ascii := o.block(0)
	for i := 0; i < len(text); {
		var w *weights
		if b := text[i]; b < utf8.RuneSelf {
			w = &ascii[b]
			i++
		} else {
			r, size := utf8.DecodeRune(text[i:])
			w = o.weights(r)
			i += size
		}
		seen |= w.traits
		switch {
		case w.traits&acts != 0 || len(dst) > n:
			return dst, seen
		case w.primaries == 1:
			dst = append(dst, w.primary[0])
		default:
			dst = append(dst, w.primary[:w.primaries]...)
		}
	}
	return dst, seen
}

// appendSecondary appends the secondary weights of a text in which no character acts on its neighbours.
func (o *order) appendSecondary(dst, text []byte) []byte {
	end := len(dst)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		i += size
		w := o.weights(r)
		if w.traits&accented != 0 {
			end = len(dst) + int(w.secondaryEnd)
		}
		dst = append(dst, w.secondary[:w.secondaries]...)
	}
	return dst[:end]
}

// appendTertiary appends the tertiary weights of a text in which no character acts on its neighbours.
func (o *order) appendTertiary(dst, text []byte) []byte {
	end := len(dst)
	ascii := o.block(0)
	for i := 0; i < len(text); {
		var w *weights
		if b := text[i]; b < utf8.RuneSelf {
			w = &ascii[b]
			i++
		} else {
			r, size := utf8.DecodeRune(text[i:])
			w = o.weights(r)
			i += size
		}
		if w.traits&cased != 0 {
			end = len(dst) + int(w.tertiaryEnd)
		}
		dst = append(dst, w.tertiary[:w.tertiaries]...)
	}
	return dst[:end]
}
