package query

import (
	"cmp"

	"fenec/engine/collation"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// What is ordered by a collation: the keys of an order by the one they name, else by the one their field is
// declared with; comparisons by < <= > >=, min and max by their field's. What is told apart, by = and in, by
// indexes on values and by groups, is told apart by bytes.

// collationOf is the collation of an order's key: the one it names, else the one declared on what it orders.
func collationOf(k syntax.OrderKey, what string, typ doc.Type, declared collation.Collation) (collation.Collation, error) {
	if k.Collate == collation.None {
		return declared, nil
	}
	if typ.Kind != doc.TypeText && typ.Kind != doc.TypeJSON {
		return 0, errorAt(fail.Invalid, k.Expr.Position(), "collate orders texts, and %s is %s", what, typ)
	}
	return k.Collate, nil
}

// oneCollation refuses < and the like between fields that are declared with different collations.
func oneCollation(op syntax.Op, x, y node, pos syntax.Pos) error {
	if x.collate == y.collate || x.collate == collation.None || y.collate == collation.None || relations[op].equality() {
		return nil
	}
	return errorAt(fail.Invalid, pos, "%s wants one collation, got a field with %s and one with %s", opText[op], x.collate, y.collate)
}

// collated is the collation that x and y are compared by.
func collated(x, y node) collation.Collation { return cmp.Or(x.collate, y.collate) }

// byBytes is a field without its collation. An index in the order of that does not answer for it.
func byBytes(n node) node {
	col := *n.column
	col.collate = collation.None
	n.column, n.collate = &col, collation.None
	return n
}

// orderedBy words the order of an index.
func orderedBy(c collation.Collation) string {
	if c == collation.None {
		return "by bytes"
	}
	return "by " + c.String()
}
