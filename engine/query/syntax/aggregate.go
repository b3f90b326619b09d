package syntax

import "strings"

// aggregates are the names of the aggregate functions.
var aggregates = [...]string{"count", "sum", "avg", "min", "max"}

// String returns the aggregate as it is written.
func (x *Aggregate) String() string {
	switch {
	case x.Arg == nil:
		return x.Name + "(*)"
	case x.Distinct:
		return x.Name + "(distinct " + x.Arg.Text + ")"
	}
	return x.Name + "(" + x.Arg.Text + ")"
}

// atAggregate reports whether the current token begins an aggregate.
func (p *parser) atAggregate() bool {
	return p.tok.kind == kindName && p.peek().kind == '(' && p.tok.anyOf(aggregates[:]...)
}

// aggregate reads `name(field)`, `count(distinct field)` or `count(*)`.
func (p *parser) aggregate() (*Aggregate, error) {
	out := &Aggregate{Name: strings.ToLower(p.tok.text), Pos: p.tok.pos}
	p.advance()
	p.advance()
	if p.tok.kind == '*' {
		if out.Name != "count" {
			return nil, p.invalid(p.tok.pos, "%s: expected a field; only count takes *", out.Name)
		}
		p.advance()
		return out, p.want(')', ") after count(*")
	}
	if p.tok.is("distinct") && p.peek().kind == kindName { // followed by anything else it is a field
		if out.Name != "count" {
			return nil, p.invalid(p.tok.pos, "%s takes every value; only count takes distinct", out.Name)
		}
		out.Distinct = true
		p.advance()
	}
	wanted := "a field's name"
	if out.Name == "count" && !out.Distinct {
		wanted = "* or a field's name"
	}
	arg, err := p.fieldName(wanted, out.Name)
	if err != nil {
		return nil, err
	}
	out.Arg = &arg
	return out, p.want(')', ") after the field, as an aggregate takes no expression")
}

// fieldName reads a name that must not continue as a path; who names the clause, for the error.
func (p *parser) fieldName(wanted, who string) (Name, error) {
	name, err := p.name(wanted)
	if err == nil && p.tok.kind == '.' {
		return name, p.invalid(name.Pos, "%s takes the name of a field, not a path", who)
	}
	return name, err
}

// groupKey reads `[by] field`.
func (p *parser) groupKey() (*Name, error) {
	if p.tok.is("by") && p.peek().kind == kindName {
		p.advance()
	}
	name, err := p.fieldName("the field to group by", "group")
	if err == nil && p.tok.kind == ',' {
		err = p.invalid(p.tok.pos, "group takes one field")
	}
	return &name, err
}

// havingCondition reads a condition that may contain aggregates.
func (p *parser) havingCondition() (Expr, error) {
	p.having = true
	x, err := p.expression("a condition after having")
	p.having = false
	return x, err
}

// aggregateOf returns the first aggregate among items, or nil.
func aggregateOf(items []SelectItem) *Aggregate {
	for i := range items {
		if a, ok := items[i].Expr.(*Aggregate); ok {
			return a
		}
	}
	return nil
}

// noAggregate fails on an aggregate in the order of documents.
func (p *parser) noAggregate(order []OrderKey) error {
	for _, k := range order {
		if a, ok := k.Expr.(*Aggregate); ok {
			return p.invalid(a.Pos, "order by %s is for groups, and the statement makes none", a)
		}
	}
	return nil
}

// checkGrouped fails on a select list that mixes aggregates with values that a group does not have one of, and
// on clauses of groups if the get is not grouped.
func (p *parser) checkGrouped(st *Get) error {
	if !st.Grouped() {
		if st.Having != nil {
			return p.invalid(st.Having.Position(), "having is for groups: select an aggregate, or group by a field")
		}
		return p.noAggregate(st.Order)
	}
	keyed := false
	for i := range st.Select {
		item := &st.Select[i]
		if _, ok := item.Expr.(*Aggregate); ok {
			continue
		}
		path, ok := item.Expr.(*Path)
		switch {
		case !ok:
			return p.invalid(item.Pos, "an expression has no single value in a group: select aggregates and the field to group by")
		case st.Group == nil:
			return p.invalid(item.Pos, "%s is selected together with an aggregate and has to be grouped by: add group %s", path.text(), path.text())
		case len(path.Parts) > 1 || path.Parts[0] != st.Group.Text:
			return p.invalid(item.Pos, "%s has no one value in a group by %s; select that field or aggregates", path.text(), st.Group.Text)
		}
		keyed = true
	}
	if st.Group != nil && !keyed {
		return p.invalid(st.Group.Pos, "group by %s: expected %s in the select list", st.Group.Text, st.Group.Text)
	}
	return nil
}
