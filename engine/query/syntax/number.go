package syntax

import (
	"strings"

	"fenec/engine/doc"
)

// number reads the current token as a constant whose place is at.
func (p *parser) number(at Pos, negative bool) (Expr, error) {
	v, err := p.numberValue(at, negative)
	if err != nil {
		return nil, err
	}
	p.advance()
	return p.literals.one(Literal{Value: v, Pos: at}), nil
}

func (p *parser) numberValue(at Pos, negative bool) (doc.Value, error) {
	if p.tok.kind == kindInt {
		n, err := p.integer(negative)
		return doc.IntValue(n), err
	}
	digits := make([]byte, 0, len(p.tok.text)+1)
	if negative {
		digits = append(digits, '-')
	}
	v, err := doc.ParseNumber(append(digits, plainDigits(p.tok.text)...))
	if err != nil {
		return v, p.invalid(at, "%s", err)
	}
	return v, nil
}

// plainDigits returns a number without the _ between its digits and without leading zeros.
func plainDigits(text string) string {
	text = strings.ReplaceAll(text, "_", "")
	for len(text) > 1 && text[0] == '0' && isDigit(text[1]) {
		text = text[1:]
	}
	return text
}

// integer returns the current token as an int of 64 bits.
func (p *parser) integer(negative bool) (int64, error) {
	const most = 1<<63 - 1
	limit := uint64(most)
	if negative {
		limit++
	}
	n := uint64(0)
	for _, c := range []byte(p.tok.text) {
		if c == '_' {
			continue
		}
		d := uint64(c - '0')
		if n > (limit-d)/10 {
			return 0, p.invalid(p.tok.pos, "an int goes from %d to %d, found %s", -most-1, most, sign(negative)+shorten(p.tok.text))
		}
		n = n*10 + d
	}
	if negative {
		return -int64(n), nil
	}
	return int64(n), nil
}

func sign(negative bool) string {
	if negative {
		return "-"
	}
	return ""
}
