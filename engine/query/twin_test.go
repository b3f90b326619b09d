package query

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"

	"pgregory.net/rapid"
)

// twins are the same documents three times: without an index but for a ttl, with some, and decoded, where those whose
// ttl is over are left out.
type twins struct {
	plain, indexed *memory
	rows           []map[string]any
	params         []any // of the current statement
}

func newTwins(t *rapid.T) *twins {
	g := generator{t: t}
	w := &twins{plain: newMemory(), indexed: newMemory()}
	must := func(db *memory, statement string) {
		if _, err := db.exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	ttl := doc.Index{Kind: doc.IndexTTL, Span: rapid.SampledFrom([]time.Duration{0, 0, time.Second, 20_000 * 24 * time.Hour}).Draw(t, "ttl")}
	declared, indexes := "", g.indexes()
	if ttl.Span > 0 {
		declared = " " + ttl.String()
		indexes[5] = declared
	}
	must(w.plain, "create collection c ("+fmt.Sprintf(fieldList, "", "", "", "", "", declared, "")+")")
	must(w.indexed, "create collection c ("+fmt.Sprintf(fieldList, indexes...)+")")
	for _, path := range []string{"j.v", "j.w"} {
		if kind := g.pick("index on "+path, "", "@hash", "@sorted"); kind != "" {
			must(w.indexed, "create index on c ("+path+") "+kind)
		}
	}
	id := int64(0)
	for range rapid.IntRange(0, 40).Draw(t, "documents") {
		d := g.document()
		id += rapid.SampledFrom([]int64{1, 1, 1, 2, 400}).Draw(t, "gap")
		d["id"] = id
		must(w.plain, put(d))
		must(w.indexed, put(d))
		d["j"] = normal(d["j"])
		if at, ok := d["t"].(moment); ok && ttl.Span > 0 && int64(at)+ttl.Span.Milliseconds() <= testNow.UnixMilli() {
			continue
		}
		w.rows = append(w.rows, d)
	}
	return w
}

// same runs a statement on both databases and returns their common result.
func (w *twins) same(t *rapid.T, statement string) (answer string, err error) {
	params := values(w.params)
	a, errA := w.plain.exec(statement, params...)
	b, errB := w.indexed.exec(statement, params...)
	if errA != nil && fail.KindOf(errA) == fail.KindOf(errB) {
		return "", errA // the error may be another row's: an index leads to them in another order
	}
	if answerText(a, errA) != answerText(b, errB) {
		// A walk that stops early may stop before the row that fails another.
		if (errA != nil || errB != nil) && strings.Contains(statement, "limit") {
			return "", errA
		}
		plan, _ := w.indexed.exec("explain "+statement, params...)
		t.Fatalf("%s %v\nwithout an index: %swith them: %s\n%s", statement, w.params, answerText(a, errA), answerText(b, errB), answerText(plan, nil))
	}
	return string(a.Body), errA
}

// values are parameters as the caller of a plan gives them.
func values(params []any) []doc.Value {
	out := make([]doc.Value, len(params))
	for i, v := range params {
		switch v := v.(type) {
		case moment:
			out[i] = doc.TimestampValue(int64(v))
		default:
			raw, err := doc.ParseJSON(nil, []byte(spelled(v)))
			if err != nil {
				panic(err)
			}
			out[i] = doc.Raw(raw).Value()
		}
	}
	return out
}

func TestAnIndexMatchesAScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins(t)
		g := generator{t: t, params: &w.params}
		for range 16 {
			w.params = nil
			where := g.where()
			statement := "get c select id, n, s" + where + g.order() + g.page()
			if g.chance("count", 15) {
				statement = "get c" + where + " count"
			}
			if _, err := w.same(t, statement); err == nil {
				if _, err := w.indexed.exec("explain "+statement, values(w.params)...); err != nil {
					t.Fatalf("explain %s: %v", statement, err)
				}
			}
		}
		w.params = nil
		change := g.pick("change", "set c {m: m + 1, s: lower(s), j.v: n}", "set c {n: m, m: n}", "del c") + g.where() + g.order()
		if g.chance("limit", 50) {
			change += " limit 3"
		}
		change += " returning *"
		if _, err := w.same(t, change); err == nil {
			w.params = nil
			_, _ = w.same(t, "get c")
		}
	})
}

func TestExpressionsAgreeWithANaiveInterpreter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins(t)
		g := generator{t: t, params: &w.params}
		for range 16 {
			w.params = nil
			plain := generator{t: t}
			shown := plain.pick("shown", plain.number(2), plain.text(2), plain.time(2), plain.condition(2), plain.jsonPath(), "[n, "+plain.text(1)+", t]")
			statement := "get c select id, " + shown + " as e" + g.where() + g.order() + g.page()
			st, err := syntax.Parse(statement)
			if err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
			if _, err := Prepare(st, w.plain); err != nil {
				continue // its kinds never fit, whatever the rows
			}
			got, err := w.same(t, statement)
			want, wantErr := w.answer(st.(*syntax.Get))
			if (err != nil || wantErr != nil) && strings.Contains(statement, "limit") {
				continue
			}
			if (err != nil) != (wantErr != nil) || err == nil && got != want {
				t.Fatalf("%s %v\ngot  %s %v\nwant %s %v\nrows %v", statement, w.params, got, err, want, wantErr, w.rows)
			}
		}
	})
}

// answer returns the naive interpreter's result of a get.
func (w *twins) answer(get *syntax.Get) (string, error) {
	n := &naive{types: fieldTypes, params: w.params, all: w.rows}
	for _, e := range append(shown(get), get.Where) {
		if err := n.constants(e); err != nil {
			return "", err
		}
	}
	rows, err := n.rows(w.rows, get.Where, get.Order, get.Limit, get.Offset)
	if err != nil {
		return "", err
	}
	var out []string
	for _, row := range rows {
		n.row = row
		v, err := n.eval(get.Select[1].Expr)
		if err != nil {
			return "", err
		}
		out = append(out, fmt.Sprintf(`{"id":%d,"e":%s}`, row["id"], spelled(v)))
	}
	return "[" + strings.Join(out, ",") + "]", nil
}

// rows are those of all, which come by id, that a statement picks.
func (n *naive) rows(all []map[string]any, where syntax.Expr, by []syntax.OrderKey, limit, offset syntax.Expr) ([]map[string]any, error) {
	var rows []map[string]any
	for _, row := range all {
		n.row = row
		in, err := n.passes(where)
		if err != nil {
			return nil, err
		}
		if in {
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b map[string]any) int {
		for _, k := range by {
			p := k.Expr.(*syntax.Path)
			if c := orderOf(k, p, (&naive{row: a}).path(p), (&naive{row: b}).path(p)); c != 0 {
				return c
			}
		}
		return 0
	})
	return page(rows, limit, offset), nil
}

// page cuts a limit and an offset out of rows.
func page(rows []map[string]any, limit, offset syntax.Expr) []map[string]any {
	if offset != nil {
		rows = rows[min(int(decode(offset.(*syntax.Literal).Value).(int64)), len(rows)):]
	}
	if limit != nil {
		rows = rows[:min(int(decode(limit.(*syntax.Literal).Value).(int64)), len(rows))]
	}
	return rows
}

func shown(get *syntax.Get) []syntax.Expr {
	var out []syntax.Expr
	for _, item := range get.Select {
		out = append(out, item.Expr)
	}
	return out
}

// passes tests a row: the terms that compare a field with constants first, none after one that is not
// true.
func (n *naive) passes(where syntax.Expr) (bool, error) {
	var first, then []syntax.Expr
	var split func(e syntax.Expr)
	split = func(e syntax.Expr) {
		if l, ok := e.(*syntax.Logic); ok && l.Op == syntax.And {
			for _, t := range l.Terms {
				split(t)
			}
		} else if n.simple(e) {
			first = append(first, e)
		} else if e != nil {
			then = append(then, e)
		}
	}
	split(where)
	for _, e := range append(first, then...) {
		if v, err := n.eval(e); err != nil || truthy(v) != true {
			return false, err
		}
	}
	return true, nil
}

func isInner(e syntax.Expr) bool { _, ok := e.(*syntax.InnerGet); return ok }

// field is the field that coalesce(f) is, and any other expression as it is.
func field(e syntax.Expr) syntax.Expr {
	if call, ok := e.(*syntax.Call); ok && call.Name == "coalesce" && len(call.Args) == 1 {
		return call.Args[0]
	}
	return e
}

// simple reports whether a term compares a field with constants.
func (n *naive) simple(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Path:
		return n.typeOf(e) == "bool"
	case *syntax.Unary:
		x := field(e.X)
		return (e.Op == syntax.IsNull || e.Op == syntax.IsNotNull) && n.typeOf(x) != "" && x.(*syntax.Path).Parts[0] != "id"
	case *syntax.Binary:
		switch e.Op {
		case syntax.In:
			return n.typeOf(field(e.X)) != "" && constant(e.Y)
		case syntax.Eq, syntax.Ne, syntax.Lt, syntax.Le, syntax.Gt, syntax.Ge:
			return n.typeOf(field(e.X)) != "" && constant(e.Y) || n.typeOf(field(e.Y)) != "" && constant(e.X)
		}
	}
	return false
}

// constants computes every comparison of a field with a constant once, for the errors a run finds before
// its first row.
func (n *naive) constants(e syntax.Expr) error {
	n.row = map[string]any{}
	switch e := e.(type) {
	case *syntax.Unary:
		return n.constants(e.X)
	case *syntax.Logic:
		for _, t := range e.Terms {
			if err := n.constants(t); err != nil {
				return err
			}
		}
	case *syntax.Case:
		for _, w := range e.Whens {
			if err := n.constants(w.Cond); err != nil {
				return err
			}
			if err := n.constants(w.Then); err != nil {
				return err
			}
		}
		return n.constants(e.Else)
	case *syntax.Call:
		for _, a := range e.Args {
			if err := n.constants(a); err != nil {
				return err
			}
		}
	case *syntax.ListExpr:
		for _, a := range e.Items {
			if err := n.constants(a); err != nil {
				return err
			}
		}
	case *syntax.ObjectExpr:
		for _, item := range e.Items {
			if err := n.constants(item.Value); err != nil {
				return err
			}
		}
	case *syntax.Binary:
		if err := n.constants(e.X); err != nil {
			return err
		}
		if err := n.constants(e.Y); err != nil {
			return err
		}
		switch {
		case constant(e.X) && constant(e.Y):
		case e.Op == syntax.Add || e.Op == syntax.Sub || e.Op == syntax.Mul || e.Op == syntax.Div || e.Op == syntax.Mod:
		case e.Op == syntax.In && isInner(e.Y):
		case e.Op == syntax.In && n.typeOf(e.X) != "":
			for _, item := range e.Y.(*syntax.ListExpr).Items {
				if constant(item) {
					if _, err := n.binary(&syntax.Binary{Op: syntax.Eq, X: e.X, Y: item}); err != nil {
						return err
					}
				}
			}
		case e.Op == syntax.Contains && constant(e.Y), n.simple(e), e.Op == syntax.Has && n.typeOf(e.X) != "" && constant(e.Y):
			_, err := n.binary(e)
			return err
		case e.Op < syntax.In && constant(e.X):
			_, err := n.eval(e.X)
			return err
		case e.Op < syntax.In && constant(e.Y):
			_, err := n.eval(e.Y)
			return err
		}
	}
	return nil
}
