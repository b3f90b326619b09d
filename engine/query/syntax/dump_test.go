package syntax

import (
	"fmt"
	"strings"

	"fenec/engine/doc"
)

// dump writes an expression with every operator before its operands, an f after a float and a d
// after a decimal, so that a test shows how it was read.
func dump(x Expr) string {
	switch x := x.(type) {
	case nil:
		return "none"
	case *Literal:
		return dumpLiteral(x.Value)
	case *Param:
		return fmt.Sprintf("$%d", x.N)
	case *Path:
		return strings.Join(x.Parts, ".")
	case *ListExpr:
		return "[" + dumpAll(x.Items, " ") + "]"
	case *ObjectExpr:
		return "{" + dumpItems(x.Items) + "}"
	case *Unary:
		op := x.Op.String()
		if x.Op == Neg {
			op = "neg"
		}
		return "(" + op + " " + dump(x.X) + ")"
	case *Binary:
		return fmt.Sprintf("(%s %s %s)", x.Op, dump(x.X), dump(x.Y))
	case *Logic:
		return fmt.Sprintf("(%s %s)", x.Op, dumpAll(x.Terms, " "))
	case *Case:
		out := "(case"
		for _, w := range x.Whens {
			out += " " + dump(w.Cond) + " -> " + dump(w.Then) + ","
		}
		return out + " else " + dump(x.Else) + ")"
	case *InnerGet:
		return "(" + x.Get.String() + ")"
	case *Aggregate:
		return x.String()
	case *Call:
		return "(" + strings.Join(append([]string{x.Name}, dumpEach(x.Args)...), " ") + ")"
	}
	return fmt.Sprintf("unknown %T", x)
}

func dumpLiteral(v doc.Value) string {
	if v.Kind == doc.Text {
		return fmt.Sprintf("%q", v.B)
	}
	s := strings.TrimSuffix(string(appendLiteral(nil, v)), ".0")
	switch v.Kind {
	case doc.Float:
		return s + "f"
	case doc.Decimal:
		return s + "d"
	}
	return s
}

func dumpEach(xs []Expr) []string {
	out := make([]string, len(xs))
	for i, x := range xs {
		out[i] = dump(x)
	}
	return out
}

func dumpAll(xs []Expr, sep string) string { return strings.Join(dumpEach(xs), sep) }

func dumpItems(items []Item) string {
	out := make([]string, len(items))
	for i, it := range items {
		key := it.Key.text()
		if len(it.Key.Parts) == 1 && !IsName(key) {
			key = fmt.Sprintf("%q", key)
		}
		out[i] = key + ": " + dump(it.Value)
	}
	return strings.Join(out, " ")
}
