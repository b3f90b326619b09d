package query

import (
	"math"
	"unicode"
	"unicode/utf8"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// function compiles a call. The parser has checked the number of arguments.
type function func(args []node, pos syntax.Pos) (node, error)

var functions = map[string]function{
	"lower":     textFunction("lower", unicode.ToLower),
	"upper":     textFunction("upper", unicode.ToUpper),
	"len":       lenFunction,
	"coalesce":  coalesceFunction,
	"now":       nowFunction,
	"timestamp": timestampFunction,
	"abs":       absFunction,
	"round":     roundFunction,
	"bucket":    bucketFunction,
	"norm":      normFunction,
	"normalize": normalizeFunction,
}

func (c *compiler) call(e *syntax.Call) (node, error) {
	args := make([]node, len(e.Args))
	constant := true
	for i, a := range e.Args {
		var err error
		if args[i], err = c.expr(a); err != nil {
			return node{}, err
		}
		constant = constant && args[i].constant
	}
	if e.Name == "like" {
		return c.like(args[0], args[1], e.Pos)
	}
	compile, ok := functions[e.Name]
	if !ok {
		return c.measure(e, args[0], args[1])
	}
	n, err := compile(args, e.Pos)
	n.constant, n.pos = constant, e.Pos
	return n, err
}

// checkKind fails if an argument is known to be of another kind.
func checkKind(name, what string, n node, kinds ...doc.Kind) error {
	if n.kind == doc.Untyped {
		return nil
	}
	for _, k := range kinds {
		if n.kind == k {
			return nil
		}
	}
	return errorAt(fail.Invalid, n.pos, "%s: expected %s, got %s", name, what, n.kind)
}

func textFunction(name string, each func(rune) rune) function {
	return func(args []node, pos syntax.Pos) (node, error) {
		if err := checkKind(name, "text", args[0], doc.Text); err != nil {
			return node{}, err
		}
		eval := args[0].as(doc.Text).eval
		return node{kind: doc.Text, eval: func(f *frame) doc.Value {
			v := eval(f)
			switch v.Kind {
			case doc.Null:
				return v
			case doc.Text:
				start := len(f.arena)
				for s := v.B; len(s) > 0; {
					r, n := utf8.DecodeRune(s)
					f.arena = utf8.AppendRune(f.arena, each(r))
					s = s[n:]
				}
				f.arenaFits()
				return doc.TextValue(f.arena[start:len(f.arena):len(f.arena)])
			}
			return f.fail(pos, "%s: expected text, got %s", name, v.Kind)
		}}, nil
	}
}

// lenFunction compiles len: it counts the characters of a text, the bytes of bytes, the items of a list, the keys of an
// object, the numbers of a vector.
func lenFunction(args []node, pos syntax.Pos) (node, error) {
	if err := checkKind("len", "text, bytes, a list, an object or a vector", args[0], doc.Text, doc.Bytes, doc.List, doc.Object, doc.Vector); err != nil {
		return node{}, err
	}
	eval := args[0].as(doc.Text).eval
	return node{kind: doc.Int, eval: func(f *frame) doc.Value {
		v := eval(f)
		switch v.Kind {
		case doc.Null:
			return v
		case doc.Text:
			return doc.IntValue(int64(utf8.RuneCount(v.B)))
		case doc.Bytes:
			return doc.IntValue(int64(len(v.B)))
		case doc.List, doc.Object:
			return doc.IntValue(int64(doc.Raw(v.B).Count()))
		case doc.Vector:
			return doc.IntValue(int64(v.Dim()))
		}
		return f.fail(pos, "len: expected text, bytes, a list, an object or a vector, got %s", v.Kind)
	}}, nil
}

func coalesceFunction(args []node, _ syntax.Pos) (node, error) {
	if len(args) == 1 && args[0].column != nil {
		return byBytes(args[0]), nil
	}
	evals := make([]evalFunc, len(args))
	kinds := make([]doc.Kind, len(args))
	for i, a := range args {
		evals[i], kinds[i] = a.eval, a.kind
	}
	return node{kind: commonKind(kinds), eval: func(f *frame) doc.Value {
		for _, eval := range evals {
			if v := eval(f); v.Kind != doc.Null || f.err != nil {
				return v
			}
		}
		return doc.Value{}
	}}, nil
}

func nowFunction([]node, syntax.Pos) (node, error) {
	return node{kind: doc.Timestamp, eval: func(f *frame) doc.Value { return doc.TimestampValue(f.now) }}, nil
}

// timestampFunction compiles timestamp: it reads ISO-8601 text or epoch milliseconds.
func timestampFunction(args []node, pos syntax.Pos) (node, error) {
	if err := checkKind("timestamp", "text or milliseconds", args[0], doc.Text, doc.Int, doc.Float, doc.Decimal, doc.Timestamp); err != nil {
		return node{}, err
	}
	eval := args[0].as(doc.Timestamp).eval
	return node{kind: doc.Timestamp, eval: func(f *frame) doc.Value {
		v := eval(f)
		if v.Kind == doc.Null || v.Kind == doc.Timestamp {
			return v
		}
		v, err := doc.Type{Kind: doc.TypeTimestamp}.Convert(v, "timestamp()")
		if err != nil {
			return f.setErr(pos, err)
		}
		return v
	}}, nil
}

func absFunction(args []node, pos syntax.Pos) (node, error) {
	if err := checkKind("abs", "a number", args[0], doc.Int, doc.Float, doc.Decimal); err != nil {
		return node{}, err
	}
	eval := args[0].eval
	return node{kind: args[0].kind, eval: func(f *frame) doc.Value {
		v := eval(f)
		switch v.Kind {
		case doc.Null:
			return v
		case doc.Int:
			n := v.Int()
			if n == math.MinInt64 {
				return f.fail(pos, "abs(%d) does not fit an int of 64 bits", n)
			}
			return doc.IntValue(max(n, -n))
		}
		x, ok := f.number(v, pos)
		if !ok {
			return f.fail(pos, "abs: expected a number, got %s", v.Kind)
		}
		return doc.FloatValue(math.Abs(x))
	}}, nil
}

// roundFunction compiles round: to a whole number, halves away from zero. An int is unchanged.
func roundFunction(args []node, pos syntax.Pos) (node, error) {
	if err := checkKind("round", "a number", args[0], doc.Int, doc.Float, doc.Decimal); err != nil {
		return node{}, err
	}
	eval := args[0].eval
	return node{kind: args[0].kind, eval: func(f *frame) doc.Value {
		v := eval(f)
		if v.Kind == doc.Null || v.Kind == doc.Int {
			return v
		}
		x, ok := f.number(v, pos)
		if !ok {
			return f.fail(pos, "round: expected a number, got %s", v.Kind)
		}
		return doc.FloatValue(math.Round(x))
	}}, nil
}

// bucketFunction compiles bucket: the start of the span of ms milliseconds, counted from 1970, that holds a timestamp.
func bucketFunction(args []node, pos syntax.Pos) (node, error) {
	if err := checkKind("bucket", "a timestamp", args[0], doc.Timestamp); err != nil {
		return node{}, err
	}
	if err := checkKind("bucket", "an int of milliseconds", args[1], doc.Int); err != nil {
		return node{}, err
	}
	at, span := args[0].as(doc.Timestamp).eval, args[1].eval
	return node{kind: doc.Timestamp, eval: func(f *frame) doc.Value {
		t, ms := at(f), span(f)
		switch {
		case t.Kind == doc.Null || ms.Kind == doc.Null:
			return doc.Value{}
		case t.Kind != doc.Timestamp:
			return f.fail(pos, "bucket: expected a timestamp, got %s", t.Kind)
		case ms.Kind != doc.Int || ms.Int() <= 0:
			return f.fail(pos, "bucket: expected a positive int of milliseconds, got %s", doc.Describe(ms))
		}
		past := t.Int() % ms.Int()
		if past < 0 {
			past += ms.Int()
		}
		return instant(f.ints(syntax.Sub, t.Int(), past, pos))
	}}, nil
}
