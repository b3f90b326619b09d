package query

import (
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

// appendFolded appends s with each letter in the form that stands for all its cases.
func appendFolded(dst, s []byte) []byte {
	table := foldedTable()
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if 'a' <= c && c <= 'z' {
				c -= 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, n := utf8.DecodeRune(s[i:])
		if int(r) < len(table) {
			r = table[r]
		} else {
			r = leastFold(r)
		}
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	return dst
}
