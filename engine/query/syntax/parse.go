package syntax

import (
	"strings"
	"unsafe"

	"fenec/engine/doc"
	"fenec/engine/fail"
)

// Ceilings of a statement. Past one the statement is refused, never cut.
const (
	// MaxDepth is how deep parentheses and operators nest in an expression. A flat chain of
	// `and` or `or` is one level; a comparison belongs to the level it stands in.
	MaxDepth = 512
	// MaxNesting is how deep lists and objects nest in a value.
	MaxNesting = doc.MaxNesting
	// MaxLookups is how many levels a chain of lookups has.
	MaxLookups = 8
	// MaxPath is how many parts a path has: a field, and as many keys below it as its value nests.
	MaxPath = 1 + doc.MaxNesting
)

// Parse reads one statement, which a `;` may end.
func Parse(text string) (Statement, error) { return ParseCounted(text, nil) }

// tokensCounted is how many tokens, a power of two, are read between two counts of them.
const tokensCounted = 1 << 12

// ParseCounted is Parse that tells count how many tokens more have been read, before what the tree takes for them becomes
// much. An error of count ends the reading.
func ParseCounted(text string, count func(tokens int) error) (Statement, error) {
	p := newParser(text)
	p.count = count
	st, err := p.statement()
	if err != nil {
		return nil, err
	}
	return st, nil
}

// ParseCondition reads text that is one condition and nothing else. Parameters are refused, for
// there is no statement whose parameters they could be.
func ParseCondition(text string) (Expr, error) { return parseCondition(text, false) }

// ParseHaving is ParseCondition for a condition of groups, in which aggregates stand.
func ParseHaving(text string) (Expr, error) { return parseCondition(text, true) }

func parseCondition(text string, having bool) (Expr, error) {
	p := newParser(text)
	p.noParams, p.having = true, having
	x, err := p.expression("a condition")
	if err != nil {
		return nil, err
	}
	if p.tok.kind != kindEnd {
		return nil, p.unexpected("the end of the condition or one of and, or")
	}
	return x, nil
}

// parser holds one token, and the one behind it where that was asked for.
type parser struct {
	scan     scanner
	tok      token
	behind   token
	peeked   bool
	depth    int // levels of the expression around tok
	deepest  int // the greatest depth that a level of the innermost get reached
	nesting  int // lists and objects around tok
	width    int // how many keys the last object had, for the next one
	noParams bool
	having   bool                   // the condition is one of groups, where aggregates stand
	tokens   int                    // read
	count    func(tokens int) error // nil where nobody counts them
	rest     rest                   // for the sentence that refuses what follows the statement

	// Nodes that a statement has many of are made in slabs, to spare the collector.
	literals slab[Literal]
	paths    slab[Path]
	parts    slab[string]
}

func newParser(text string) *parser {
	p := &parser{scan: newScanner(text)}
	p.tok = p.scan.next()
	return p
}

// advance goes on to the next token.
func (p *parser) advance() {
	if p.tokens++; p.tokens&(tokensCounted-1) == 0 && p.count != nil {
		if err := p.count(tokensCounted); err != nil {
			p.tok, p.peeked = p.scan.stop(err), false
			return
		}
	}
	if p.peeked {
		p.tok, p.peeked = p.behind, false
		return
	}
	p.tok = p.scan.next()
}

// peek is the token behind the current one.
func (p *parser) peek() *token {
	if !p.peeked {
		p.behind, p.peeked = p.scan.next(), true
	}
	return &p.behind
}

// take goes past the keyword where it stands.
func (p *parser) take(keyword string) bool {
	if p.tok.is(keyword) {
		p.advance()
		return true
	}
	return false
}

// takeKind goes past a token of the kind where one stands.
func (p *parser) takeKind(k kind) bool {
	if p.tok.kind == k {
		p.advance()
		return true
	}
	return false
}

// want goes past punctuation that has to stand here; wanted names it, and what else could stand.
func (p *parser) want(k kind, wanted string) error {
	if p.takeKind(k) {
		return nil
	}
	return p.unexpected(wanted)
}

// wantWord goes past a keyword that has to stand here.
func (p *parser) wantWord(keyword, wanted string) error {
	if p.take(keyword) {
		return nil
	}
	return p.unexpected(wanted)
}

// unexpected says what was wanted where the current token stands.
func (p *parser) unexpected(wanted string) error {
	if p.tok.kind == kindBad {
		return p.scan.err
	}
	return p.invalid(p.tok.pos, "expected %s, found %s%s", wanted, &p.tok, hint(&p.tok))
}

// invalid refuses what is no FenecQL.
func (p *parser) invalid(at Pos, format string, args ...any) error {
	return fail.At(fail.Invalid, at.Line, at.Column, format, args...)
}

// name reads a name; what says whose.
func (p *parser) name(what string) (Name, error) {
	if p.tok.kind != kindName {
		return Name{}, p.unexpected(what)
	}
	n := Name{Text: p.tok.text, Pos: p.tok.pos}
	p.advance()
	return n, nil
}

// path reads a name and the names behind dots.
func (p *parser) path(what string) (Path, error) {
	if p.tok.kind != kindName {
		return Path{}, p.unexpected(what)
	}
	out := Path{Pos: p.tok.pos, Parts: p.parts.list(p.tok.text)}
	p.advance()
	for p.tok.kind == '.' {
		p.advance()
		if p.tok.kind != kindName {
			return Path{}, p.unexpected("a name behind the dot of a path")
		}
		if len(out.Parts) == MaxPath {
			return Path{}, p.pathTooLong(p.tok.pos)
		}
		out.Parts = append(out.Parts, p.tok.text)
		p.advance()
	}
	return out, nil
}

func (p *parser) pathTooLong(at Pos) error {
	return p.invalid(at, "a path has at most %d keys below its field", MaxPath-1)
}

// text reads the current token, a text.
func (p *parser) text() doc.Value {
	t := p.tok.text
	p.advance()
	if body := t[1 : len(t)-1]; strings.IndexByte(body, t[0]) < 0 && (t[0] == '\'' || strings.IndexByte(body, '\\') < 0) {
		return doc.Value{Kind: doc.Text, B: bytesOf(body)}
	}
	return doc.Value{Kind: doc.Text, B: appendText(make([]byte, 0, len(t)), t)}
}

// bytesOf is s as bytes that nobody may write to: values in a tree are only read.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// paramNumber is the N of a scanned $N.
func paramNumber(text string) int {
	n := 0
	for _, c := range []byte(text[1:]) {
		n = n*10 + int(c-'0')
	}
	return n
}

// param reads the current token, a parameter.
func (p *parser) param() (*Param, error) {
	if p.noParams {
		return nil, p.invalid(p.tok.pos, "a condition on its own has no parameters, found %s", &p.tok)
	}
	x := &Param{N: paramNumber(p.tok.text), Pos: p.tok.pos}
	p.advance()
	return x, nil
}

// slab hands out values from shared blocks that grow with the statement.
type slab[T any] struct{ free []T }

const slabLength = 64

// one is a pointer to a place holding v.
func (s *slab[T]) one(v T) *T { return &s.list(v)[0] }

// list is a slice of the one element v, without room behind it.
func (s *slab[T]) list(v T) []T {
	if len(s.free) == cap(s.free) {
		s.free = make([]T, 0, min(max(2*cap(s.free), 2), slabLength))
	}
	n := len(s.free)
	s.free = append(s.free, v)
	return s.free[n : n+1 : n+1]
}

// joinAnd lists names for a sentence: a, b and c.
func joinAnd(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
