package query

import (
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// foldedTable holds the folded form of the runes below its length, among them Latin, Greek and Cyrillic.
var foldedTable = sync.OnceValue(func() *[0x600]rune {
	var t [0x600]rune
	for r := range t {
		t[r] = leastFold(rune(r))
	}
	return &t
})

// leastFold is the least of the runes that are equal to r by Unicode simple folding.
func leastFold(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

// appendFolded appends s with each letter in the form that stands for all its cases. That form is never
// longer than the letter.
func appendFolded(dst, s []byte) []byte {
	table := foldedTable()
	dst = slices.Grow(dst, len(s))
	at := len(dst)
	dst = dst[:at+len(s)]
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			dst[at] = byte(table[c])
			at++
			i++
			continue
		}
		r, n := utf8.DecodeRune(s[i:])
		i += n
		switch {
		case r == utf8.RuneError: // or a byte that is no UTF-8
			at += copy(dst[at:], s[i-n:i])
			continue
		case int(r) < len(table):
			r = table[r]
		default:
			r = leastFold(r)
		}
		at += utf8.EncodeRune(dst[at:], r)
	}
	return dst[:at]
}
