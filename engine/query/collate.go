package query

import (
	"cmp"

	"fenec/engine/collation"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// Collations define orders: the keys of an order use the one they name, else the one their field is declared
// with; comparisons by < <= > >=, min and max use their field's. Equality, by = and in, in indexes on values
// and in groups, is that of bytes.

// collationOf returns the collation of an order's key: the one it names, else the one declared on what it orders.
func collationOf(k syntax.OrderKey, what string, typ doc.Type, declared collation.Collation) (collation.Collation, error) {
	if k.Collate == collation.None {
		return declared, nil
	}
	if typ.Kind != doc.TypeText && typ.Kind != doc.TypeJSON {
		return 0, errorAt(fail.Invalid, k.Expr.Position(), "collate orders texts, and %s is %s", what, typ)
	}
	return k.Collate, nil
}

// oneCollation fails for < and the like between fields that are declared with different collations.
func oneCollation(op syntax.Op, x, y node, pos syntax.Pos) error {
	if x.collate == y.collate || x.collate == collation.None || y.collate == collation.None || relations[op].equality() {
		return nil
	}
	return errorAt(fail.Invalid, pos, "%s: expected one collation, got a field with %s and one with %s", opText[op], x.collate, y.collate)
}

// collated returns the collation that x and y are compared by.
func collated(x, y node) collation.Collation { return cmp.Or(x.collate, y.collate) }

// byBytes returns a field without its collation. An index in the order of the collation cannot be used for it.
func byBytes(n node) node {
	col := *n.column
	col.collate = collation.None
	n.column, n.collate = &col, collation.None
	return n
}

// orderedBy describes the order of an index.
func orderedBy(c collation.Collation) string {
	if c == collation.None {
		return "by bytes"
	}
	return "by " + c.String()
}
