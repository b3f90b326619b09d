package text

import (
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/unicode/norm"
)

// class is the class of a folded rune to the scanner. A rune of class 0 separates words.
type class uint8

const (
	letter    class = 1 << iota // ALetter to annex 29
	digit                       // Numeric
	joiner                      // ExtendNumLet: the underscore
	midLetter                   // within a word between letters
	midDigit                    // and between digits
	paired                      // Han, kana and Hangul
	tripled                     // Thai, Lao, Khmer and Myanmar
	complex                     // the class depends on the neighbours, or annex 29 has special rules for it

	wordStart = letter | digit | joiner
)

// asciiClass is the class of a byte. The first byte of a rune of several bytes is complex.
var asciiClass = func() (classes [256]class) {
	for c := 'a'; c <= 'z'; c++ {
		classes[c], classes[c-'a'+'A'] = letter, letter
	}
	for c := '0'; c <= '9'; c++ {
		classes[c] = digit
	}
	classes['_'] = joiner
	classes['.'], classes['\''] = midLetter|midDigit, midLetter|midDigit
	classes[':'] = midLetter
	classes[','], classes[';'] = midDigit, midDigit
	for c := utf8.RuneSelf; c < len(classes); c++ {
		classes[c] = complex
	}
	return classes
}()

var asciiLower = func() (lower [256]byte) {
	for c := range lower {
		lower[c] = byte(c)
		if 'A' <= c && c <= 'Z' {
			lower[c] += 'a' - 'A'
		}
	}
	return lower
}()

// known caches runes that were read: the folded rune, shifted, and its class. No entry is 0.
var known [0x20000]atomic.Uint32

const classBits = 8

// simple returns the folded form of a rune beyond ASCII and its class, unless it is complex.
func simple(r rune) (rune, class) {
	if int(r) >= len(known) {
		return 0, complex
	}
	entry := known[r].Load()
	if entry == 0 {
		folded, class := classify(r)
		entry = uint32(folded)<<classBits | uint32(class)
		known[r].Store(entry)
	}
	return rune(entry >> classBits), class(entry)
}

// classify computes what simple returns.
func classify(r rune) (rune, class) {
	form := new(folder).appendFolded(nil, utf8.AppendRune(nil, r))
	folded, size := utf8.DecodeRune(form)
	// A rune can be folded by itself if it is neither changed by what is before it nor removed, as joiners are.
	if len(form) == 0 || size != len(form) || folded == utf8.RuneError || !norm.NFKC.Properties(form).BoundaryBefore() {
		return 0, complex
	}
	if folded < utf8.RuneSelf {
		return folded, asciiClass[folded]
	}
	switch scriptOf(folded) {
	case paired:
		return folded, paired
	case tripled:
		return folded, tripled
	}
	// The library does not expose a rune's properties, but how it separates words shows them.
	s := string(folded)
	joins := func(text string) bool {
		n, _, _ := words.SplitFunc([]byte(text), true)
		return n == len(text)
	}
	parts := func(before, after string) bool {
		n, _, _ := words.SplitFunc([]byte(before+s+after), true)
		m, _, _ := words.SplitFunc([]byte(s+after), true)
		return n == len(before) && m == len(s)
	}
	// Only a Hebrew letter takes an apostrophe with it.
	isLetter := unicode.IsLetter(folded)
	switch {
	case isLetter && joins("a"+s+"1"+s) && joins(s+":"+s) && !joins(s+"'"):
		return folded, letter
	case !isLetter && !unicode.IsNumber(folded) && !unicode.Is(unicode.M, folded) && parts("a", "a") && parts("1", "1") && parts("_", "_"):
		return folded, 0
	}
	return 0, complex
}

// scriptOf returns paired, tripled, or, for a mark that belongs to what is before it, complex. Digits of any script
// make words.
func scriptOf(r rune) class {
	switch {
	case r < 0x300:
		return 0
	case unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		if unicode.In(r, unicode.L, unicode.M) {
			return tripled
		}
	case unicode.Is(unicode.M, r):
		return complex
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
		if unicode.In(r, unicode.L, unicode.Nl) {
			return paired
		}
	case r == 'ー', r >= '〱' && r <= '〵': // marks of length and repetition, which kana shares
		return paired
	}
	return 0
}

func hasLetterOrNumber(text []byte) bool {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			return true
		}
		text = text[size:]
	}
	return false
}
