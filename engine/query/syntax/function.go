package syntax

import (
	"strconv"
	"strings"
)

// functions are the functions of the language with the number of their arguments; most < 0 is any number.
var functions = [...]struct {
	name        string
	least, most int
	takes       string
}{
	{"lower", 1, 1, "a text"},
	{"upper", 1, 1, "a text"},
	{"like", 2, 2, "a text and a pattern"},
	{"len", 1, 1, "a text or a list"},
	{"coalesce", 1, -1, "one value or more"},
	{"now", 0, 0, "nothing"},
	{"timestamp", 1, 1, "a text or a number of milliseconds"},
	{"abs", 1, 1, "a number"},
	{"round", 1, 1, "a number"},
	{"bucket", 2, 2, "a timestamp and a number of milliseconds"},
	{"cosine", 2, 2, "two vectors"},
	{"l2", 2, 2, "two vectors"},
	{"dot", 2, 2, "two vectors"},
	{"norm", 1, 1, "a vector"},
	{"normalize", 1, 1, "a vector"},
}

// call reads `name(arguments)`.
func (p *parser) call() (Expr, int, error) {
	if p.having && p.atAggregate() {
		a, err := p.aggregate()
		return a, 0, err
	}
	name := p.tok
	known := -1
	for i := range functions {
		if name.is(functions[i].name) {
			known = i
		}
	}
	if known < 0 {
		return nil, 0, p.noFunction()
	}
	f := &functions[known]
	out := &Call{Name: f.name, Pos: name.pos}
	if err := p.enter(0); err != nil {
		return nil, 0, err
	}
	p.advance()
	p.advance()
	args, height, err := p.expressions(')', "a value or )", "a comma and the next value, an operator or )")
	if err != nil {
		return nil, 0, err
	}
	if len(args) < f.least || f.most >= 0 && len(args) > f.most {
		return nil, 0, p.invalid(name.pos, "%s takes %s, found %s", f.name, f.takes, arguments(len(args)))
	}
	out.Args = args
	p.leave()
	return out, height + 1, nil
}

func arguments(n int) string {
	switch n {
	case 0:
		return "no argument"
	case 1:
		return "1 argument"
	}
	return strconv.Itoa(n) + " arguments"
}

// noFunction returns the error for the current name, an unknown function.
func (p *parser) noFunction() error {
	name := strings.ToLower(p.tok.text)
	switch {
	case p.tok.anyOf(aggregates[:]...):
		return p.invalid(p.tok.pos, "the aggregate %s can only be a whole item of select or order, or in the condition of having", name)
	case p.tok.anyOf("in", "is", "has", "and", "or"):
		return p.unexpected("a value before " + name)
	}
	names := make([]string, len(functions))
	for i := range functions {
		names[i] = functions[i].name
	}
	return p.invalid(p.tok.pos, "there is no function %s; there are %s", shorten(p.tok.text), joinAnd(names))
}
