package syntax

import (
	"fenec/engine/doc"
)

// operand reads an operand with its prefix operators. min is how tightly the operator before it
// binds.
func (p *parser) operand(min int, what string) (Expr, int, error) {
	switch p.tok.kind {
	case kindName:
		return p.wordOperand(min, what)
	case kindInt, kindNumber:
		x, err := p.number(p.tok.pos, false)
		return x, 0, err
	case kindText:
		at := p.tok.pos
		return p.literals.one(Literal{Value: p.text(), Pos: at}), 0, nil
	case kindParam:
		x, err := p.param()
		return x, 0, err
	case '(':
		return p.parentheses()
	case '[':
		return p.list()
	case '{':
		return p.object()
	case '-':
		return p.negative()
	}
	return nil, 0, p.unexpected(what)
}

// parentheses reads `(expression)`. The tree has no node for it, only its height.
func (p *parser) parentheses() (Expr, int, error) {
	if err := p.enter(0); err != nil {
		return nil, 0, err
	}
	p.advance()
	x, height, err := p.binary(bindNone, "a value or condition after (")
	if err != nil {
		return nil, 0, err
	}
	p.leave()
	return x, height + 1, p.want(')', "an operator or )")
}

// negative reads a minus and what follows: a number, of whose constant it becomes part, or an operand.
func (p *parser) negative() (Expr, int, error) {
	at := p.tok.pos
	if k := p.peek().kind; k == kindInt || k == kindNumber {
		p.advance()
		x, err := p.number(at, true)
		return x, 0, err
	}
	if err := p.enter(0); err != nil {
		return nil, 0, err
	}
	p.advance()
	x, height, err := p.operand(bindSign, "a value after -")
	if err != nil {
		return nil, 0, err
	}
	p.leave()
	return &Unary{Op: Neg, X: x, Pos: at}, height + 1, nil
}

// wordOperand reads a constant, not, case, a function or a path. The words that begin an
// operand are fields if no operand follows.
func (p *parser) wordOperand(min int, what string) (Expr, int, error) {
	at := p.tok.pos
	next := p.peek().kind
	if next == '(' && !p.tok.is("not") {
		return p.call()
	}
	if next != '.' {
		if v, ok := constant(&p.tok); ok {
			p.advance()
			return p.literals.one(Literal{Value: v, Pos: at}), 0, nil
		}
		if p.tok.is("not") && !p.notIsField() {
			return p.not(min)
		}
		if p.tok.is("case") && p.peek().is("when") {
			return p.caseOf()
		}
	}
	path, err := p.path(what)
	if err != nil {
		return nil, 0, err
	}
	if p.tok.kind == '(' {
		return nil, 0, p.unexpected("an operator, as a path is no function")
	}
	return p.paths.one(path), 0, nil
}

// constant returns the value of true, false or null.
func constant(t *token) (doc.Value, bool) {
	switch {
	case t.is("true"):
		return doc.BoolValue(true), true
	case t.is("false"):
		return doc.BoolValue(false), true
	case t.is("null"):
		return doc.Value{}, true
	}
	return doc.Value{}, false
}

// beginsOperand reports whether an operand may begin with a token of the kind.
func beginsOperand(k kind) bool {
	switch k {
	case kindName, kindInt, kindNumber, kindText, kindParam, kindBad, '(', '[', '{', '-':
		return true
	}
	return false
}

// notIsField reports whether the current token, not, is a field: no operand follows it, or an
// operator with an operand of its own.
func (p *parser) notIsField() bool {
	next := p.peek()
	if !beginsOperand(next.kind) {
		return true
	}
	beyond := p.scan
	third := beyond.next()
	switch {
	case next.is("is"):
		return third.anyOf("null", "not")
	case next.is("in"):
		return third.kind == '[' || third.kind == '(' || third.kind == kindParam
	case next.anyOf("has", "and", "or"):
		return beginsOperand(third.kind) && third.kind != '-' && !third.anyOf("and", "or", "is", "in", "has")
	}
	return false
}

func (p *parser) not(min int) (Expr, int, error) {
	at := p.tok.pos
	if min >= bindCompare {
		return nil, 0, p.invalid(at, "not binds looser than the operator before it; put parentheses around not and its condition")
	}
	if err := p.enter(0); err != nil {
		return nil, 0, err
	}
	p.advance()
	x, height, err := p.binary(bindNot, "a condition after not")
	if err != nil {
		return nil, 0, err
	}
	p.leave()
	return &Unary{Op: Not, X: x, Pos: at}, height + 1, nil
}

// caseOf reads `case when E then X [when ...] [else Y] end`.
func (p *parser) caseOf() (Expr, int, error) {
	out := &Case{Pos: p.tok.pos}
	if err := p.enter(0); err != nil {
		return nil, 0, err
	}
	p.advance()
	height := 0
	part := func(what string) (Expr, error) {
		x, h, err := p.binary(bindNone, what)
		height = max(height, h)
		return x, err
	}
	for p.take("when") {
		var arm When
		var err error
		if arm.Cond, err = part("a condition after when"); err != nil {
			return nil, 0, err
		}
		if err = p.wantWord("then", "an operator or then"); err != nil {
			return nil, 0, err
		}
		if arm.Then, err = part("a value after then"); err != nil {
			return nil, 0, err
		}
		out.Whens = append(out.Whens, arm)
	}
	if p.take("else") {
		var err error
		if out.Else, err = part("a value after else"); err != nil {
			return nil, 0, err
		}
		if err = p.wantWord("end", "an operator or end"); err != nil {
			return nil, 0, err
		}
	} else {
		out.Else = p.literals.one(Literal{Pos: p.tok.pos})
		if err := p.wantWord("end", "an operator, when, else or end"); err != nil {
			return nil, 0, err
		}
	}
	p.leave()
	return out, height + 1, nil
}

// list reads `[a, b]`.
func (p *parser) list() (Expr, int, error) {
	out := &ListExpr{Pos: p.tok.pos}
	if err := p.nest(); err != nil {
		return nil, 0, err
	}
	p.advance()
	items, height, err := p.expressions(']', "a value or ]", "a comma and the next value, or ]")
	if err != nil {
		return nil, 0, err
	}
	out.Items = items
	p.unnest()
	return out, height + 1, nil
}

// nest enters a list or object, which is a level of the expression too.
func (p *parser) nest() error {
	if p.nesting++; p.nesting > MaxNesting {
		return p.invalid(p.tok.pos, "lists and objects nest at most %d levels", MaxNesting)
	}
	return p.enter(0)
}

func (p *parser) unnest() {
	p.nesting--
	p.leave()
}

// expressions reads values separated by commas up to the closing token.
func (p *parser) expressions(closing kind, first, next string) ([]Expr, int, error) {
	height := 0
	if p.takeKind(closing) {
		return nil, 0, nil
	}
	out := make([]Expr, 0, 2)
	for {
		x, h, err := p.binary(bindNone, first)
		if err != nil {
			return nil, 0, err
		}
		out = append(out, x)
		height = max(height, h)
		if p.takeKind(',') {
			first = "a value after the comma"
			continue
		}
		return out, height, p.want(closing, next)
	}
}

// object reads `{k: v, "k": v}` as a value.
func (p *parser) object() (Expr, int, error) {
	out := &ObjectExpr{Pos: p.tok.pos}
	if err := p.nest(); err != nil {
		return nil, 0, err
	}
	var err error
	height := 0
	out.Items, height, err = p.pairs(false)
	if err != nil {
		return nil, 0, err
	}
	p.unnest()
	return out, height + 1, nil
}
