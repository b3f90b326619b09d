package syntax

// lookups reads the levels `lookup C on child [= parent] clauses` after the clauses c of a get.
func (p *parser) lookups(c *clauses, top Name) ([]Lookup, error) {
	var out []Lookup
	for p.take("lookup") {
		level, err := p.lookup(c)
		if err != nil {
			return nil, err
		}
		name := level.Collection
		if name.Text == top.Text {
			return nil, p.invalid(name.Pos, "a collection can occur only once in a chain of lookups, and %s is in it already", shorten(name.Text))
		}
		for i := range out {
			if out[i].Collection.Text == name.Text {
				return nil, p.invalid(name.Pos, "%s is looked up twice in one chain", shorten(name.Text))
			}
		}
		if len(out) == MaxLookups {
			return nil, p.invalid(name.Pos, "a chain of lookups has at most %d levels", MaxLookups)
		}
		out = append(out, level)
	}
	return out, nil
}

// lookup reads one level after its word. A count in it belongs to the get.
func (p *parser) lookup(of *clauses) (out Lookup, err error) {
	if out.Collection, err = p.collection(); err != nil {
		return out, err
	}
	if err = p.wantWord("on", "on and the field of "+shorten(out.Collection.Text)+" that says whose it is"); err != nil {
		return out, err
	}
	if out.On, err = p.fieldName("a field's name after on", "lookup"); err != nil {
		return out, err
	}
	if p.takeKind('=') {
		parent, err := p.fieldName("the field of the level above that it equals", "lookup")
		if err != nil {
			return out, err
		}
		out.Parent = &parent
	}
	c := clauses{}
	if err = p.clauses(&c, levelClauses); err != nil {
		return out, err
	}
	if word, bit := p.clauseHere(groupClauses | searchClauses); bit != 0 {
		return out, p.invalid(p.tok.pos, "a lookup answers the documents of each row above it and takes no %s", word)
	}
	if a := aggregateOf(c.selected); a != nil {
		return out, p.invalid(a.Pos, "a lookup answers documents and takes no aggregate")
	}
	if c.count {
		if of.given&clausesOfRows != 0 || of.count {
			return out, p.invalid(out.Collection.Pos, "the count after lookup %s is that of the whole get, which takes it once and without clauses that are for rows", shorten(out.Collection.Text))
		}
		of.count = true
	}
	out.Required, out.Select, out.Where, out.Order, out.Limit, out.Offset = c.required, c.selected, c.where, c.order, c.limit, c.offset
	return out, p.noAggregate(c.order)
}

// checkLookups fails on clauses that a chain of lookups excludes.
func (p *parser) checkLookups(st *Get) error {
	for i := range st.Lookups {
		l := &st.Lookups[i]
		switch {
		case st.Grouped():
			return p.invalid(l.Collection.Pos, "lookup adds to documents, and aggregates return groups of them")
		case st.Count && !l.Required:
			return p.invalid(l.Collection.Pos, "count with lookup %s needs it to be required: otherwise every row counts", shorten(l.Collection.Text))
		case st.Count && (l.Select != nil || l.Order != nil || l.Limit != nil || l.Offset != nil):
			return p.invalid(l.Collection.Pos, "lookup %s with count takes only where; select, order, limit and offset are for rows", shorten(l.Collection.Text))
		}
	}
	return nil
}

func (l *Lookup) append(b []byte) []byte {
	b = append(append(b, " lookup "...), l.Collection.Text...)
	b = append(append(b, " on "...), l.On.Text...)
	if l.Parent != nil {
		b = append(append(b, " = "...), l.Parent.Text...)
	}
	if l.Required {
		b = append(b, " required"...)
	}
	if l.Select != nil {
		b = appendSelect(append(b, " select "...), l.Select)
	}
	b = appendClause(b, " where ", l.Where)
	b = appendOrder(b, l.Order)
	b = appendClause(b, " limit ", l.Limit)
	return appendClause(b, " offset ", l.Offset)
}
