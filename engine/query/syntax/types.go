package syntax

import (
	"strings"

	"fenec/engine/collation"
	"fenec/engine/doc"
)

const typeNames = "a type (bool, int, float, text, bytes, timestamp, json, vector<N>, sparse<N> or a list [type])"

// fieldType reads a type's name, or one in brackets.
func (p *parser) fieldType() (doc.Type, error) {
	if p.tok.kind != '[' {
		return p.typeName()
	}
	p.advance()
	if p.tok.kind == '[' {
		return doc.Type{}, p.invalid(p.tok.pos, "a list holds no lists; a field of lists in lists is json")
	}
	at := p.tok.pos
	elem, err := p.typeName()
	switch {
	case err != nil:
		return doc.Type{}, err
	case elem.Dim > 0:
		return doc.Type{}, p.invalid(at, "a list holds no vectors; a field holds one %s", elem)
	}
	return doc.Type{Kind: doc.TypeList, Elem: elem.Kind}, p.want(']', "] after the type of the list's elements")
}

var types = [...]struct {
	name string
	kind doc.TypeKind
	most int // the most dimensions, for a type that has dimensions
}{
	{"bool", doc.TypeBool, 0},
	{"int", doc.TypeInt, 0},
	{"float", doc.TypeFloat, 0},
	{"text", doc.TypeText, 0},
	{"bytes", doc.TypeBytes, 0},
	{"timestamp", doc.TypeTimestamp, 0},
	{"json", doc.TypeJSON, 0},
	{"vector", doc.TypeVector, doc.MaxDim},
	{"sparse", doc.TypeSparse, doc.MaxSparseDim},
}

func (p *parser) typeName() (doc.Type, error) {
	for _, t := range types {
		switch {
		case !p.take(t.name):
		case t.most > 0:
			return p.dimensions(t.name, doc.Type{Kind: t.kind}, t.most)
		default:
			return doc.Type{Kind: t.kind}, nil
		}
	}
	switch {
	case p.tok.is("f16"):
		return doc.Type{}, p.invalid(p.tok.pos, "f16 is how a vector's numbers are kept: vector<N, f16>")
	case p.tok.kind == kindName:
		return doc.Type{}, p.invalid(p.tok.pos, "there is no type %s; expected %s", shorten(p.tok.text), typeNames)
	}
	return doc.Type{}, p.unexpected(typeNames)
}

// dimensions reads `<N>` after a type's name, and for a vector `<N, f16>`.
func (p *parser) dimensions(name string, t doc.Type, most int) (doc.Type, error) {
	if err := p.want('<', "<N> after "+name+", its number of dimensions"); err != nil {
		return t, err
	}
	var err error
	if t.Dim, err = p.within(name+"<", "the dimensions of a "+name+" field", 1, most); err != nil {
		return t, err
	}
	if t.Kind != doc.TypeVector {
		return t, p.want('>', "> after the number of dimensions")
	}
	if !p.takeKind(',') {
		return t, p.want('>', "> or a comma and f16 after the number of dimensions")
	}
	if err := p.wantWord("f16", "f16 after the comma"); err != nil {
		return t, err
	}
	t.F16 = true
	return t, p.want('>', "> after f16")
}

// within reads a whole number from least to most; after is what comes before it and what names it, for errors.
func (p *parser) within(after, what string, least, most int) (int, error) {
	if p.tok.kind != kindInt {
		return 0, p.unexpected("a whole number after " + after)
	}
	n, err := p.integer(false)
	if err != nil || n < int64(least) || n > int64(most) {
		return 0, p.invalid(p.tok.pos, "%s go from %d to %d, found %s", what, least, most, shorten(p.tok.text))
	}
	p.advance()
	return int(n), nil
}

// collation reads the name after collate.
func (p *parser) collation() (collation.Collation, error) {
	const wanted = "a collation (und or tr)"
	if p.tok.kind != kindName {
		return 0, p.unexpected(wanted + " after collate")
	}
	c, ok := collation.Parse(strings.ToLower(p.tok.text))
	if !ok {
		return 0, p.invalid(p.tok.pos, "there is no collation %s; expected %s", shorten(p.tok.text), wanted)
	}
	p.advance()
	return c, nil
}
