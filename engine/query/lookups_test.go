package query

import (
	"fmt"
	"strings"
	"testing"

	"fenec/engine/query/syntax"

	"pgregory.net/rapid"
)

// family are three collections in maps, each the children of the one before: p, c of p and g of c.
type family struct {
	db   *memory
	rows map[string][]map[string]any
}

var familyTypes = map[string]string{"k": "int", "u": "int", "s": "text", "j": "json", "x": "float", "n": "int"}

func newFamily(t *rapid.T) *family {
	g := generator{t: t}
	f := &family{db: newMemory(), rows: map[string][]map[string]any{}}
	for _, name := range []string{"p", "c", "g"} {
		if _, err := f.db.exec("create collection " + name + " (k int @hash, s text @hash, j json, x float @hash, n int @sorted)"); err != nil {
			t.Fatal(err)
		}
		for id := range rapid.IntRange(0, 8).Draw(t, "documents") {
			row := map[string]any{
				"k": int64(rapid.IntRange(0, 4).Draw(t, "k")), "s": g.pick("s", "a", "b"), "j": g.json(1), "x": float64(rapid.IntRange(0, 6).Draw(t, "x")) / 2,
				"n": int64(rapid.IntRange(0, 3).Draw(t, "n")),
			}
			for _, field := range keys(row) {
				if g.chance("null "+field, 15) {
					row[field] = nil
				}
			}
			if _, err := f.db.exec(strings.Replace(put(row), "put c", "put "+name, 1)); err != nil {
				t.Fatal(err)
			}
			row["id"], row["j"] = int64(id+1), normal(row["j"])
			f.rows[name] = append(f.rows[name], row)
		}
	}
	return f
}

// level draws what is asked of one collection's documents.
func (g generator) level() string {
	out := g.pick("filter", "", "", " where n > 1", " where n is not null and s = 'a'", " where k in (get g select n)")
	return out + g.pick("by", "", "", " order n", " order n desc, s", " order id desc", " order s desc")
}

func (g generator) lookup(of string) string {
	on := g.pick("on", "k", "k = k", "k = n", "id = k", "id", "s = s", "k = j", "s = j", "x = j", "x = k", "k = x", "id = x", "id = j")
	return " lookup " + of + " on " + on + g.pick("required", "", "", " required")
}

func TestLookupsAgreeWithANaiveInterpreter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFamily(t)
		g := generator{t: t}
		for range 12 {
			statement := "get p select id, k" + g.level() + g.page() + g.lookup("c") + " select id, n" + g.level() + g.page()
			if g.chance("two levels", 60) {
				statement += g.lookup("g") + " select id" + g.level() + g.page()
			}
			if g.chance("count", 20) {
				statement = "get p where k > 0 count lookup c on k = n required where n > 0" + g.pick("under", "", " lookup g on s = s required")
			}
			st, err := syntax.Parse(statement)
			if err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
			got, err := f.db.exec(statement)
			if err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
			if want := f.answer(t, st.(*syntax.Get)); string(got.Body) != want {
				t.Fatalf("%s\ngot  %s\nwant %s\nrows %v", statement, got.Body, want, f.rows)
			}
			if _, err := f.db.exec("explain " + statement); err != nil {
				t.Fatalf("explain %s: %v", statement, err)
			}
		}
	})
}

// answer returns the naive interpreter's result of a get with lookups.
func (f *family) answer(t *rapid.T, get *syntax.Get) string {
	rows := f.level(t, f.rows[get.Collection.Text], get.Where, get.Order, get.Lookups)
	if get.Count {
		return fmt.Sprintf(`[{"count":%d}]`, len(rows))
	}
	return f.show(t, page(rows, get.Limit, get.Offset), get.Select, get.Lookups)
}

// level is a collection's rows in order, without those that a required level below has none for.
func (f *family) level(t *rapid.T, all []map[string]any, where syntax.Expr, by []syntax.OrderKey, below []syntax.Lookup) []map[string]any {
	n := &naive{types: familyTypes, all: f.rows["g"]}
	rows, err := n.rows(all, where, by, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(below) == 0 || !below[0].Required {
		return rows
	}
	var kept []map[string]any
	for _, row := range rows {
		if len(f.children(t, row, below)) > 0 {
			kept = append(kept, row)
		}
	}
	return kept
}

// children are all of the first level's rows of row.
func (f *family) children(t *rapid.T, row map[string]any, levels []syntax.Lookup) []map[string]any {
	l := &levels[0]
	from := "id"
	if l.Parent != nil {
		from = l.Parent.Text
	}
	var mine []map[string]any
	for _, child := range f.rows[l.Collection.Text] {
		if row[from] != nil && child[l.On.Text] != nil && order(row[from], child[l.On.Text]) == 0 {
			mine = append(mine, child)
		}
	}
	return f.level(t, mine, l.Where, l.Order, levels[1:])
}

func (f *family) show(t *rapid.T, rows []map[string]any, items []syntax.SelectItem, levels []syntax.Lookup) string {
	var out []string
	for _, row := range rows {
		var fields []string
		for _, item := range items {
			fields = append(fields, fmt.Sprintf("%q:%s", item.As, spelled(row[item.As])))
		}
		if len(levels) > 0 {
			l := &levels[0]
			fields = append(fields, fmt.Sprintf("%q:%s", l.Collection.Text, f.show(t, page(f.children(t, row, levels), l.Limit, l.Offset), l.Select, levels[1:])))
		}
		out = append(out, "{"+strings.Join(fields, ",")+"}")
	}
	return "[" + strings.Join(out, ",") + "]"
}
