package syntax

import "strings"

// MaxShape is the most bytes of a shape; a longer one is truncated and ends in "...".
const MaxShape = 1024

// maxShaped is the longest statement, in bytes of its canonical text, of which a shape is made.
const maxShaped = 64 << 10

const longShape = "a statement of more than 64 KiB"

// hole replaces what a shape leaves out.
const hole = '?'

// Shape returns the canonical text of a statement with a ? for each literal and parameter, and one for a whole list or
// object of nothing else, so that statements that differ only in their values have one shape. The fields that a statement
// gives at its outermost level stay. It contains no value: it is made from the text's tokens, and every text, number and
// parameter among them is left out, also quoted keys, whatever their role in the grammar.
func Shape(st Statement) string {
	text := st.String()
	if len(text) > maxShaped {
		return longShape
	}
	s := shaper{scanner: newScanner(text)}
	for t := s.next(); t.kind != kindEnd && t.kind != kindBad; t = s.next() {
		s.take(&t)
	}
	if len(s.out) > MaxShape {
		return strings.ToValidUTF8(string(s.out[:MaxShape-len("...")]), "") + "..."
	}
	return string(s.out)
}

// shaper writes a shape token by token.
type shaper struct {
	scanner scanner
	from    int // the offset in the text of what is not yet written
	out     []byte
	open    []bracket
	last    token
	ttl     bool // the last tokens are @ttl, or @ttl(
}

// bracket is a list, object or parenthesis that is not closed yet.
type bracket struct {
	kind  kind
	start int  // in the output
	value bool // of an object: the colon of the current key has been read
	mixed bool // something in it is neither a literal nor a parameter
}

// next returns the next token. The span of a ttl is one token.
func (s *shaper) next() token {
	if s.ttl && s.last.kind == '(' {
		return s.scanner.span()
	}
	return s.scanner.next()
}

func (s *shaper) take(t *token) {
	s.ttl = s.last.kind == '@' && t.is("ttl") || s.ttl && t.kind == '('
	end := s.scanner.off
	gap := s.scanner.text[s.from : end-len(t.text)]
	s.from = end
	switch {
	case s.isValue(t):
		s.dropSign(gap)
		s.out = append(append(s.out, gap...), hole)
	case t.kind == '[' || t.kind == '{' || t.kind == '(':
		s.out = append(s.out, gap...)
		s.open = append(s.open, bracket{kind: t.kind, start: len(s.out)})
		s.out = append(s.out, t.text...)
	case (t.kind == ']' || t.kind == '}' || t.kind == ')') && len(s.open) > 0:
		s.out = append(append(s.out, gap...), t.text...)
		s.close()
	default:
		s.out = append(append(s.out, gap...), t.text...)
		s.mark(t)
	}
	s.last = *t
}

// isValue reports whether a token is a literal or a parameter. Words like null are names as keys, and part of an operator
// after is.
func (s *shaper) isValue(t *token) bool {
	switch t.kind {
	case kindInt, kindNumber, kindText, kindParam, kindSpan:
		return true
	}
	return t.anyOf("null", "true", "false") && !s.last.anyOf("is", "not") && s.last.kind != '.' && !s.inKey()
}

func (s *shaper) inKey() bool {
	n := len(s.open)
	return n > 0 && s.open[n-1].kind == '{' && !s.open[n-1].value
}

// dropSign removes the minus of a negative number, which is directly before it; that of a subtraction is followed by
// a blank.
func (s *shaper) dropSign(gap string) {
	if n := len(s.out); gap == "" && s.last.kind == '-' && n > 0 {
		s.out = s.out[:n-1]
	}
}

// mark updates the innermost bracket for a token in it.
func (s *shaper) mark(t *token) {
	if len(s.open) == 0 {
		return
	}
	b := &s.open[len(s.open)-1]
	switch {
	case t.kind == ',':
		b.value = false
	case t.kind == ':' && b.kind == '{':
		b.value = true
	case t.kind == '-' && s.scanner.off < len(s.scanner.text) && isDigit(s.scanner.text[s.scanner.off]): // a sign
	case !s.inKey():
		b.mixed = true
	}
}

// close ends the innermost bracket. A list, or an object inside another bracket, that holds only values is a value.
func (s *shaper) close() {
	b := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	if b.kind == '[' && !b.mixed || b.kind == '{' && !b.mixed && len(s.open) > 0 {
		s.out = append(s.out[:b.start], hole)
		return
	}
	if n := len(s.open); n > 0 {
		s.open[n-1].mixed = true
	}
}
