package syntax

import (
	"strconv"
	"strings"

	"fenec/engine/doc"
	"fenec/engine/vector"
)

const indexNames = "an index (@hash, @unique, @sorted, @ttl, @text, @hnsw or @inverted)"

// index reads `@name` and the options in parentheses after it.
func (p *parser) index() (x doc.Index, err error) {
	if err := p.want('@', indexNames); err != nil {
		return x, err
	}
	switch name := p.tok; {
	case p.take("hash"):
		x.Kind = doc.IndexHash
	case p.take("unique"):
		x.Kind = doc.IndexUnique
	case p.take("sorted"):
		x.Kind = doc.IndexSorted
	case p.take("inverted"):
		x.Kind = doc.IndexInverted
	case p.take("ttl"):
		x.Kind = doc.IndexTTL
		x.Span, err = p.span()
	case p.take("text"):
		x = doc.Index{Kind: doc.IndexText, Text: doc.DefaultText}
		err = p.options("@text", "k1, b, prefix or chars", func() (string, error) { return p.textOption(&x.Text) })
	case p.take("hnsw"):
		x = doc.Index{Kind: doc.IndexHNSW, HNSW: doc.DefaultHNSW}
		err = p.options("@hnsw", "cosine, l2, dot, m, ef_construction, ef_search or quant", func() (string, error) { return p.hnswOption(&x.HNSW) })
	case name.kind == kindName:
		err = p.invalid(name.pos, "there is no index @%s; expected %s", shorten(strings.ToLower(name.text)), indexNames)
	default:
		err = p.unexpected("the name of an index after @")
	}
	return x, err
}

// options reads `(option, ...)` if there is a parenthesis. one reads an option and returns its name, empty if the
// current token begins none.
func (p *parser) options(of, names string, one func() (string, error)) error {
	if !p.takeKind('(') {
		return nil
	}
	var seen []string
	for {
		at := p.tok
		name, err := one()
		switch {
		case err != nil:
			return err
		case name == "" && at.kind == kindName:
			return p.invalid(at.pos, "%s has no option %s; it takes %s", of, shorten(at.text), names)
		case name == "":
			return p.unexpected("an option of " + of + ": " + names)
		}
		for _, before := range seen {
			if before == name {
				return p.invalid(at.pos, "%s of %s is given twice", name, of)
			}
		}
		seen = append(seen, name)
		if !p.takeKind(',') {
			return p.want(')', "a comma and the next option of "+of+", or )")
		}
	}
}

func (p *parser) textOption(o *doc.TextOptions) (name string, err error) {
	switch {
	case p.take("k1"):
		o.K1, err = p.optionFloat("k1", doc.MaxK1)
		return "k1", err
	case p.take("b"):
		o.B, err = p.optionFloat("b", 1)
		return "b", err
	case p.take("prefix"):
		o.Prefix, err = p.prefixOption()
		return "prefix", err
	case p.take("chars"):
		o.Chars = true
		return "chars", nil
	}
	return "", nil
}

func (p *parser) hnswOption(o *doc.HNSWOptions) (name string, err error) {
	if m, ok := vector.ParseMetric(strings.ToLower(p.tok.text)); ok && p.tok.kind == kindName {
		o.Metric = m
		p.advance()
		return "the metric", nil
	}
	switch {
	case p.take("m"):
		o.M, err = p.optionInt("m", doc.MinM, doc.MaxM)
		return "m", err
	case p.take("ef_construction"):
		o.EFConstruction, err = p.optionInt("ef_construction", 1, doc.MaxEF)
		return "ef_construction", err
	case p.take("ef_search"):
		o.EFSearch, err = p.optionInt("ef_search", 1, doc.MaxEF)
		return "ef_search", err
	case p.take("quant"):
		o.Quant, err = p.quantOption()
		return "quant", err
	}
	return "", nil
}

// equals reads the = after an option's name.
func (p *parser) equals(name string) error { return p.want('=', "= and a value after "+name) }

func (p *parser) optionInt(name string, least, most int) (int, error) {
	if err := p.equals(name); err != nil {
		return 0, err
	}
	return p.within(name+"=", "values of "+name, least, most)
}

func (p *parser) prefixOption() (int, error) {
	if err := p.equals("prefix"); err != nil {
		return 0, err
	}
	at := p.tok.pos
	n, err := p.within("prefix=", "values of prefix", 0, doc.MaxPrefix)
	if err == nil && n > 0 && n < doc.MinPrefix {
		err = p.invalid(at, "prefix=%d would index no prefix: it is 0, or %d letters at least", n, doc.MinPrefix)
	}
	return n, err
}

// optionFloat reads a number from 0 to most.
func (p *parser) optionFloat(name string, most float64) (float64, error) {
	if err := p.equals(name); err != nil {
		return 0, err
	}
	at, negative := p.tok.pos, p.takeKind('-')
	if p.tok.kind != kindInt && p.tok.kind != kindNumber {
		return 0, p.unexpected("a number after " + name + "=")
	}
	f, err := strconv.ParseFloat(plainDigits(p.tok.text), 64)
	if err != nil || negative || f > most {
		return 0, p.invalid(at, "values of %s go from 0 to %v, found %s", name, most, sign(negative)+shorten(p.tok.text))
	}
	p.advance()
	return f, nil
}

func (p *parser) quantOption() (vector.Quant, error) {
	if err := p.equals("quant"); err != nil {
		return 0, err
	}
	q, ok := vector.ParseQuant(strings.ToLower(p.tok.text))
	if !ok || p.tok.kind != kindName {
		return 0, p.unexpected("int8 or bit after quant=")
	}
	p.advance()
	return q, nil
}
