package syntax

import (
	"time"

	"fenec/engine/doc"
)

const spanNames = "a span of time like 30m (s, m, h or d)"

// span reads `(30m)`.
func (p *parser) span() (time.Duration, error) {
	if p.tok.kind != '(' {
		return 0, p.unexpected("( and " + spanNames + " after @ttl")
	}
	p.tok = p.scan.span() // a number could not contain its letters
	at := p.tok
	if at.kind != kindSpan {
		return 0, p.unexpected(spanNames)
	}
	span, ok := doc.ParseSpan(at.text)
	switch {
	case !ok:
		return 0, p.unexpected(spanNames)
	case span == 0:
		return 0, p.invalid(at.pos, "a ttl of %s is none: a row would be gone at its time", at.text)
	case span > doc.MaxSpan:
		return 0, p.invalid(at.pos, "a ttl is %s at most, found %s", doc.FormatSpan(doc.MaxSpan), shorten(at.text))
	}
	p.advance()
	return span, p.want(')', ") after the span of time")
}

// span returns a word that begins with a digit as one token. Otherwise it is like next.
func (s *scanner) span() token {
	s.blank()
	start := s.off
	if !isDigit(s.peek()) {
		return s.next()
	}
	for c := s.peek(); isDigit(c) || isLetter(c) || c == '.' || c == '_'; c = s.peek() {
		s.off++
	}
	return s.token(kindSpan, start)
}
