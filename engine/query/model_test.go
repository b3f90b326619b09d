package query

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"fenec/engine/query/syntax"

	"pgregory.net/rapid"
)

// model is a collection in maps, written by the plain rules.
type model struct {
	rows []map[string]any // by id
	next int64            // the highest id there ever was
}

var modelFields = []string{"n", "m", "x", "s", "u", "t", "b", "l", "j"}

// show returns a row as `returning *` does.
func show(row map[string]any) string {
	out := fmt.Sprintf(`{"id":%d`, row["id"])
	for _, field := range modelFields {
		out += fmt.Sprintf(`,"%s":%s`, field, spelled(row[field]))
	}
	return out + "}"
}

func showAll(rows []map[string]any) string {
	var out []string
	for _, row := range rows {
		out = append(out, show(row))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// stored is a value as a field of the type keeps it.
func stored(v any, typ string) (any, error) {
	v, err := convert(v, typ)
	if err != nil || v == nil {
		return nil, err
	}
	switch typ {
	case "int":
		return storedInt(v)
	case "float":
		x, _ := rat(v).Float64()
		return x, nil
	case "[int]":
		list := slices.Clone(v.([]any))
		for i := range list {
			if list[i], err = storedInt(list[i]); err != nil {
				return nil, err
			}
		}
		return list, nil
	case "json":
		return normal(copied(v)), nil
	}
	return v, nil
}

// storedInt is a number as an int field keeps it.
func storedInt(v any) (any, error) {
	if r := rat(v); r.IsInt() && r.Num().IsInt64() {
		return r.Num().Int64(), nil
	}
	return nil, errNaive
}

func copied(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = copied(e)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = copied(e)
		}
		return out
	}
	return v
}

// within puts v into what base holds, at a path of keys.
func within(base any, keys []string, v any) (any, error) {
	if len(keys) == 0 {
		return v, nil
	}
	object, ok := base.(map[string]any)
	if base != nil && !ok {
		return nil, errNaive
	}
	object = maps.Clone(object)
	if object == nil {
		object = map[string]any{}
	}
	inner, err := within(object[keys[0]], keys[1:], v)
	object[keys[0]] = inner
	return object, err
}

// changed is the row as a set's items make it.
func (n *naive) changed(row map[string]any, items []syntax.Item) (map[string]any, error) {
	n.row = row
	out := maps.Clone(row)
	for _, item := range items {
		v, err := n.eval(item.Value)
		if err != nil {
			return nil, err
		}
		field, keys := item.Key.Parts[0], item.Key.Parts[1:]
		if v, err = stored(v, n.types[field]); err != nil {
			return nil, err
		}
		if out[field], err = within(out[field], keys, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// run applies a set or del and shows the rows it returns.
func (m *model) run(st syntax.Statement) (string, error) {
	n := &naive{types: fieldTypes, all: m.rows}
	var where, limit syntax.Expr
	var by []syntax.OrderKey
	var items []syntax.Item
	switch st := st.(type) {
	case *syntax.Set:
		where, by, limit, items = st.Where, st.Order, st.Limit, st.Items
	case *syntax.Delete:
		where, by, limit = st.Where, st.Order, st.Limit
	}
	exprs := []syntax.Expr{where}
	for _, item := range items {
		exprs = append(exprs, item.Value)
	}
	for _, e := range exprs {
		if err := n.constants(e); err != nil {
			return "", err
		}
	}
	picked, err := n.rows(m.rows, where, by, limit, nil)
	if err != nil {
		return "", err
	}
	returned := slices.Clone(picked)
	after := slices.Clone(m.rows)
	for i, row := range picked {
		at := slices.IndexFunc(after, func(r map[string]any) bool { return r["id"] == row["id"] })
		if items == nil {
			after = slices.Delete(after, at, at+1)
			continue
		}
		if returned[i], err = n.changed(row, items); err != nil {
			return "", err
		}
		after[at] = returned[i]
	}
	m.rows = after
	return showAll(returned), nil
}

// put replaces or adds a document.
func (m *model) put(d map[string]any, given bool) {
	if !given {
		d["id"] = m.next + 1
	}
	id := d["id"].(int64)
	m.next = max(m.next, id)
	m.rows = slices.DeleteFunc(slices.Clone(m.rows), func(r map[string]any) bool { return r["id"] == id })
	m.rows = append(m.rows, d)
	slices.SortFunc(m.rows, func(a, b map[string]any) int { return order(a["id"], b["id"]) })
}

// item draws one `field: expression` of a set.
func (g generator) item() string {
	switch field := g.pick("set", "n", "m", "x", "s", "u", "t", "b", "l", "j", "j.v", "j.w.v", "j.k"); field {
	case "n", "m", "x":
		return field + ": " + g.number(2)
	case "s", "u":
		return field + ": " + g.text(2)
	case "t":
		return "t: " + g.pick("time", g.time(2), "n", "null")
	case "b":
		return "b: " + g.pick("flag", "n > 1", "not b", "null", "b and s = \"a\"", "j.v")
	case "l":
		return "l: " + g.pick("list", "[n, 1]", "[]", "null", "l", "[1, x]", "j.v")
	default:
		return field + ": " + g.pick("value", "n", "t", "s", "null", "j.v", "[s, {k: n}]", "{v: j, w: now()}", spelled(g.json(1)))
	}
}

func (g generator) set() string {
	items := []string{g.item()}
	for range rapid.IntRange(0, 2).Draw(g.t, "items") {
		items = append(items, g.item())
	}
	return "set c {" + strings.Join(items, ", ") + "}"
}

func TestWritesAgreeWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := generator{t: t}
		db, m := newMemory(), &model{}
		for _, statement := range []string{
			"create collection c (" + fmt.Sprintf(fieldList, g.indexes()...) + ")",
			"create index on c (j.v) " + g.pick("index", "@sorted", "@hash"),
		} {
			if _, err := db.exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		for range 15 {
			if g.chance("put", 50) {
				d, given := g.document(), g.chance("id", 30)
				if given {
					d["id"] = int64(rapid.IntRange(1, 30).Draw(t, "id"))
				}
				statement := put(d)
				if _, err := db.exec(statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
				d["j"] = normal(d["j"])
				m.put(d, given)
			} else if !m.check(t, db, g.pick("change", g.set(), g.set(), "del c")+g.where()+g.order()+g.pick("limit", "", " limit 2", " limit 1")+" returning *") {
				return
			}
			if got := answerText(db.exec("get c")); got != fmt.Sprintf("%s\n", count(len(m.rows), "row"))+lines(showAll(m.rows)) {
				t.Fatalf("the collection is %swant %s", got, lines(showAll(m.rows)))
			}
		}
	})
}

// lines puts the rows of an answer on lines of their own, as answerText does.
func lines(body string) string {
	body = strings.ReplaceAll(strings.Trim(body, "[]"), "},{", "}\n{")
	if body == "" {
		return ""
	}
	return body + "\n"
}

// check runs a write on both sides. It returns false if they may differ: if a limit let the database
// stop before the row that fails.
func (m *model) check(t *rapid.T, db *memory, statement string) bool {
	st, err := syntax.Parse(statement)
	if err != nil {
		return true // two of its items meet
	}
	if _, err := Prepare(st, db); err != nil {
		return true // its kinds never fit, whatever the rows
	}
	before, saved := showAll(m.rows), m.rows
	r, err := db.exec(statement)
	want, wantErr := m.run(st)
	switch limited := strings.Contains(statement, "limit"); {
	case err == nil && wantErr == nil && string(r.Body) == want:
		return true
	case err != nil && wantErr != nil:
		m.rows = saved
		return true
	case limited && (err != nil) != (wantErr != nil):
		return false
	}
	t.Fatalf("%s\nover %s\ngot  %s %v\nwant %s %v", statement, before, r.Body, err, want, wantErr)
	return false
}
