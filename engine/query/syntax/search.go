package syntax

// near reads `F vector [ef N] [exact]`.
func (p *parser) near(at Pos) (*Near, error) {
	out := &Near{Pos: at}
	var err error
	if out.Field, err = p.fieldName("a field's name after near", "near"); err != nil {
		return nil, err
	}
	if out.Vector, err = p.vector("near " + shorten(out.Field.Text)); err != nil {
		return nil, err
	}
	for {
		word := p.tok
		switch {
		case word.is("ef") && out.EF != nil, word.is("exact") && out.Exact:
			return nil, p.givenAgain(word)
		case p.take("ef"):
			if out.EF, err = p.bound("ef", 1); err != nil {
				return nil, err
			}
		case p.take("exact"):
			out.Exact = true
		default:
			p.rest.more = unused(out.EF == nil, "ef, ") + unused(!out.Exact, "exact, ")
			return out, nil
		}
	}
}

// match reads `F text`.
func (p *parser) match(at Pos) (*Match, error) {
	out := &Match{Pos: at}
	var err error
	if out.Field, err = p.fieldName("a field's name after match", "match"); err != nil {
		return nil, err
	}
	switch p.tok.kind {
	case kindParam:
		out.Text, err = p.param()
	case kindText:
		at := p.tok.pos
		out.Text = p.literals.one(Literal{Value: p.text(), Pos: at})
	default:
		err = p.unexpected("a text or a parameter after match " + shorten(out.Field.Text))
	}
	return out, err
}

// rerank reads `F vector [candidates N]`.
func (p *parser) rerank(at Pos) (*Rerank, error) {
	out := &Rerank{Pos: at}
	var err error
	if out.Field, err = p.fieldName("a field's name after rerank", "rerank"); err != nil {
		return nil, err
	}
	if out.Vector, err = p.vector("rerank " + shorten(out.Field.Text)); err != nil {
		return nil, err
	}
	if p.take("candidates") {
		out.Candidates, err = p.bound("candidates", 1)
	}
	p.rest.more = unused(out.Candidates == nil, "candidates, ")
	return out, err
}

// fuse reads `[k N] [candidates N]`.
func (p *parser) fuse(at Pos) (*Fuse, error) {
	out := &Fuse{Pos: at}
	for {
		var err error
		word := p.tok
		switch {
		case word.is("k") && out.K != nil, word.is("candidates") && out.Candidates != nil:
			return nil, p.givenAgain(word)
		case p.take("k"):
			out.K, err = p.bound("k", 0)
		case p.take("candidates"):
			out.Candidates, err = p.bound("candidates", 1)
		default:
			p.rest.more = unused(out.K == nil, "k, ") + unused(out.Candidates == nil, "candidates, ")
			return out, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// unused returns the word of an option if it may still be given.
func unused(may bool, word string) string {
	if may {
		return word
	}
	return ""
}

func (p *parser) givenAgain(word token) error {
	return p.invalid(word.pos, "%s is given twice", shorten(word.text))
}

// vector reads a list of numbers, a text or a parameter.
func (p *parser) vector(after string) (Expr, error) {
	switch p.tok.kind {
	case kindParam:
		return p.param()
	case kindText:
		at := p.tok.pos
		return p.literals.one(Literal{Value: p.text(), Pos: at}), nil
	case '[':
		return p.numbers()
	}
	return nil, p.unexpected("a vector ([1, 2], a text or a parameter) after " + after)
}

// numbers reads `[1, -2.5]`.
func (p *parser) numbers() (Expr, error) {
	out := &ListExpr{Pos: p.tok.pos}
	p.advance()
	if p.takeKind(']') {
		return out, nil
	}
	for {
		at, negative := p.tok.pos, p.takeKind('-')
		if p.tok.kind != kindInt && p.tok.kind != kindNumber {
			return nil, p.unexpected("a number, as a vector is of numbers")
		}
		x, err := p.number(at, negative)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, x)
		if !p.takeKind(',') {
			return out, p.want(']', "a comma and the next number, or ]")
		}
	}
}

// checkSearch fails on clauses that near, match, rerank and fuse exclude.
func (p *parser) checkSearch(st *Get) error {
	word, at := st.search()
	switch {
	case word == "":
		return nil
	case st.Grouped() || st.Having != nil:
		return p.invalid(at, "%s answers documents by their scores, and aggregates answer groups of them", word)
	case len(st.Lookups) > 0:
		return p.invalid(at, "%s does not combine with lookup", word)
	case st.Fuse != nil && (st.Near == nil || st.Match == nil):
		return p.invalid(st.Fuse.Pos, "fuse joins a match and a near: expected both")
	case st.Rerank != nil && st.Near != nil:
		return p.invalid(st.Rerank.Pos, "rerank orders by a distance of its own and does not combine with near")
	case st.Rerank != nil && st.Match == nil:
		return p.invalid(st.Rerank.Pos, "rerank reorders what a match found, and there is none; nearest first without one is near")
	case st.Near != nil && st.Match != nil && st.Fuse == nil:
		return p.invalid(at, "near and match together want fuse, which joins their two orders")
	case st.Fuse != nil && st.Order != nil:
		return p.invalid(st.Order[0].Expr.Position(), "fuse answers the best ranks first and takes no order")
	case st.Near != nil && st.Order != nil:
		return p.invalid(st.Order[0].Expr.Position(), "near answers nearest first and takes no order")
	case st.Rerank != nil && st.Order != nil:
		return p.invalid(st.Order[0].Expr.Position(), "rerank answers nearest first and takes no order")
	}
	return nil
}

// search returns the first word of the clauses that score rows, with its place, or an empty word.
func (st *Get) search() (string, Pos) {
	switch {
	case st.Near != nil:
		return "near", st.Near.Pos
	case st.Match != nil:
		return "match", st.Match.Pos
	case st.Rerank != nil:
		return "rerank", st.Rerank.Pos
	case st.Fuse != nil:
		return "fuse", st.Fuse.Pos
	}
	return "", Pos{}
}

// appendSearch writes the clauses that score rows.
func (st *Get) appendSearch(b []byte) []byte {
	if n := st.Near; n != nil {
		b = append(append(b, " near "...), n.Field.Text...)
		b = appendClause(b, " ", n.Vector)
		b = appendClause(b, " ef ", n.EF)
		if n.Exact {
			b = append(b, " exact"...)
		}
	}
	if m := st.Match; m != nil {
		b = append(append(b, " match "...), m.Field.Text...)
		b = appendClause(b, " ", m.Text)
	}
	if r := st.Rerank; r != nil {
		b = append(append(b, " rerank "...), r.Field.Text...)
		b = appendClause(b, " ", r.Vector)
		b = appendClause(b, " candidates ", r.Candidates)
	}
	if f := st.Fuse; f != nil {
		b = append(b, " fuse"...)
		b = appendClause(b, " k ", f.K)
		b = appendClause(b, " candidates ", f.Candidates)
	}
	return b
}
