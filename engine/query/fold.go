package query

import (
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// dotAbove is the dot of an i. Unicode's full lower-case mapping of İ is an i followed by it, which clients may send.
const dotAbove = '\u0307'

// foldedTable holds the folded form of the runes below its length, among them Latin, Greek and Cyrillic.
var foldedTable = sync.OnceValue(func() *[0x600]rune {
	var t [0x600]rune
	for r := range t {
		t[r] = leastFold(rune(r))
	}
	return &t
})

// leastFold returns the least of the runes that are equal to r: by Unicode simple folding, with I, i, İ and ı as one letter. A
// letter stays one letter, so ß is not ss; lower() and upper() do not convert it either.
func leastFold(r rune) rune {
	if r == 'İ' || r == 'ı' {
		return 'I'
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

// appendFolded appends s with each letter in the form that stands for all its cases, and without a dot on an i. That form
// is never longer than the letter.
func appendFolded(dst, s []byte) []byte {
	table := foldedTable()
	dst = slices.Grow(dst, len(s))
	start := len(dst)
	at := start
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
		case r == utf8.RuneError: // or a byte that is not UTF-8
			at += copy(dst[at:], s[i-n:i])
			continue
		case r == dotAbove && at > start && dst[at-1] == 'I':
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
