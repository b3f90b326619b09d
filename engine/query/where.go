package query

import (
	"slices"

	"fenec/engine/collation"
	"fenec/engine/doc"
	"fenec/engine/index"
	"fenec/engine/query/syntax"
)

// probe is a term that compares a column with a constant. An index may replace its test.
type probe struct {
	column  *column
	rel     relation // of a comparison
	operand int
	member  bool // `in`: the operand's values
	isNull  bool // `is null`, without an operand
	notNull bool // `is not null`, without an operand
}

// ranged reports whether the rows that pass the probe lie between two bounds of a sorted index.
func (p *probe) ranged() bool { return p.isNull || p.notNull || !p.member && p.rel != less|greater }

// approximate reports whether a sorted index finds more than the rows that pass the probe: equality of texts is by
// bytes, and under a collation other texts are equal too.
func (p *probe) approximate() bool {
	return p.column.collate != collation.None && (p.member || p.rel == equal)
}

// bounds returns the bounds of a ranged probe.
func (p *probe) bounds(f *frame) (lo, hi index.Bound, none bool) {
	switch {
	case p.isNull:
		null := index.Bound{Inclusive: true}
		return null, null, false
	case p.notNull:
		return aboveNull, index.Bound{Unbounded: true}, false
	}
	o := &f.operands[p.operand]
	return o.lo, o.hi, o.null
}

// term is one member of a statement's and chain.
type term struct {
	test  testFunc
	probe *probe      // nil if no index could answer it
	expr  syntax.Expr // nil for a required lookup
}

// where compiles a condition to the terms that a row must pass. Those that compare a column with constants
// are first.
func (c *compiler) where(e syntax.Expr) ([]term, error) {
	if e == nil {
		return nil, nil
	}
	var terms []term
	if err := c.terms(e, &terms); err != nil {
		return nil, err
	}
	slices.SortStableFunc(terms, func(a, b term) int {
		if (a.probe != nil) == (b.probe != nil) {
			return 0
		}
		if a.probe != nil {
			return -1
		}
		return 1
	})
	return terms, nil
}

func (c *compiler) terms(e syntax.Expr, into *[]term) error {
	if l, ok := e.(*syntax.Logic); ok && l.Op == syntax.And {
		for _, t := range l.Terms {
			if err := c.terms(t, into); err != nil {
				return err
			}
		}
		return nil
	}
	n, p, err := c.term(e)
	if err != nil {
		return err
	}
	test, err := c.condition(n, "where")
	if err != nil {
		return err
	}
	*into = append(*into, term{test: test, probe: p, expr: e})
	return nil
}

// term compiles one member of an and chain.
func (c *compiler) term(e syntax.Expr) (node, *probe, error) {
	switch e := e.(type) {
	case *syntax.Binary:
		return c.binary(e)
	case *syntax.Path:
		n, err := c.path(e)
		if err == nil && n.kind == doc.Bool {
			n, p := c.compare(equal, n, literal(doc.BoolValue(true), e.Pos), e.Pos)
			return n, p, nil
		}
		return n, nil, err
	case *syntax.Unary:
		if e.Op != syntax.IsNull && e.Op != syntax.IsNotNull {
			break
		}
		x, err := c.expr(e.X)
		if err != nil {
			return node{}, nil, err
		}
		n := predicate(nullTest(x, e.Op == syntax.IsNull), x.constant, e.Pos)
		if x.column == nil || x.column.id {
			return n, nil, nil
		}
		return n, &probe{column: x.column, isNull: e.Op == syntax.IsNull, notNull: e.Op == syntax.IsNotNull}, nil
	}
	n, err := c.expr(e)
	return n, nil, err
}
