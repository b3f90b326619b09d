package syntax

import (
	"strings"
	"unsafe"

	"fenec/engine/doc"
	"fenec/engine/fail"
)

// Limits of a statement. A statement that exceeds one is refused, never truncated.
const (
	// MaxDepth is how deep parentheses and operators nest in an expression. A flat chain of
	// `and` or `or` is one level; a comparison belongs to the level around it.
	MaxDepth = 512
	// MaxNesting is how deep lists and objects nest in a value.
	MaxNesting = doc.MaxNesting
	// MaxLookups is how many levels a chain of lookups has.
	MaxLookups = 8
	// MaxPath is how many parts a path has: a field, and as many keys below it as values may nest.
	MaxPath = 1 + doc.MaxNesting
)

// Parse reads one statement, which may end with a `;`.
func Parse(text string) (Statement, error) { return ParseCounted(text, nil) }

// tokensCounted is how many tokens, a power of two, are read between two calls of count.
const tokensCounted = 1 << 12

// ParseCounted is Parse that calls count with the number of tokens read since its last call, before their part of the tree
// takes much memory. It fails if count fails.
func ParseCounted(text string, count func(tokens int) error) (Statement, error) {
	p := newParser(text)
	p.count = count
	st, err := p.statement()
	if err != nil {
		return nil, err
	}
	return st, nil
}

// ParseCondition reads text that is one condition and nothing else. Parameters are refused, since
// there is no statement that they could belong to.
func ParseCondition(text string) (Expr, error) { return parseCondition(text, false) }

// ParseHaving is ParseCondition for a condition on groups, which may contain aggregates.
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

// parser holds one token, and the one after it if it was peeked at.
type parser struct {
	scan      scanner
	tok       token
	following token
	peeked    bool
	depth     int // levels of the expression around tok
	deepest   int // the greatest depth of a level in the innermost get
	nesting   int // lists and objects around tok
	width     int // how many keys the last object had, to size the next one
	noParams  bool
	having    bool                   // the condition is on groups and may contain aggregates
	tokens    int                    // read
	count     func(tokens int) error // nil if they are not counted
	rest      rest                   // for the error about what follows the statement

	// Frequent nodes are allocated in slabs, to reduce the number of objects.
	literals slab[Literal]
	paths    slab[Path]
	parts    slab[string]
}

func newParser(text string) *parser {
	p := &parser{scan: newScanner(text)}
	p.tok = p.scan.next()
	return p
}

// advance reads the next token.
func (p *parser) advance() {
	if p.tokens++; p.tokens&(tokensCounted-1) == 0 && p.count != nil {
		if err := p.count(tokensCounted); err != nil {
			p.tok, p.peeked = p.scan.stop(err), false
			return
		}
	}
	if p.peeked {
		p.tok, p.peeked = p.following, false
		return
	}
	p.tok = p.scan.next()
}

// peek returns the token after the current one.
func (p *parser) peek() *token {
	if !p.peeked {
		p.following, p.peeked = p.scan.next(), true
	}
	return &p.following
}

// take skips the keyword if it is the current token, and reports whether it was.
func (p *parser) take(keyword string) bool {
	if p.tok.is(keyword) {
		p.advance()
		return true
	}
	return false
}

// takeKind skips the current token if it is of the kind, and reports whether it was.
func (p *parser) takeKind(k kind) bool {
	if p.tok.kind == k {
		p.advance()
		return true
	}
	return false
}

// want skips punctuation and fails if another token is here; wanted names what may be here.
func (p *parser) want(k kind, wanted string) error {
	if p.takeKind(k) {
		return nil
	}
	return p.unexpected(wanted)
}

// wantWord skips a keyword and fails if another token is here.
func (p *parser) wantWord(keyword, wanted string) error {
	if p.take(keyword) {
		return nil
	}
	return p.unexpected(wanted)
}

// unexpected returns the error for the current token; wanted is what was expected instead.
func (p *parser) unexpected(wanted string) error {
	if p.tok.kind == kindBad {
		return p.scan.err
	}
	return p.invalid(p.tok.pos, "expected %s, found %s%s", wanted, &p.tok, hint(&p.tok))
}

// invalid returns an error of kind fail.Invalid at a place.
func (p *parser) invalid(at Pos, format string, args ...any) error {
	return fail.At(fail.Invalid, at.Line, at.Column, format, args...)
}

// name reads a name; what describes it in the error.
func (p *parser) name(what string) (Name, error) {
	if p.tok.kind != kindName {
		return Name{}, p.unexpected(what)
	}
	n := Name{Text: p.tok.text, Pos: p.tok.pos}
	p.advance()
	return n, nil
}

// path reads a name and the names after dots.
func (p *parser) path(what string) (Path, error) {
	if p.tok.kind != kindName {
		return Path{}, p.unexpected(what)
	}
	out := Path{Pos: p.tok.pos, Parts: p.parts.list(p.tok.text)}
	p.advance()
	for p.tok.kind == '.' {
		p.advance()
		if p.tok.kind != kindName {
			return Path{}, p.unexpected("a name after the dot of a path")
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

// bytesOf returns the bytes of s without a copy. They must not be written to: values in a tree are only read.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// paramNumber returns the N of a scanned $N.
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

// slab allocates values from shared blocks that grow with the statement.
type slab[T any] struct{ free []T }

const slabLength = 64

// one returns a pointer to a copy of v.
func (s *slab[T]) one(v T) *T { return &s.list(v)[0] }

// list returns a slice of the one element v, without spare capacity.
func (s *slab[T]) list(v T) []T {
	if len(s.free) == cap(s.free) {
		s.free = make([]T, 0, min(max(2*cap(s.free), 2), slabLength))
	}
	n := len(s.free)
	s.free = append(s.free, v)
	return s.free[n : n+1 : n+1]
}

// joinAnd lists names for a message: a, b and c.
func joinAnd(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
