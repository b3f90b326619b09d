package query

import (
	"strings"

	"fenec/engine/collation"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// evalFunc returns the value of an expression for the frame's row. The bytes of the value are in the document,
// the parameters or the frame's arena, and are valid until the next row. After an error, which is stored in
// the frame, it returns null.
type evalFunc func(f *frame) doc.Value

// node is a compiled expression.
type node struct {
	eval     evalFunc
	test     testFunc // of a condition; nil for another expression
	bare     evalFunc // of a parameter: its value as given, doc.Untyped if the caller knows no type; else nil
	kind     doc.Kind // of the value if it is not null; doc.Untyped if it depends on the row
	constant bool     // the same for every row of a run
	fixed    bool     // the same for every run: a literal
	column   *column  // of a field or path alone; else nil
	list     []node   // the items of a list written out
	pos      syntax.Pos

	collate collation.Collation // of a field, a key of groups, or a min or max of one: what it is ordered by
}

// described describes a node for an error: its kind, or which field it is.
func (n node) described() string {
	if n.column != nil {
		return n.column.what + ", which is " + n.column.typ.String()
	}
	return n.kind.String()
}

// given returns the node's value before its type is known.
func (n node) given() evalFunc {
	if n.bare != nil {
		return n.bare
	}
	return n.eval
}

// compiler compiles one statement.
type compiler struct {
	reader  Reader
	plan    *Plan
	schema  *doc.Schema // of the statement's collection; nil if expressions read no row
	grouped *groupPlan  // if expressions read a group and no row; else nil
	why     string      // if schema is nil: why there is no row
}

// errorAt returns a statement's error with its place.
func errorAt(k fail.Kind, pos syntax.Pos, format string, args ...any) error {
	return fail.At(k, pos.Line, pos.Column, format, args...)
}

// collection returns the schema a statement names.
func (c *compiler) collection(name syntax.Name) (*doc.Schema, error) {
	t := c.reader.Table(name.Text)
	if t == nil {
		return nil, errorAt(fail.NotFound, name.Pos, "there is no collection %s", name.Text)
	}
	return t.Schema(), nil
}

// bind adds a function that runs at the start of each run, and returns the number of the operand for its result.
func (c *compiler) bind(b func(f *frame, o *operand) error) int {
	i := len(c.plan.binds)
	c.plan.binds = append(c.plan.binds, func(f *frame) error { return b(f, &f.operands[i]) })
	return i
}

// expr compiles any expression.
func (c *compiler) expr(e syntax.Expr) (node, error) {
	c.plan.nodes++
	switch e := e.(type) {
	case *syntax.Literal:
		return literal(e.Value, e.Pos), nil
	case *syntax.Param:
		return c.param(e), nil
	case *syntax.Path:
		return c.path(e)
	case *syntax.ListExpr:
		return c.list(e)
	case *syntax.ObjectExpr:
		return c.object(e)
	case *syntax.Unary:
		return c.unary(e)
	case *syntax.Binary:
		n, _, err := c.binary(e)
		return n, err
	case *syntax.Logic:
		return c.logic(e)
	case *syntax.Case:
		return c.caseOf(e)
	case *syntax.Call:
		return c.call(e)
	case *syntax.Aggregate:
		cell, err := c.aggregate(c.grouped, e)
		if err != nil {
			return node{}, err
		}
		return c.groupNode(cell, e.Pos), nil
	}
	return node{}, errorAt(fail.Invalid, e.Position(), "a get in parentheses can only follow in")
}

func literal(v doc.Value, pos syntax.Pos) node {
	kind := v.Kind
	if kind == doc.Null {
		kind = doc.Untyped
	}
	return node{eval: func(*frame) doc.Value { return v }, kind: kind, constant: true, fixed: true, pos: pos}
}

// param compiles $N. Untyped text for which no type is expected is read as JSON if it parses, else as text.
func (c *compiler) param(e *syntax.Param) node {
	c.plan.params = max(c.plan.params, e.N)
	i := e.N - 1
	bare := func(f *frame) doc.Value { return f.params[i] }
	return node{eval: settled(bare, e.Pos), bare: bare, kind: doc.Untyped, constant: true, pos: e.Pos}
}

// settled reads untyped text as JSON does.
func settled(bare evalFunc, pos syntax.Pos) evalFunc {
	return func(f *frame) doc.Value {
		v := bare(f)
		if v.Kind != doc.Untyped {
			return v
		}
		v, err := doc.Type{Kind: doc.TypeJSON}.Convert(v, "the parameter")
		if err != nil {
			return f.setErr(pos, err)
		}
		return v
	}
}

// as returns n for a place that expects the given kind: an untyped parameter is read as that kind.
func (n node) as(kind doc.Kind) node {
	if n.bare == nil {
		return n
	}
	bare, pos := n.bare, n.pos
	var typ doc.Type
	switch kind {
	case doc.Text:
		typ.Kind = doc.TypeText
	case doc.Timestamp:
		typ.Kind = doc.TypeTimestamp
	default:
		return n
	}
	n.eval = func(f *frame) doc.Value {
		v := bare(f)
		if v.Kind != doc.Untyped {
			return v
		}
		v, err := typ.Convert(v, "the parameter")
		if err != nil {
			return f.setErr(pos, err)
		}
		return v
	}
	return n
}

func (c *compiler) path(e *syntax.Path) (node, error) {
	if c.grouped != nil {
		cell, err := c.groupCell(e)
		if err != nil {
			return node{}, err
		}
		return c.groupNode(cell, e.Pos), nil
	}
	if c.schema == nil {
		return node{}, errorAt(fail.Invalid, e.Pos, "%s, so it cannot read %s", c.why, strings.Join(e.Parts, "."))
	}
	col, err := resolve(c.schema, e.Parts, e.Pos)
	if err != nil {
		return node{}, err
	}
	return columnNode(col, e.Pos), nil
}

// condition returns the test of an expression whose value is a bool; any other value is unknown.
func condition(n node) testFunc {
	eval := n.eval
	return func(f *frame) truth {
		if v := eval(f); v.Kind == doc.Bool {
			return truthOf(v.N != 0)
		}
		return unknown
	}
}

// condition is n as a test; what names its place. If the kind depends on the row, as for a path, a value that is not a
// bool is unknown. A parameter that is not a bool is refused before the first row.
func (c *compiler) condition(n node, what string) (testFunc, error) {
	switch {
	case n.test != nil:
		return n.test, nil
	case n.kind != doc.Untyped && n.kind != doc.Bool:
		return nil, errorAt(fail.Invalid, n.pos, "%s: expected a condition, got %s", what, n.kind)
	case n.bare != nil:
		eval := n.eval
		c.bind(func(f *frame, _ *operand) error {
			v := eval(f)
			if err := f.take(); err != nil || v.Kind == doc.Bool || v.Kind == doc.Null {
				return err
			}
			return errorAt(fail.Invalid, n.pos, "%s: expected a condition, got %s", what, doc.Describe(v))
		})
	}
	return condition(n), nil
}

// predicate returns the node of a test.
func predicate(test testFunc, constant bool, pos syntax.Pos) node {
	return node{
		eval: func(f *frame) doc.Value {
			switch test(f) {
			case yes:
				return doc.Value{Kind: doc.Bool, N: 1}
			case no:
				return doc.Value{Kind: doc.Bool}
			}
			return doc.Value{}
		},
		test: test, kind: doc.Bool, constant: constant, pos: pos,
	}
}

func (c *compiler) logic(e *syntax.Logic) (node, error) {
	tests := make([]testFunc, len(e.Terms))
	constant := true
	word := "and"
	if e.Op == syntax.Or {
		word = "or"
	}
	for i, t := range e.Terms {
		n, err := c.expr(t)
		if err != nil {
			return node{}, err
		}
		if tests[i], err = c.condition(n, word); err != nil {
			return node{}, err
		}
		constant = constant && n.constant
	}
	if e.Op == syntax.Or {
		return predicate(anyOf(tests), constant, e.Pos), nil
	}
	return predicate(allOf(tests), constant, e.Pos), nil
}

func (c *compiler) unary(e *syntax.Unary) (node, error) {
	x, err := c.expr(e.X)
	if err != nil {
		return node{}, err
	}
	switch e.Op {
	case syntax.Not:
		test, err := c.condition(x, "not")
		if err != nil {
			return node{}, err
		}
		return predicate(func(f *frame) truth { return test(f).not() }, x.constant, e.Pos), nil
	case syntax.IsNull, syntax.IsNotNull:
		return predicate(nullTest(x, e.Op == syntax.IsNull), x.constant, e.Pos), nil
	}
	return negated(x, e.Pos)
}

// nullTest tests whether n is null. A field need not be decoded for that.
func nullTest(n node, want bool) testFunc {
	if col := n.column; col != nil && !col.id {
		return func(f *frame) truth { return truthOf((col.raw(f.doc).Kind() == doc.Null) == want) }
	}
	eval := n.eval
	return func(f *frame) truth { return truthOf((eval(f).Kind == doc.Null) == want) }
}

// caseOf compiles `case`: the value of the first arm whose condition is true.
func (c *compiler) caseOf(e *syntax.Case) (node, error) {
	type arm struct {
		cond testFunc
		then evalFunc
	}
	arms := make([]arm, len(e.Whens))
	out := node{constant: true, pos: e.Pos}
	var kinds []doc.Kind
	for i, w := range e.Whens {
		cond, err := c.expr(w.Cond)
		if err != nil {
			return node{}, err
		}
		if arms[i].cond, err = c.condition(cond, "when"); err != nil {
			return node{}, err
		}
		then, err := c.expr(w.Then)
		if err != nil {
			return node{}, err
		}
		arms[i].then = then.eval
		out.constant = out.constant && cond.constant && then.constant
		kinds = appendKind(kinds, w.Then, then)
	}
	last, err := c.expr(e.Else)
	if err != nil {
		return node{}, err
	}
	out.constant = out.constant && last.constant
	out.kind = commonKind(appendKind(kinds, e.Else, last))
	out.eval = func(f *frame) doc.Value {
		for i := range arms {
			if arms[i].cond(f) == yes {
				return arms[i].then(f)
			}
			if f.err != nil {
				return doc.Value{}
			}
		}
		return last.eval(f)
	}
	return out, nil
}

// appendKind adds the kind of one alternative of an expression; the literal null, which fits any, adds
// none.
func appendKind(kinds []doc.Kind, e syntax.Expr, n node) []doc.Kind {
	if l, ok := e.(*syntax.Literal); ok && l.Value.Kind == doc.Null {
		return kinds
	}
	return append(kinds, n.kind)
}

// commonKind returns the kind that all alternatives share, or doc.Untyped if they differ.
func commonKind(kinds []doc.Kind) doc.Kind {
	if len(kinds) == 0 {
		return doc.Untyped
	}
	for _, k := range kinds {
		if k != kinds[0] {
			return doc.Untyped
		}
	}
	return kinds[0]
}
