package syntax

import "strings"

// MaxShape is how many bytes a shape has at most; a longer one is cut and ends in "...".
const MaxShape = 1024

// maxShaped is how long a statement may be, in bytes of its canonical text, to be told from others by its shape.
const maxShaped = 64 << 10

const longShape = "a statement of more than 64 KiB"

// hole stands for what a shape leaves out.
const hole = '?'

// Shape is the canonical text of a statement with a ? for each literal and parameter, and one for a whole list or
// object of nothing else, so that statements that differ in their values alone have one shape. The fields a statement
// gives at its outermost level stay. No value gets into it: it is made of the text's tokens, of which every text, number
// and parameter goes, quoted keys too, whatever the grammar makes of them.
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
	from    int // where in the text what is not yet written begins
	out     []byte
	open    []bracket
	last    token
	ttl     bool // the last tokens are @ttl, or @ttl(
}

// bracket is a list, object or parenthesis that is not closed yet.
type bracket struct {
	kind  kind
	start int  // in the output
	value bool // of an object: the colon of the current key is behind us
	mixed bool // something in it is no literal and no parameter
}

// next is the next token, the span of a ttl among them.
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

// isValue tells a literal or a parameter. The words among them are names as keys, and part of an operator behind is.
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

// dropSign takes out the minus of a negative number, which stands directly before it; that of a subtraction has a
// blank behind it.
func (s *shaper) dropSign(gap string) {
	if n := len(s.out); gap == "" && s.last.kind == '-' && n > 0 {
		s.out = s.out[:n-1]
	}
}

// mark says of the innermost bracket what a token in it makes of it.
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

// close ends the innermost bracket. A list, or an object within something, that holds no more than values is one.
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
