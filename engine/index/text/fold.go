package text

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// ignorable is what Unicode calls Default_Ignorable_Code_Point: soft hyphens, joiners, variation selectors, marks of
// direction. They change how a word looks and not what it is. The zero-width space is left out, because it separates
// words.
var ignorable = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00ad, Hi: 0x00ad, Stride: 1},
		{Lo: 0x034f, Hi: 0x034f, Stride: 1},
		{Lo: 0x061c, Hi: 0x061c, Stride: 1},
		{Lo: 0x115f, Hi: 0x1160, Stride: 1},
		{Lo: 0x17b4, Hi: 0x17b5, Stride: 1},
		{Lo: 0x180b, Hi: 0x180f, Stride: 1},
		{Lo: 0x200c, Hi: 0x200f, Stride: 1},
		{Lo: 0x202a, Hi: 0x202e, Stride: 1},
		{Lo: 0x2060, Hi: 0x206f, Stride: 1},
		{Lo: 0x3164, Hi: 0x3164, Stride: 1},
		{Lo: 0xfe00, Hi: 0xfe0f, Stride: 1},
		{Lo: 0xfeff, Hi: 0xfeff, Stride: 1},
		{Lo: 0xffa0, Hi: 0xffa0, Stride: 1},
		{Lo: 0xfff0, Hi: 0xfff8, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1bca0, Hi: 0x1bca3, Stride: 1},
		{Lo: 0x1d173, Hi: 0x1d17a, Stride: 1},
		{Lo: 0xe0000, Hi: 0xe0fff, Stride: 1},
	},
	LatinOffset: 1,
}

const (
	dotAbove    = '\u0307'
	dotlessI    = 'ı'
	apostrophe  = '\u2019' // as typesetters write it
	maxFoldGrow = 4        // full case folding makes a rune at most three, of no more bytes than this for each byte
)

var caseFold = cases.Fold()

// folder holds the buffers of the steps of folding.
type folder struct {
	decomposed, cased, plain []byte
	iter                     norm.Iter
}

// appendFolded appends text as it is indexed and searched for: compatibility forms and case are folded as by Unicode's
// NFKC_Casefold, a dotted and a dotless i are the same letter, and so are a typewriter's apostrophe and a typesetter's.
// Accents stay. Each byte that is not UTF-8 becomes U+FFFD. Folding folded text changes nothing.
func (f *folder) appendFolded(dst, text []byte) []byte {
	f.decomposed = f.normalize(f.decomposed[:0], norm.NFKD, text)
	if need := maxFoldGrow * len(f.decomposed); cap(f.cased) < need {
		f.cased = make([]byte, need)
	}
	n, _, err := caseFold.Transform(f.cased[:cap(f.cased)], f.decomposed, true)
	if err != nil {
		panic("text: case folding outgrows its buffer: " + err.Error())
	}
	f.plain = f.plain[:0]
	overI := false // all runes since the last i are marks on it
	for rest := f.cased[:n]; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		rest = rest[size:]
		switch {
		case unicode.Is(ignorable, r), r == dotAbove && overI:
			continue
		case r == dotlessI:
			r = 'i'
		case r == apostrophe:
			r = '\''
		case r >= 0xab70 && r <= 0xabbf: // small Cherokee letters, which x/text regards as folded
			r += 0x13a0 - 0xab70
		case r >= 0x13f8 && r <= 0x13fd:
			r += 0x13f0 - 0x13f8
		}
		at := len(f.plain)
		f.plain = utf8.AppendRune(f.plain, r)
		overI = r == 'i' || overI && norm.NFKD.Properties(f.plain[at:]).CCC() != 0
	}
	return f.normalize(dst, norm.NFKC, f.plain)
}

// normalize is form.Append without its allocation.
func (f *folder) normalize(dst []byte, form norm.Form, text []byte) []byte {
	for f.iter.Init(form, text); !f.iter.Done(); {
		dst = append(dst, f.iter.Next()...)
	}
	return dst
}
