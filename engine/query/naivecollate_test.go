package query

import (
	"golang.org/x/text/collate"
	"golang.org/x/text/language"

	"fenec/engine/collation"
	"fenec/engine/query/syntax"
)

// collators order texts the library's way.
var collators = map[collation.Collation]*collate.Collator{
	collation.Root: collate.New(language.Und), collation.Turkish: collate.New(language.Turkish),
}

// orderBy is order with texts in the order of a collation.
func orderBy(c collation.Collation, a, b any) int {
	x, ok := a.(string)
	y, also := b.(string)
	if c == collation.None || !ok || !also {
		return order(a, b)
	}
	return collators[c].CompareString(x, y)
}

// collationOfField is that of the generated collection's fields.
func collationOfField(field string) collation.Collation {
	if field == "u" {
		return collation.Root
	}
	return collation.None
}

// declaredOn is the collation of what an expression reads, if it is a field or a min or max of one.
func declaredOn(e syntax.Expr) collation.Collation {
	switch e := e.(type) {
	case *syntax.Path:
		return collationOfField(e.Parts[0])
	case *syntax.Aggregate:
		if e.Name == "min" || e.Name == "max" {
			return collationOfField(e.Arg.Text)
		}
	}
	return collation.None
}

// orderOf orders two values under a key that orders by e.
func orderOf(k syntax.OrderKey, e syntax.Expr, a, b any) int {
	by := k.Collate
	if by == collation.None {
		by = declaredOn(e)
	}
	if k.Desc {
		return orderBy(by, b, a)
	}
	return orderBy(by, a, b)
}
