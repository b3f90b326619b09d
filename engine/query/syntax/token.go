package syntax

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a token. Single characters of punctuation are their own kind.
type kind uint8

const (
	kindEnd    kind = iota // the end of the statement
	kindBad                // what cannot be read; the scanner holds the error
	kindName               // a name or a keyword
	kindInt                // a number of digits only
	kindNumber             // a number with a fraction or an exponent
	kindText               // a text literal, its quotes included
	kindParam              // $N
	kindSpan               // a number with a unit of time
	kindNe                 // != or <>
	kindLe                 // <=
	kindGe                 // >=
)

// token is one word of a statement; text is its spelling.
type token struct {
	kind kind
	text string
	pos  Pos
}

// is reports whether the token is the keyword, which is given in lower case.
func (t *token) is(keyword string) bool {
	if t.kind != kindName || len(t.text) != len(keyword) {
		return false
	}
	for i := range len(keyword) {
		c := t.text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != keyword[i] {
			return false
		}
	}
	return true
}

// anyOf reports whether the token is one of the keywords.
func (t *token) anyOf(keywords ...string) bool {
	for _, k := range keywords {
		if t.is(k) {
			return true
		}
	}
	return false
}

// shownLength is the most characters of a statement that an error quotes.
const shownLength = 32

// String names the token in an error.
func (t *token) String() string {
	switch t.kind {
	case kindEnd:
		return "the end of the statement"
	case kindInt, kindNumber:
		return "the number " + shorten(t.text)
	case kindText:
		return "the text " + strings.Map(visible, shorten(t.text))
	default:
		return quote(t.text)
	}
}

// visible replaces characters that break a line or are invisible by a blank.
func visible(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return ' '
}

// quote quotes a part of a statement, for an error.
func quote(s string) string {
	s = strings.Map(visible, shorten(s))
	if strings.Contains(s, `"`) {
		return "'" + s + "'"
	}
	return `"` + s + `"`
}

// shorten truncates what an error quotes to a readable length.
func shorten(s string) string {
	if utf8.RuneCountInString(s) <= shownLength {
		return s
	}
	n := 0
	for i := range s {
		if n == shownLength {
			return s[:i] + "..."
		}
		n++
	}
	return s
}
