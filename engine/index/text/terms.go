package text

import (
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

// Term is one term of a text.
type Term struct {
	Text  string
	Extra bool // added by prefix or chars, and not counted in the length of the document
}

// Terms are the terms of a document or a query, in the order they are found in; one that occurs more than once is there as
// often. Words are those of Unicode's annex 29 that hold a letter or a number. Of runs in scripts that put no space between
// words there are overlapping grams instead: pairs of Han, kana and Hangul, triples of Thai, Lao, Khmer and Myanmar; a run
// that is shorter is a term itself.
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

// scanner finds the terms of a text. Its buffers are kept for the next text.
type scanner struct {
	prefix int
	chars  bool

	bytes []byte // folded words and runs, one after another
	spans []span // the terms, parts of bytes that overlap where they are grams or prefixes

	folder folder
	folded []byte
	starts []int // of each character of a run
}

// span is where a term lies in the bytes of its scanner.
type span struct {
	from, to uint32
	extra    bool
}

// scan finds the terms of text.
func (s *scanner) scan(text []byte) {
	s.bytes, s.spans = s.bytes[:0], s.spans[:0]
	for i := 0; i < len(text); {
		switch class := asciiClass[text[i]]; {
		case class&wordStart != 0:
			end, plain := asciiWord(text, i)
			if !plain {
				end = chunkEnd(text, end)
				s.scanChunk(text[i:end])
			} else {
				s.asciiTerm(text[i:end])
			}
			i = end
		case class == high:
			end := chunkEnd(text, i)
			s.scanChunk(text[i:end])
			i = end
		default:
			i++
		}
	}
}

// What an ASCII byte is to the rules of annex 29.
const (
	letter    = 1 << iota
	digit     // Numeric
	joiner    // ExtendNumLet: the underscore
	midLetter // between letters
	midDigit  // between numbers
	space     // a break whatever is around it
	high      // not ASCII

	wordStart = letter | digit | joiner
)

var asciiClass = func() (class [256]uint8) {
	for c := 'a'; c <= 'z'; c++ {
		class[c], class[c-'a'+'A'] = letter, letter
	}
	for c := '0'; c <= '9'; c++ {
		class[c] = digit
	}
	class['_'] = joiner
	class['.'], class['\''] = midLetter|midDigit, midLetter|midDigit
	class[':'] = midLetter
	class[','], class[';'] = midDigit, midDigit
	for _, c := range " \t\n\v\f\r" {
		class[c] = space
	}
	for c := 0x80; c < 0x100; c++ {
		class[c] = high
	}
	return class
}()

// asciiWord is the end of the word that starts at i, or, where what is not ASCII has a say in it, not plain.
func asciiWord(text []byte, i int) (end int, plain bool) {
	last := asciiClass[text[i]]
	for i++; i < len(text); i++ {
		class := asciiClass[text[i]]
		switch {
		case class&wordStart != 0:
		case class == high:
			return i, false
		case class&(midLetter|midDigit) != 0 && i+1 < len(text):
			next := asciiClass[text[i+1]]
			if next == high {
				return i + 1, false
			}
			if last&next&letter == 0 || class&midLetter == 0 {
				if last&next&digit == 0 || class&midDigit == 0 {
					return i, true
				}
			}
			i++
			class = next
		default:
			return i, true
		}
		last = class
	}
	return i, true
}

// chunkEnd is the next place from i on at which no rule joins what is before it to what is after it.
func chunkEnd(text []byte, i int) int {
	for i < len(text) && asciiClass[text[i]] != space {
		i++
	}
	return i
}

// asciiTerm enters an ASCII word, unless it is nothing but underscores.
func (s *scanner) asciiTerm(word []byte) {
	from := len(s.bytes)
	all := uint8(0)
	for _, c := range word {
		all |= asciiClass[c]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		s.bytes = append(s.bytes, c)
	}
	if all&(letter|digit) == 0 {
		s.bytes = s.bytes[:from]
		return
	}
	s.word(from)
}

// word enters the word that the bytes end with, and its prefixes.
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

func (s *scanner) enter(from, to int, extra bool) {
	s.spans = append(s.spans, span{from: uint32(from), to: uint32(to), extra: extra})
}

// script is how a rune is read.
type script uint8

const (
	other   script = iota
	paired         // Han, kana, Hangul
	tripled        // Thai, Lao, Khmer, Myanmar
	mark           // belongs to what is before it
)

// scriptOf is the script of a folded rune. Digits of any script make words.
func scriptOf(r rune) script {
	switch {
	case r < 0x300:
		return other
	case unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		if unicode.In(r, unicode.L, unicode.M) {
			return tripled
		}
	case unicode.Is(unicode.M, r):
		return mark
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
		if unicode.In(r, unicode.L, unicode.Nl) {
			return paired
		}
	case r == 'ー', r >= '〱' && r <= '〵': // marks of length and repetition, which kana shares
		return paired
	}
	return other
}

// scanChunk finds the terms of a part of the text that holds more than ASCII.
func (s *scanner) scanChunk(chunk []byte) {
	s.folded = s.folder.appendFolded(s.folded[:0], chunk)
	var run script
	from := 0
	s.starts = s.starts[:0]
	for at := 0; at < len(s.folded); {
		r, size := utf8.DecodeRune(s.folded[at:])
		now := scriptOf(r)
		if now == mark {
			now = run
		} else {
			if now != run {
				s.scanRun(run, s.folded[from:at])
				run, from = now, at
			}
			s.starts = append(s.starts, at-from)
		}
		at += size
	}
	s.scanRun(run, s.folded[from:])
}

// scanRun finds the terms of a run of one script.
func (s *scanner) scanRun(kind script, run []byte) {
	switch kind {
	case paired:
		s.grams(run, 2)
	case tripled:
		s.grams(run, 3)
	default:
		s.scanWords(run)
	}
	s.starts = s.starts[:0]
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

func hasLetterOrNumber(word []byte) bool {
	for len(word) > 0 {
		r, size := utf8.DecodeRune(word)
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			return true
		}
		word = word[size:]
	}
	return false
}

// grams enters the grams of n characters of a run whose characters begin at starts, or the run itself where it has no more.
func (s *scanner) grams(run []byte, n int) {
	if !hasLetterOrNumber(run) {
		return
	}
	from := len(s.bytes)
	s.bytes = append(s.bytes, run...)
	count := len(s.starts)
	s.starts = append(s.starts, len(run))
	if count <= n {
		s.enter(from, len(s.bytes), false)
	} else {
		for i := 0; i+n <= count; i++ {
			s.enter(from+s.starts[i], from+s.starts[i+n], false)
		}
	}
	if !s.chars || count == 1 {
		return
	}
	for i := range count {
		char := run[s.starts[i]:s.starts[i+1]]
		if hasLetterOrNumber(char) {
			s.enter(from+s.starts[i], from+s.starts[i+1], true)
		}
	}
}
