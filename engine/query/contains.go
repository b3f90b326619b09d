package query

import (
	"bytes"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// pattern is a search pattern: pieces that a text contains in this order, with anything between them. The pieces are
// folded, and so is the text that is searched.
type pattern struct {
	folded  []byte // the pieces, one after another
	ends    []int  // of each in folded
	atStart bool   // the text begins with the first
	atEnd   bool   // the text ends with the last
}

func (p *pattern) reset() { *p = pattern{folded: kept(p.folded), ends: kept(p.ends)} }

// part makes p the pattern of `~`, which finds a text anywhere.
func (p *pattern) part(text []byte) {
	p.reset()
	p.folded = append(p.folded, text...)
	p.endPiece(0)
}

// read makes p the pattern of `like`. A * or % stands for any text, and a backslash quotes the next character. A
// single one at an end anchors the pattern at the other end.
func (p *pattern) read(text []byte) {
	p.reset()
	opens, closes, piece := false, false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '*' || c == '%':
			opens, closes = opens || i == 0, i == len(text)-1
			piece = p.endPiece(piece)
		case c == '\\' && i+1 < len(text):
			i++
			fallthrough
		default:
			p.folded = append(p.folded, text[i])
		}
	}
	p.endPiece(piece)
	p.atStart, p.atEnd = closes && !opens, opens && !closes
}

// endPiece ends the piece that begins at start in folded, if there is one, and returns where the next begins.
func (p *pattern) endPiece(start int) int {
	if len(p.folded) > start {
		p.folded = appendFolded(p.folded[:start], p.folded[start:]) // in place, as it grows no letter
		p.ends = append(p.ends, len(p.folded))
	}
	return len(p.folded)
}

// in reports whether a folded text fits the pattern. Each piece is matched at its first occurrence, which leaves the most
// text to the ones after it.
func (p *pattern) in(text []byte) bool {
	start := 0
	for i, end := range p.ends {
		piece := p.folded[start:end]
		start = end
		switch {
		case i == 0 && p.atStart:
			if !bytes.HasPrefix(text, piece) {
				return false
			}
			text = text[len(piece):]
		case i == len(p.ends)-1 && p.atEnd:
			return bytes.HasSuffix(text, piece)
		default:
			at := bytes.Index(text, piece)
			if at < 0 {
				return false
			}
			text = text[at+len(piece):]
		}
	}
	return true
}

// contains compiles `x ~ y`: whether the text x contains y. Letters are compared as folded by appendFolded.
func (c *compiler) contains(x, y node, pos syntax.Pos) (node, error) {
	return c.matches("~", x, y, (*pattern).part, pos)
}

// like compiles `like(x, y)`: whether the text x fits the pattern y.
func (c *compiler) like(x, y node, pos syntax.Pos) (node, error) {
	return c.matches("like", x, y, (*pattern).read, pos)
}

// matches compiles the test whether x fits the pattern that read makes of y.
func (c *compiler) matches(name string, x, y node, read func(*pattern, []byte), pos syntax.Pos) (node, error) {
	for _, n := range [...]node{x, y} {
		if n.kind != doc.Text && n.kind != doc.Untyped {
			return node{}, errorAt(fail.Invalid, n.pos, "%s: expected text, got %s", name, n.described())
		}
	}
	x, y = x.as(doc.Text), y.as(doc.Text)
	a, b := x.eval, y.eval
	if y.constant {
		i := c.bind(bindPattern(name, y, read))
		return predicate(func(f *frame) truth {
			o := &f.operands[i]
			v := a(f)
			if v.Kind == doc.Null || o.null {
				return unknown
			}
			return f.fitting(v, &o.pattern)
		}, x.constant, pos), nil
	}
	return predicate(func(f *frame) truth {
		v, w := a(f), b(f)
		switch {
		case v.Kind == doc.Null || w.Kind == doc.Null:
			return unknown
		case w.Kind != doc.Text:
			return no
		}
		read(&f.pattern, w.B)
		return f.fitting(v, &f.pattern)
	}, false, pos), nil
}

// bindPattern reads a constant pattern, once per run.
func bindPattern(name string, constant node, read func(*pattern, []byte)) func(*frame, *operand) error {
	eval, pos := constant.eval, constant.pos
	return func(f *frame, o *operand) error {
		v := eval(f)
		if err := f.take(); err != nil {
			return err
		}
		switch v.Kind {
		case doc.Null:
			o.null = true
		case doc.Text:
			read(&o.pattern, v.B)
		default:
			return errorAt(fail.Invalid, pos, "%s: expected text, got %s", name, v.Kind)
		}
		return nil
	}
}

// fitting returns whether v, which is not null, fits a pattern: no if it is not a text.
func (f *frame) fitting(v doc.Value, p *pattern) truth {
	if v.Kind != doc.Text {
		return no
	}
	f.fold = appendFolded(f.fold[:0], v.B)
	return truthOf(p.in(f.fold))
}
