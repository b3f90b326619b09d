package syntax

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"fenec/engine/fail"
)

// scanner splits a statement into tokens. It stops for good at the first error.
type scanner struct {
	text string
	off  int // of the next character to read

	err error // why the last token is bad
	bad token // that token

	// The place of text[:placed]. The next place is counted from there.
	placed int
	at     Pos
}

func newScanner(text string) scanner {
	return scanner{text: text, at: Pos{Line: 1, Column: 1}}
}

// place returns the line and column of an offset. Offsets must not decrease from call to call.
func (s *scanner) place(off int) Pos {
	between := s.text[s.placed:off]
	if i := strings.LastIndexByte(between, '\n'); i >= 0 {
		s.at.Line += strings.Count(between, "\n")
		s.at.Column = 1
		between = between[i+1:]
	}
	s.at.Column += utf8.RuneCountInString(between)
	s.placed = off
	return s.at
}

// fail makes the token that ends all scanning.
func (s *scanner) fail(off int, format string, args ...any) token {
	pos := s.place(off)
	return s.stop(fail.At(fail.Invalid, pos.Line, pos.Column, format, args...))
}

// stop makes the token that ends all scanning, for an error.
func (s *scanner) stop(err error) token {
	s.err, s.bad = err, token{kind: kindBad, pos: s.at}
	return s.bad
}

// next returns the next token. After the last one it always returns the end, or the bad token.
func (s *scanner) next() token {
	if s.err != nil {
		return s.bad
	}
	s.blank()
	start := s.off
	if start == len(s.text) {
		return s.token(kindEnd, start)
	}
	pair := s.text[start:min(start+2, len(s.text))]
	switch c := s.text[start]; {
	case isLetter(c), c == '_':
		return s.name()
	case isDigit(c):
		return s.number()
	case c == '\'':
		return s.plainText()
	case c == '"':
		return s.jsonText()
	case c == '$':
		return s.param()
	case pair == "!=" || pair == "<>":
		s.off += 2
		return s.token(kindNe, start)
	case pair == "<=":
		s.off += 2
		return s.token(kindLe, start)
	case pair == ">=":
		s.off += 2
		return s.token(kindGe, start)
	case strings.IndexByte("()[]{},.:;@*=<>~+-/%", c) >= 0:
		s.off++
		return s.token(kind(c), start)
	case c >= utf8.RuneSelf:
		if r, _ := utf8.DecodeRuneInString(s.text[start:]); unicode.IsLetter(r) {
			return s.name()
		}
	}
	return s.stray(start)
}

// token returns the token from start to the scanner's offset.
func (s *scanner) token(k kind, start int) token {
	return token{kind: k, text: s.text[start:s.off], pos: s.place(start)}
}

// stray makes the bad token for a character that begins no token.
func (s *scanner) stray(off int) token {
	r, size := utf8.DecodeRuneInString(s.text[off:])
	switch {
	case r == utf8.RuneError && size <= 1:
		return s.invalid(off)
	case r == '!':
		return s.fail(off, `"!" is only valid in "!="; write not for negation`)
	case r == '&' || r == '|':
		return s.fail(off, "%s is no operator; conditions are joined by and, or", quote(string(r)))
	case r == '`':
		return s.fail(off, "names are written without quotes, found %s", quote("`"))
	case unicode.IsPrint(r):
		return s.fail(off, "%s begins nothing in FenecQL", quote(string(r)))
	}
	return s.fail(off, "the character %U begins nothing in FenecQL", r)
}

// invalid makes the bad token for a byte that is not UTF-8.
func (s *scanner) invalid(off int) token {
	return s.fail(off, "a statement is UTF-8 text, found the byte 0x%02x", s.text[off])
}

// blank skips white space and comments.
func (s *scanner) blank() {
	for s.off < len(s.text) {
		switch s.text[s.off] {
		case ' ', '\t', '\n', '\r':
			s.off++
		case '-':
			if !strings.HasPrefix(s.text[s.off:], "--") {
				return
			}
			end := strings.IndexByte(s.text[s.off:], '\n')
			if end < 0 {
				end = len(s.text) - s.off
			}
			if bad := invalidAt(s.text[s.off : s.off+end]); bad >= 0 {
				s.off += bad // the next token is the error
				return
			}
			s.off += end
		default:
			return
		}
	}
}

func (s *scanner) name() token {
	start := s.off
	s.off = nameEnd(s.text, start)
	return s.token(kindName, start)
}

// nameEnd returns the offset after the name that begins at off, or off if none does.
func nameEnd(text string, off int) int {
	start := off
	for off < len(text) {
		if c := text[off]; c < utf8.RuneSelf {
			if !isLetter(c) && c != '_' && (off == start || !isDigit(c)) {
				break
			}
			off++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[off:])
		if !unicode.IsLetter(r) && (off == start || !unicode.IsDigit(r) && !unicode.IsMark(r)) {
			break
		}
		off += size
	}
	return off
}

// IsName reports whether s is a name: a letter or _, then letters, digits, combining marks and _.
func IsName(s string) bool { return s != "" && nameEnd(s, 0) == len(s) }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

// number reads digits, a fraction and an exponent. A single _ may separate two digits.
func (s *scanner) number() token {
	start, k := s.off, kindInt
	if bad, ok := s.digits(); !ok {
		return bad
	}
	if s.peek() == '.' {
		k = kindNumber
		s.off++
		if bad, ok := s.digits(); !ok {
			return bad
		}
	}
	if s.peek()|0x20 == 'e' {
		k = kindNumber
		s.off++
		if c := s.peek(); c == '+' || c == '-' {
			s.off++
		}
		if bad, ok := s.digits(); !ok {
			return bad
		}
	}
	if nameEnd(s.text, s.off) > s.off {
		return s.fail(s.off, "a number ends before a letter, found %s after %s",
			quote(s.text[s.off:nameEnd(s.text, s.off)]), shorten(s.text[start:s.off]))
	}
	return s.token(k, start)
}

// digits reads one digit or more. If there is none, it returns the bad token.
func (s *scanner) digits() (token, bool) {
	for {
		if !isDigit(s.peek()) {
			return s.fail(s.off, "expected a digit of the number, found %s", s.glimpse()), false
		}
		for isDigit(s.peek()) {
			s.off++
		}
		if s.peek() != '_' {
			return token{}, true
		}
		s.off++
	}
}

// peek returns the byte at the scanner's offset, or 0 at the end.
func (s *scanner) peek() byte {
	if s.off < len(s.text) {
		return s.text[s.off]
	}
	return 0
}

// glimpse names the character at the scanner's offset, for an error.
func (s *scanner) glimpse() string {
	if s.off == len(s.text) {
		return "the end of the statement"
	}
	r, _ := utf8.DecodeRuneInString(s.text[s.off:])
	return quote(string(r))
}

// maxParam is the highest number a parameter may have.
const maxParam = 65535

func (s *scanner) param() token {
	start := s.off
	s.off++
	n := 0
	for isDigit(s.peek()) {
		n = min(n*10+int(s.text[s.off]-'0'), maxParam+1)
		s.off++
	}
	switch {
	case s.off == start+1:
		return s.fail(s.off, "a parameter is $ and a number, found %s", s.glimpse())
	case nameEnd(s.text, s.off) > s.off:
		return s.fail(s.off, "a parameter is $ and a number, found %s", s.glimpse())
	case n == 0 || n > maxParam:
		return s.fail(start, "parameters are numbered from $1 to $%d, found %s", maxParam, shorten(s.text[start:s.off]))
	}
	return s.token(kindParam, start)
}
