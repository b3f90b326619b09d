package syntax

// changeClauses reads the clauses of a set or del.
func (p *parser) changeClauses(c *clauses) error {
	if err := p.clauses(c, changeClauses); err != nil {
		return err
	}
	if word, bit := p.clauseHere(searchClauses); bit != 0 {
		return p.invalid(p.tok.pos, "%s is for a get; a set or del takes the rows of its where, order and limit", word)
	}
	return p.noAggregate(c.order)
}

// returning reads the items of a returning.
func (p *parser) returning() (*Returning, error) {
	items, err := p.selectItems()
	if err != nil {
		return nil, err
	}
	if a := aggregateOf(items); a != nil {
		return nil, p.invalid(a.Pos, "returning answers the rows written, and %s is no field of one", a)
	}
	p.rest.more = moreItems(items)
	return &Returning{items}, nil
}

// setItems reads `{field: value, ...}` with at least one item.
func (p *parser) setItems() ([]Item, error) {
	if p.tok.kind != '{' {
		return nil, p.unexpected("{ and the fields to set")
	}
	at := p.tok.pos
	items, err := p.items()
	if err == nil && len(items) == 0 {
		err = p.invalid(at, "set: expected a field to set, found {}")
	}
	return items, err
}

// set reads `C {...} clauses`.
func (p *parser) set() (Statement, error) {
	st := &Set{}
	var c clauses
	var err error
	if st.Collection, err = p.collection(); err != nil {
		return nil, err
	}
	if st.Items, err = p.setItems(); err != nil {
		return nil, err
	}
	if err = p.changeClauses(&c); err != nil {
		return nil, err
	}
	st.Where, st.Order, st.Limit, st.Returning, st.Require = c.where, c.order, c.limit, c.returning, c.require
	return st, nil
}

// del reads `C clauses`.
func (p *parser) del() (Statement, error) {
	st := &Delete{}
	var c clauses
	var err error
	if st.Collection, err = p.collection(); err != nil {
		return nil, err
	}
	if err = p.changeClauses(&c); err != nil {
		return nil, err
	}
	st.Where, st.Order, st.Limit, st.Returning, st.Require = c.where, c.order, c.limit, c.returning, c.require
	return st, nil
}
