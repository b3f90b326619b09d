package query

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"fenec/engine/query/syntax"

	"pgregory.net/rapid"
)

// aggregate draws an aggregate that a field's type allows.
func (g generator) aggregate() string {
	switch rapid.IntRange(0, 3).Draw(g.t, "aggregate form") {
	case 0:
		return "count(*)"
	case 1:
		return "count(" + g.pick("distinct", "", "distinct ") + g.pick("counted", "id", "n", "m", "x", "s", "u", "t", "b", "l", "j") + ")"
	case 2:
		return g.pick("added", "sum", "avg") + "(" + g.pick("number field", "m", "m", "m", "n", "x", "id") + ")"
	}
	return g.pick("extreme", "min", "max") + "(" + g.pick("extreme field", "id", "n", "m", "x", "s", "u", "t", "b", "l", "j") + ")"
}

// groupStatement draws a get of groups.
func (g generator) groupStatement() string {
	var items []string
	key := ""
	if g.chance("grouped", 70) {
		key = g.pick("group key", "n", "m", "x", "s", "u", "t", "b", "l", "j", "id")
		items = append(items, key+" as k")
	}
	for i := range rapid.IntRange(1, 4).Draw(g.t, "aggregates") {
		items = append(items, fmt.Sprintf("%s as a%d", g.aggregate(), i))
	}
	out := "get c select " + strings.Join(items, ", ")
	if g.chance("filtered", 60) {
		out += g.where()
	}
	if key != "" {
		out += " group by " + key
	}
	if g.chance("having", 40) {
		out += " having " + g.pick("having", "a0 is not null", "count(*) > 1", "count(*) + count(n) >= 2 and a0 is null", "sum(m) > 1 or avg(m) < 2", "not min(m) = 1", "max(s) = 'b'", "max(u) >= 'B'", "count(distinct j) > 1")
	}
	var order []string
	named := map[string]bool{}
	for range rapid.IntRange(0, 2).Draw(g.t, "keys") {
		by := g.pick("group order", "a0", "a0", g.aggregate())
		if strings.HasPrefix(by, "m") && (strings.HasSuffix(by, "(s)") || strings.HasSuffix(by, "(u)")) {
			by += g.collate()
		}
		if named[by] {
			continue
		}
		named[by] = true
		order = append(order, by+g.pick("direction", "", " desc"))
	}
	if len(order) > 0 {
		out += " order " + strings.Join(order, ", ")
	}
	return out + g.page()
}

func TestGroupsAgreeWithANaiveInterpreter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins(t)
		g := generator{t: t, params: &w.params}
		for range 16 {
			w.params = nil
			statement := g.groupStatement()
			st, err := syntax.Parse(statement)
			if err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
			if _, err := Prepare(st, w.plain); err != nil {
				continue // its kinds never fit, whatever the rows
			}
			got, err := w.same(t, statement)
			want, wantErr := w.groups(st.(*syntax.Get))
			if (err != nil) != (wantErr != nil) || err == nil && got != want {
				t.Fatalf("%s %v\ngot  %s %v\nwant %s %v\nrows %v", statement, w.params, got, err, want, wantErr, w.rows)
			}
			if _, err := w.indexed.exec("explain "+statement, values(w.params)...); err != nil && wantErr == nil {
				t.Fatalf("explain %s: %v", statement, err)
			}
		}
	})
}

// groups is what the naive interpreter makes of a get of groups.
func (w *twins) groups(get *syntax.Get) (string, error) {
	n := &naive{types: fieldTypes, params: w.params, all: w.rows}
	if err := n.constants(get.Where); get.Where != nil && err != nil {
		return "", err
	}
	rows, err := n.rows(w.rows, get.Where, nil, nil, nil)
	if err != nil {
		return "", err
	}
	parts := [][]map[string]any{rows}
	if get.Group != nil {
		parts = partition(rows, get.Group.Text)
	}
	var wanted []*syntax.Aggregate
	for _, a := range []string{"count(*)", "count(n)", "sum(m)", "avg(m)", "min(m)", "max(s)", "max(u)", "count(distinct j)"} { // of having
		st, err := syntax.Parse("get c select " + a)
		if err != nil {
			return "", err
		}
		if get.Having != nil && strings.Contains(get.String(), a) {
			wanted = append(wanted, st.(*syntax.Get).Select[0].Expr.(*syntax.Aggregate))
		}
	}
	for _, k := range get.Order {
		if a, ok := k.Expr.(*syntax.Aggregate); ok {
			wanted = append(wanted, a)
		}
	}
	var made []map[string]any
	for _, part := range parts {
		group := map[string]any{}
		for _, a := range wanted {
			if group[a.String()], err = aggregated(a, part); err != nil {
				return "", err
			}
		}
		for _, item := range get.Select {
			if a, ok := item.Expr.(*syntax.Aggregate); ok {
				if group[item.As], err = aggregated(a, part); err != nil {
					return "", err
				}
			} else {
				group[item.As] = part[0][get.Group.Text]
			}
		}
		made = append(made, group)
	}
	return showGroups(w.params, get, made), nil
}

// showGroups is the answer's text: the groups that having holds for, in order, one page of them.
func showGroups(params []any, get *syntax.Get, made []map[string]any) string {
	ask := &naive{params: params}
	var kept []map[string]any
	for _, group := range made {
		ask.row = group
		if get.Having != nil {
			if v, err := ask.eval(get.Having); err != nil || v != true {
				continue
			}
		}
		kept = append(kept, group)
	}
	slices.SortStableFunc(kept, func(a, b map[string]any) int {
		for _, k := range get.Order {
			x, _ := (&naive{row: a}).eval(k.Expr)
			y, _ := (&naive{row: b}).eval(k.Expr)
			if c := orderOf(k, named(get, k.Expr), x, y); c != 0 {
				return c
			}
		}
		if get.Group == nil {
			return 0
		}
		return cmp.Or(orderBy(collationOfField(get.Group.Text), a["k"], b["k"]), order(a["k"], b["k"]))
	})
	kept = page(kept, get.Limit, get.Offset)
	var out []string
	for _, group := range kept {
		var fields []string
		for _, item := range get.Select {
			fields = append(fields, fmt.Sprintf("%q:%s", item.As, spelled(group[item.As])))
		}
		out = append(out, "{"+strings.Join(fields, ",")+"}")
	}
	return "[" + strings.Join(out, ",") + "]"
}

// named is the expression that a name of a get's answer stands for.
func named(get *syntax.Get, e syntax.Expr) syntax.Expr {
	if p, ok := e.(*syntax.Path); ok {
		for _, item := range get.Select {
			if item.As == p.Parts[0] {
				return item.Expr
			}
		}
	}
	return e
}

// partition puts rows of one value of a field together, in the order they are met.
func partition(rows []map[string]any, field string) [][]map[string]any {
	var out [][]map[string]any
next:
	for _, row := range rows {
		for i := range out {
			if order(out[i][0][field], row[field]) == 0 {
				out[i] = append(out[i], row)
				continue next
			}
		}
		out = append(out, []map[string]any{row})
	}
	return out
}

func aggregated(a *syntax.Aggregate, rows []map[string]any) (any, error) {
	if a.Arg == nil {
		return int64(len(rows)), nil
	}
	var held []any
	field := a.Arg.Text
	for _, row := range rows {
		if v := row[field]; v != nil {
			held = append(held, v)
		}
	}
	if a.Distinct {
		return int64(len(partition(rows, field)) - b2i(len(held) < len(rows))), nil // without that of the nulls
	}
	if a.Name == "count" {
		return int64(len(held)), nil
	}
	if len(held) == 0 {
		return nil, nil
	}
	by := func(a, b any) int { return orderBy(collationOfField(field), a, b) }
	switch a.Name {
	case "min":
		return slices.MinFunc(held, by), nil
	case "max": // the first of equal ones, which slices.MaxFunc promises too
		return slices.MaxFunc(held, by), nil
	}
	if _, float := held[0].(float64); float {
		sum, lost := 0.0, 0.0
		for _, v := range held {
			x := v.(float64)
			next := sum + x
			if math.Abs(sum) < math.Abs(x) {
				sum, x = x, sum
			}
			lost += (sum - next) + x
			sum = next
		}
		if sum += lost; a.Name == "avg" {
			sum /= float64(len(held))
		}
		return sum, nil
	}
	sum := new(big.Int)
	for _, v := range held {
		sum.Add(sum, big.NewInt(v.(int64)))
	}
	if a.Name == "avg" {
		mean, _ := new(big.Rat).SetFrac(sum, big.NewInt(int64(len(held)))).Float64()
		return mean, nil
	}
	if !sum.IsInt64() {
		return nil, errNaive
	}
	return sum.Int64(), nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
