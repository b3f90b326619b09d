package query

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"fenec/engine/collation"
	"fenec/engine/doc"
	"fenec/engine/query/syntax"
)

// naive evaluates expressions the plain way, over decoded values: nil, bool, int64, float64, string,
// moment, []any and map[string]any. It shares no code with what it judges but the syntax tree.
type naive struct {
	types  map[string]string // of the fields: int, float, text, timestamp, bool, json, [int]
	row    map[string]any
	params []any
	all    []map[string]any // what an inner get reads
}

// moment is a timestamp in milliseconds.
type moment int64

var errNaive = errors.New("naive error")

func decode(v doc.Value) any {
	switch v.Kind {
	case doc.Bool:
		return v.N != 0
	case doc.Int:
		return int64(v.N)
	case doc.Float:
		return math.Float64frombits(v.N)
	case doc.Text:
		return string(v.B)
	case doc.Timestamp:
		return moment(v.N)
	}
	return nil
}

func (n *naive) path(p *syntax.Path) any {
	v := n.row[p.Parts[0]]
	for _, key := range p.Parts[1:] {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[key]
	}
	return v
}

func (n *naive) eval(e syntax.Expr) (any, error) {
	switch e := e.(type) {
	case *syntax.Literal:
		return decode(e.Value), nil
	case *syntax.Param:
		return n.params[e.N-1], nil
	case *syntax.Path:
		return n.path(e), nil
	case *syntax.ListExpr:
		list := []any{}
		for _, item := range e.Items {
			v, err := n.eval(item)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case *syntax.ObjectExpr:
		object := map[string]any{}
		for _, item := range e.Items {
			v, err := n.eval(item.Value)
			if err != nil {
				return nil, err
			}
			object[item.Key.Parts[0]] = v
		}
		return object, nil
	case *syntax.Unary:
		return n.unary(e)
	case *syntax.Binary:
		return n.binary(e)
	case *syntax.Logic:
		return n.logic(e)
	case *syntax.Case:
		for _, w := range e.Whens {
			c, err := n.eval(w.Cond)
			if err != nil {
				return nil, err
			}
			if c == true {
				return n.eval(w.Then)
			}
		}
		return n.eval(e.Else)
	case *syntax.Aggregate:
		return n.row[e.String()], nil
	case *syntax.Call:
		return n.call(e)
	}
	panic(fmt.Sprintf("naive cannot evaluate %T", e))
}

// truthy is v as a condition: nil is unknown.
func truthy(v any) any {
	if b, ok := v.(bool); ok {
		return b
	}
	return nil
}

func (n *naive) logic(e *syntax.Logic) (any, error) {
	decides := e.Op == syntax.Or
	var out any = !decides
	for _, t := range e.Terms {
		v, err := n.eval(t)
		if err != nil {
			return nil, err
		}
		switch truthy(v) {
		case decides:
			return decides, nil
		case nil:
			out = nil
		}
	}
	return out, nil
}

func (n *naive) unary(e *syntax.Unary) (any, error) {
	v, err := n.eval(e.X)
	if err != nil {
		return nil, err
	}
	switch e.Op {
	case syntax.IsNull:
		return v == nil, nil
	case syntax.IsNotNull:
		return v != nil, nil
	case syntax.Not:
		if b, ok := v.(bool); ok {
			return !b, nil
		}
		return nil, nil
	}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case int64:
		if v == math.MinInt64 {
			return nil, errNaive
		}
		return -v, nil
	case float64:
		return -v, nil
	}
	return nil, errNaive
}

// constant reports whether an expression reads no field.
func constant(e syntax.Expr) bool {
	is := true
	switch e := e.(type) {
	case *syntax.Path:
		return false
	case *syntax.ListExpr:
		for _, item := range e.Items {
			is = is && constant(item)
		}
	case *syntax.Unary:
		return constant(e.X)
	case *syntax.Binary:
		return constant(e.X) && constant(e.Y)
	case *syntax.Call:
		for _, a := range e.Args {
			is = is && constant(a)
		}
	case *syntax.InnerGet:
		return true
	case *syntax.Logic, *syntax.Case, *syntax.ObjectExpr:
		return false // the generator makes none without fields
	}
	return is
}

// typeOf is the type of a path, "" for any other expression.
func (n *naive) typeOf(e syntax.Expr) string {
	p, ok := e.(*syntax.Path)
	if !ok {
		return ""
	}
	if p.Parts[0] == "id" {
		return "int"
	}
	return n.types[p.Parts[0]]
}

// convert reads a constant that meets a field as the field's type compares with it: a number that meets numbers stays
// what it is.
func convert(v any, typ string) (any, error) {
	if v == nil {
		return nil, nil
	}
	r := rat(v)
	switch typ {
	case "":
		return v, nil
	case "json":
		return plain(v), nil
	case "int", "float":
		if r == nil || isMoment(v) {
			return nil, errNaive
		}
		return v, nil
	case "timestamp":
		switch v := v.(type) {
		case moment:
			return v, nil
		case string:
			for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
				if t, err := time.Parse(layout, v); err == nil {
					return moment(t.UnixMilli()), nil
				}
			}
			return nil, errNaive
		}
		if r == nil || !r.IsInt() {
			return nil, errNaive
		}
		return moment(r.Num().Int64()), nil
	case "text":
		if _, ok := v.(string); !ok {
			return nil, errNaive
		}
	case "bool":
		if _, ok := v.(bool); !ok {
			return nil, errNaive
		}
	case "[int]":
		list, ok := v.([]any)
		if !ok {
			return nil, errNaive
		}
		for _, e := range list {
			if c, err := convert(e, "int"); err != nil || c == nil {
				return nil, errNaive
			}
		}
	}
	return v, nil
}

func isMoment(v any) bool { _, ok := v.(moment); return ok }

// plain is a value as json holds it.
func plain(v any) any {
	switch v := v.(type) {
	case moment:
		return string(doc.AppendTimestamp(nil, int64(v)))
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = plain(e)
		}
		return out
	}
	return v
}

// operands evaluates both sides of a comparison and converts a constant that meets a field.
func (n *naive) operands(e *syntax.Binary) (a, b any, err error) {
	if a, err = n.eval(e.X); err != nil {
		return nil, nil, err
	}
	if b, err = n.eval(e.Y); err != nil {
		return nil, nil, err
	}
	if constant(e.Y) {
		b, err = convert(b, n.typeOf(e.X))
	} else if constant(e.X) {
		a, err = convert(a, n.typeOf(e.Y))
	}
	return a, b, err
}

func (n *naive) binary(e *syntax.Binary) (any, error) {
	switch e.Op {
	case syntax.In:
		return n.in(e)
	case syntax.Has, syntax.Contains:
		return n.holds(e)
	case syntax.Add, syntax.Sub, syntax.Mul, syntax.Div, syntax.Mod:
		a, err := n.eval(e.X)
		if err != nil {
			return nil, err
		}
		b, err := n.eval(e.Y)
		if err != nil {
			return nil, err
		}
		return arithmeticNaive(e.Op, a, b)
	}
	a, b, err := n.operands(e)
	if err != nil {
		return nil, err
	}
	return relate(e.Op, max(declaredOn(e.X), declaredOn(e.Y)), a, b), nil
}

func relate(op syntax.Op, by collation.Collation, a, b any) any {
	if a == nil || b == nil {
		return nil
	}
	same := rank(a) == rank(b)
	c := order(a, b)
	switch op {
	case syntax.Eq:
		return c == 0
	case syntax.Ne:
		return c != 0
	}
	if !same {
		return nil
	}
	c = orderBy(by, a, b)
	switch op {
	case syntax.Lt:
		return c < 0
	case syntax.Le:
		return c <= 0
	case syntax.Gt:
		return c > 0
	}
	return c >= 0
}

func (n *naive) in(e *syntax.Binary) (any, error) {
	x, err := n.eval(e.X)
	if err != nil {
		return nil, err
	}
	if inner, ok := e.Y.(*syntax.InnerGet); ok {
		return n.inInner(e, inner.Get, x)
	}
	list := e.Y.(*syntax.ListExpr)
	var out any = false
	for _, item := range list.Items {
		v, err := n.eval(item)
		if err != nil {
			return nil, err
		}
		if constant(item) {
			if v, err = convert(v, n.typeOf(e.X)); err != nil {
				return nil, err
			}
		}
		switch relate(syntax.Eq, collation.None, x, v) {
		case true:
			return true, nil
		case nil:
			out = nil
		}
	}
	return out, nil
}

// inInner looks for x among the values of a get.
func (n *naive) inInner(e *syntax.Binary, get *syntax.Get, x any) (any, error) {
	inner := &naive{types: n.types, params: n.params, all: n.all}
	rows, err := inner.rows(n.all, get.Where, get.Order, get.Limit, get.Offset)
	if err != nil {
		return nil, err
	}
	var values []any
	if a, ok := get.Select[0].Expr.(*syntax.Aggregate); ok {
		v, err := aggregated(a, rows)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	} else {
		for _, row := range rows {
			values = append(values, (&naive{row: row}).path(get.Select[0].Expr.(*syntax.Path)))
		}
	}
	values = slices.DeleteFunc(values, func(v any) bool { return v == nil })
	if x == nil && len(values) > 0 {
		return nil, nil
	}
	for _, v := range values {
		if v, err := convert(v, n.typeOf(e.X)); err == nil && x != nil && order(x, v) == 0 {
			return true, nil
		}
	}
	return false, nil
}

func (n *naive) holds(e *syntax.Binary) (any, error) {
	a, err := n.eval(e.X)
	if err != nil {
		return nil, err
	}
	b, err := n.eval(e.Y)
	if err != nil {
		return nil, err
	}
	if typ := n.typeOf(e.X); e.Op == syntax.Has && constant(e.Y) {
		if b, err = convert(b, strings.Trim(typ, "[]")); err != nil {
			return nil, err
		}
	}
	if a == nil || b == nil {
		return nil, nil
	}
	if e.Op == syntax.Has {
		list, _ := a.([]any)
		return slices.ContainsFunc(list, func(e any) bool { return order(e, b) == 0 }), nil
	}
	s, ok := a.(string)
	sub, also := b.(string)
	return ok && also && containsFold(s, sub), nil
}

func (n *naive) call(e *syntax.Call) (any, error) {
	if e.Name == "now" {
		return moment(testNow.UnixMilli()), nil
	}
	if e.Name == "coalesce" {
		for _, a := range e.Args {
			if v, err := n.eval(a); err != nil || v != nil {
				return v, err
			}
		}
		return nil, nil
	}
	args := make([]any, len(e.Args))
	for i, a := range e.Args {
		var err error
		if args[i], err = n.eval(a); err != nil {
			return nil, err
		}
	}
	if slices.Contains(args, nil) {
		return nil, nil
	}
	switch e.Name {
	case "lower", "upper":
		s, ok := args[0].(string)
		if !ok {
			return nil, errNaive
		}
		if e.Name == "lower" {
			return strings.Map(unicode.ToLower, s), nil
		}
		return strings.Map(unicode.ToUpper, s), nil
	case "like":
		s, ok := args[0].(string)
		pattern, also := args[1].(string)
		return ok && also && fitsNaive(s, pattern), nil
	case "len":
		switch v := args[0].(type) {
		case string:
			return int64(utf8.RuneCountInString(v)), nil
		case []any:
			return int64(len(v)), nil
		case map[string]any:
			return int64(len(v)), nil
		}
	case "abs":
		switch v := args[0].(type) {
		case int64:
			if v == math.MinInt64 {
				return nil, errNaive
			}
			return max(v, -v), nil
		case float64:
			return math.Abs(v), nil
		}
	case "round":
		switch v := args[0].(type) {
		case int64:
			return v, nil
		case float64:
			return math.Round(v), nil
		}
	case "timestamp":
		return convert(args[0], "timestamp")
	case "bucket":
		t, ok := args[0].(moment)
		span, also := args[1].(int64)
		if !ok || !also || span <= 0 {
			return nil, errNaive
		}
		q := new(big.Int).Div(big.NewInt(int64(t)), big.NewInt(span)) // Euclidean: down, as span > 0
		q.Mul(q, big.NewInt(span))
		if !q.IsInt64() {
			return nil, errNaive
		}
		return moment(q.Int64()), nil
	}
	return nil, errNaive
}
