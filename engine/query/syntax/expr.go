package syntax

import "fenec/engine/doc"

// How tightly operators bind, loosest first.
const (
	bindNone = iota
	bindOr
	bindAnd
	bindNot
	bindCompare
	bindSum
	bindProduct
	bindSign
)

// A node's height is how many levels of parentheses and operators nest in it, 0 for a field or a
// constant. Together with the levels around it that is its depth. MaxDepth bounds it to bound the
// stack of the parser and of any code that walks a tree.

// expression reads one expression; what names it in the error if none begins.
func (p *parser) expression(what string) (Expr, error) {
	x, _, err := p.binary(bindNone, what)
	return x, err
}

// binary reads an operand and the operators after it that bind tighter than min.
func (p *parser) binary(min int, what string) (Expr, int, error) {
	x, height, err := p.operand(min, what)
	if err != nil {
		return nil, 0, err
	}
	for {
		op, bind := p.operator()
		if bind <= min {
			return x, height, nil
		}
		switch bind {
		case bindOr, bindAnd:
			x, height, err = p.chain(op, bind, x, height)
		case bindCompare:
			x, height, err = p.comparison(op, x, height)
		default:
			x, height, err = p.arithmetic(op, bind, x, height)
		}
		if err != nil {
			return nil, 0, err
		}
	}
}

// operator returns the operator that the current token is or begins, and how it binds: bindNone if
// the expression ends here. `is` is IsNull, and `not in` is Not.
func (p *parser) operator() (Op, int) {
	switch p.tok.kind {
	case '=':
		return Eq, bindCompare
	case kindNe:
		return Ne, bindCompare
	case '<':
		return Lt, bindCompare
	case kindLe:
		return Le, bindCompare
	case '>':
		return Gt, bindCompare
	case kindGe:
		return Ge, bindCompare
	case '~':
		return Contains, bindCompare
	case '+':
		return Add, bindSum
	case '-':
		return Sub, bindSum
	case '*':
		return Mul, bindProduct
	case '/':
		return Div, bindProduct
	case '%':
		return Mod, bindProduct
	case kindName:
		return p.wordOperator()
	}
	return 0, bindNone
}

func (p *parser) wordOperator() (Op, int) {
	switch {
	case p.tok.is("and"):
		return And, bindAnd
	case p.tok.is("or"):
		return Or, bindOr
	case p.tok.is("in"):
		return In, bindCompare
	case p.tok.is("is"):
		return IsNull, bindCompare
	case p.tok.is("has"):
		return Has, bindCompare
	case p.tok.is("not") && p.peek().is("in"):
		return Not, bindCompare
	}
	return 0, bindNone
}

// enter goes a level deeper, for what the current token opens.
func (p *parser) enter(height int) error {
	p.depth++
	p.deepest = max(p.deepest, p.depth+height)
	if p.depth+height > MaxDepth {
		return p.invalid(p.tok.pos, "an expression nests at most %d levels of parentheses and operators", MaxDepth)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// chain reads the terms after x that are joined by the same operator. They are one level, however many they are.
func (p *parser) chain(op Op, bind int, x Expr, height int) (Expr, int, error) {
	logic := &Logic{Op: op, Pos: p.tok.pos}
	logic.add(x)
	if err := p.enter(height); err != nil {
		return nil, 0, err
	}
	for {
		p.advance()
		y, h, err := p.binary(bind, operandOf[op])
		if err != nil {
			return nil, 0, err
		}
		logic.add(y)
		height = max(height, h)
		if next, _ := p.operator(); next != op {
			p.leave()
			return logic, height + 1, nil
		}
	}
}

// add appends a term. The terms of a Logic of the same operator are appended one by one, even if it was in
// parentheses: the meaning is the same, and the planner then sees every condition of a filter.
func (l *Logic) add(term Expr) {
	if same, ok := term.(*Logic); ok && same.Op == l.Op {
		l.Terms = append(l.Terms, same.Terms...)
		return
	}
	l.Terms = append(l.Terms, term)
}

func (p *parser) arithmetic(op Op, bind int, x Expr, height int) (Expr, int, error) {
	at := p.tok.pos
	if err := p.enter(height); err != nil {
		return nil, 0, err
	}
	p.advance()
	y, h, err := p.binary(bind, operandOf[op])
	if err != nil {
		return nil, 0, err
	}
	p.leave()
	return &Binary{Op: op, X: x, Y: y, Pos: at}, max(height, h) + 1, nil
}

// comparison reads what follows x: an operator and a value, a list, or `is [not] null`. It adds no
// level, as comparisons nest only by parentheses.
func (p *parser) comparison(op Op, x Expr, height int) (Expr, int, error) {
	at := p.tok.pos
	if op != IsNull {
		if err := p.notNull(op, x); err != nil {
			return nil, 0, err
		}
	}
	p.advance()
	var out Expr
	var err error
	h := 0
	switch op {
	case IsNull:
		out, err = p.isNull(x, at)
	case In:
		out, h, err = p.in(x, at)
	case Not:
		out, h, err = p.notIn(x, height, at)
	default:
		out, h, err = p.compared(op, x, at)
	}
	if err != nil {
		return nil, 0, err
	}
	if _, bind := p.operator(); bind == bindCompare {
		return nil, 0, p.invalid(p.tok.pos, "comparisons do not chain, found %s; put parentheses around one or join them with and", &p.tok)
	}
	return out, max(height, h), nil
}

func (p *parser) compared(op Op, x Expr, at Pos) (Expr, int, error) {
	y, h, err := p.binary(bindCompare, operandOf[op])
	if err != nil {
		return nil, 0, err
	}
	if err := p.notNull(op, y); err != nil {
		return nil, 0, err
	}
	return &Binary{Op: op, X: x, Y: y, Pos: at}, h, nil
}

// notNull fails if an operand of a comparison is a literal null: it could never be true.
func (p *parser) notNull(op Op, x Expr) error {
	l, ok := x.(*Literal)
	if !ok || l.Value.Kind != doc.Null {
		return nil
	}
	switch op {
	case Ne:
		return p.invalid(l.Pos, "a comparison with null is never true; the condition is written is not null")
	case Not:
		op = In
	}
	return p.invalid(l.Pos, "%s with null is never true; the condition is written is null", comparisonName(op))
}

func comparisonName(op Op) string {
	switch op {
	case In, Has, Contains:
		return op.String()
	}
	return "a comparison"
}

func (p *parser) isNull(x Expr, at Pos) (Expr, error) {
	op, wanted := IsNull, "null or not null after is"
	if p.take("not") {
		op, wanted = IsNotNull, "null after is not"
	}
	return &Unary{Op: op, X: x, Pos: at}, p.wantWord("null", wanted)
}

// notIn reads the operand of in after not in.
func (p *parser) notIn(x Expr, height int, at Pos) (Expr, int, error) {
	if err := p.enter(height); err != nil {
		return nil, 0, err
	}
	p.advance()
	in, h, err := p.in(x, at)
	if err != nil {
		return nil, 0, err
	}
	p.leave()
	return &Unary{Op: Not, X: in, Pos: at}, max(height, h) + 1, nil
}

// in reads the list, parameter or inner get after in.
func (p *parser) in(x Expr, at Pos) (Expr, int, error) {
	const wanted = "a list [a, b], a parameter or (get ...) after in"
	var y Expr
	var err error
	h := 0
	switch p.tok.kind {
	case kindParam:
		y, err = p.param()
	case '[':
		y, h, err = p.list()
	case '(':
		if !p.peek().anyOf("get", "select") {
			return nil, 0, p.unexpected(wanted + " (lists are written in brackets)")
		}
		y, h, err = p.innerGet()
	default:
		return nil, 0, p.unexpected(wanted)
	}
	if err != nil {
		return nil, 0, err
	}
	return &Binary{Op: In, X: x, Y: y, Pos: at}, h, nil
}
