package text

import (
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

// Term is one term of a text.
type Term struct {
	Text  string
	Extra bool // added by prefix or chars, and not counted in the length of the document
}

// Terms returns the terms of a document or a query, in the order in which they are found; one that occurs more than
// once is returned as often. Words are those of Unicode's annex 29 that hold a letter or a number. Runs in scripts
// without spaces between words become overlapping grams instead: pairs of Han, kana and Hangul, triples of Thai, Lao,
// Khmer and Myanmar; a shorter run is itself a term.
//
// All are folded as by Unicode's NFKC_Casefold: case, compatibility forms and invisible characters make no difference.
// Nor does it matter whether an i has a dot, or whether an apostrophe is a typewriter's or a typesetter's. Accents do
// matter.
func (o Options) Terms(text []byte) []Term {
	s := scanner{prefix: o.Prefix, chars: o.Chars}
	s.scan(text)
	terms := make([]Term, len(s.spans))
	for i, t := range s.spans {
		terms[i] = Term{Text: string(s.bytes[t.from:t.to]), Extra: t.extra}
	}
	return terms
}

// minPrefix is the number of letters of the shortest prefix that is a term.
const minPrefix = 3

// scanner finds the terms of a text. Its buffers are reused for the next text.
type scanner struct {
	prefix int
	chars  bool

	bytes []byte // folded words and runs, one after another
	spans []span // the terms, parts of bytes that overlap if they are grams or prefixes

	folder folder
	folded []byte
	starts []int // in bytes, of each character of a run
}

// span is the place of a term in the bytes of its scanner.
type span struct {
	from, to uint32
	extra    bool
}

// scan finds the terms of text. Most of a text is simple: its runes are folded one by one, and ASCII's rules separate
// its words. From the start of the word or run that has a rune which is not simple to the next space, all of Unicode's
// rules apply.
func (s *scanner) scan(text []byte) {
	s.bytes, s.spans = s.bytes[:0], s.spans[:0]
	for i := 0; i < len(text); {
		_, class, size := runeAt(text, i)
		end, ok := i+size, true
		switch {
		case class&wordStart != 0:
			end, ok = s.simpleWord(text, i)
		case class&(paired|tripled) != 0:
			end, ok = s.simpleRun(text, i, class)
		case class == complex:
			ok = false
		}
		if !ok {
			end = i
			for end < len(text) && !isSpace(text[end]) {
				end++
			}
			s.scanComplex(text[i:end])
		}
		i = end
	}
}

// isSpace reports whether a byte of UTF-8 separates what is before it from what is after it under every rule.
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// runeAt returns the folded form of the rune at i, its class, and the size of the rune.
func runeAt(text []byte, i int) (rune, class, int) {
	if c := text[i]; c < utf8.RuneSelf {
		return rune(asciiLower[c]), asciiClass[c], 1
	}
	r, size := utf8.DecodeRune(text[i:])
	folded, class := simple(r)
	return folded, class, size
}

// simpleWord adds the word that starts at i and returns its end, unless it is not simple.
func (s *scanner) simpleWord(text []byte, i int) (end int, ok bool) {
	from := len(s.bytes)
	end = i
	for end < len(text) && asciiClass[text[end]]&(letter|digit) != 0 {
		end++
	}
	if end > i && (end == len(text) || asciiClass[text[end]] == 0) {
		s.bytes = append(s.bytes, text[i:end]...)
		for at, c := range s.bytes[from:] {
			s.bytes[from+at] = asciiLower[c]
		}
		s.word(from)
		return end, true
	}
	var last, all class
	for i < len(text) {
		r, class, size := runeAt(text, i)
		switch {
		case class&wordStart != 0:
		case class == complex:
			s.bytes = s.bytes[:from]
			return 0, false
		case class&(midLetter|midDigit) != 0 && i+size < len(text):
			// Within a word if it is between two letters, or between two digits.
			_, next, _ := runeAt(text, i+size)
			if next == complex {
				s.bytes = s.bytes[:from]
				return 0, false
			}
			if class&midLetter == 0 || last&next&letter == 0 {
				if class&midDigit == 0 || last&next&digit == 0 {
					return i, s.simpleTerm(from, all)
				}
			}
		default:
			return i, s.simpleTerm(from, all)
		}
		s.bytes = utf8.AppendRune(s.bytes, r)
		last = class
		all |= class
		i += size
	}
	return i, s.simpleTerm(from, all)
}

// simpleTerm adds the word that the bytes end with, unless it is only underscores.
func (s *scanner) simpleTerm(from int, all class) bool {
	if all&(letter|digit) == 0 {
		s.bytes = s.bytes[:from]
	} else {
		s.word(from)
	}
	return true
}

// simpleRun adds the grams of the run that starts at i and returns its end, unless it is not simple.
func (s *scanner) simpleRun(text []byte, i int, kind class) (end int, ok bool) {
	from := len(s.bytes)
	s.starts = s.starts[:0]
	for i < len(text) {
		r, class, size := runeAt(text, i)
		if class == complex {
			s.bytes = s.bytes[:from]
			return 0, false
		}
		if class != kind {
			break
		}
		s.starts = append(s.starts, len(s.bytes))
		s.bytes = utf8.AppendRune(s.bytes, r)
		i += size
	}
	s.grams(from, kind)
	return i, true
}

// scanComplex finds the terms of a part of the text by all of the rules.
func (s *scanner) scanComplex(text []byte) {
	s.folded = s.folder.appendFolded(s.folded[:0], text)
	for at := 0; at < len(s.folded); {
		r, size := utf8.DecodeRune(s.folded[at:])
		kind := scriptOf(r)
		from, base := at, len(s.bytes)-at
		s.starts = append(s.starts[:0], base+at)
		for at += size; at < len(s.folded); at += size {
			r, size = utf8.DecodeRune(s.folded[at:])
			if next := scriptOf(r); next != complex {
				if next != kind {
					break
				}
				s.starts = append(s.starts, base+at)
			}
		}
		if run := s.folded[from:at]; kind&(paired|tripled) == 0 {
			s.scanWords(run)
		} else {
			from := len(s.bytes)
			s.bytes = append(s.bytes, run...)
			s.grams(from, kind)
		}
	}
}

// scanWords finds the words of folded text.
func (s *scanner) scanWords(text []byte) {
	for len(text) > 0 {
		n, word, _ := words.SplitFunc(text, true)
		text = text[n:]
		if hasLetterOrNumber(word) {
			from := len(s.bytes)
			s.bytes = append(s.bytes, word...)
			s.word(from)
		}
	}
}

// word adds the word that the bytes end with, and its prefixes.
func (s *scanner) word(from int) {
	s.enter(from, len(s.bytes), false)
	if s.prefix < minPrefix {
		return
	}
	letters := 0
	for at := from; at < len(s.bytes) && letters <= s.prefix; letters++ {
		if letters >= minPrefix {
			s.enter(from, at, true)
		}
		_, size := utf8.DecodeRune(s.bytes[at:])
		at += size
	}
}

// grams adds the grams of the run that the bytes end with, whose characters begin at starts, or the run itself if it is
// not longer than one gram.
func (s *scanner) grams(from int, kind class) {
	n := 2
	if kind == tripled {
		n = 3
	}
	count := len(s.starts)
	s.starts = append(s.starts, len(s.bytes))
	if count <= n {
		s.gram(from, len(s.bytes), kind, false)
	} else {
		for i := 0; i+n <= count; i++ {
			s.gram(s.starts[i], s.starts[i+n], kind, false)
		}
	}
	if s.chars && count > 1 {
		for i := range count {
			s.gram(s.starts[i], s.starts[i+1], kind, true)
		}
	}
}

// gram adds a gram, unless it is only marks, of which a run of triples can have several in a row.
func (s *scanner) gram(from, to int, kind class, extra bool) {
	if kind == paired || hasLetterOrNumber(s.bytes[from:to]) {
		s.enter(from, to, extra)
	}
}

func (s *scanner) enter(from, to int, extra bool) {
	s.spans = append(s.spans, span{from: uint32(from), to: uint32(to), extra: extra})
}
