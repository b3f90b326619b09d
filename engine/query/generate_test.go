package query

import (
	"fmt"
	"math"
	"strings"

	"fenec/engine/doc"

	"pgregory.net/rapid"
)

// generator draws statements and documents over one collection, so small that values meet.
type generator struct {
	t      *rapid.T
	params *[]any // of the statement being drawn; nil if it has none
}

// constant spells a value, or makes it the statement's next parameter.
func (g generator) constant(v any) string {
	if g.params == nil || !g.chance("parameter", 30) {
		return spelled(v)
	}
	if g.chance("null parameter", 15) {
		v = nil
	}
	*g.params = append(*g.params, v)
	return fmt.Sprintf("$%d", len(*g.params))
}

// fieldTypes are the fields of the generated collection.
var fieldTypes = map[string]string{
	"n": "int", "m": "int", "x": "float", "s": "text", "u": "text", "t": "timestamp", "b": "bool", "l": "[int]", "j": "json",
}

const fieldList = "n int%s, m int%s, x float%s, s text%s, u text collate und%s, t timestamp%s, b bool%s, l [int], j json"

func (g generator) pick(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(g.t, label)
}

func (g generator) chance(label string, percent int) bool {
	return rapid.IntRange(1, 100).Draw(g.t, label) <= percent
}

var (
	ints     = []int64{0, 1, 2, 3, -1, -2, 1, 2, 1<<53 + 1, 1 << 53, math.MaxInt64, math.MinInt64}
	floats   = []float64{0, 0.5, 1, 1.5, 2, -1.5, 1 << 53, 9.2e18, 1e300}
	texts    = []string{"", "a", "b", "A", "ab", "aB", "ß", "ſ", "K", "k", "ä", "Ä", "a\u0308", "ı", "i", "I", "İb", "i\u0307B", "a\"b", "a b", "A*b", "x_aB\\", "2024-01-01"}
	instants = []moment{0, -1, 1, 1704067200000, 1704067200001, 1767323045678}
)

func (g generator) int() int64        { return rapid.SampledFrom(ints).Draw(g.t, "int") }
func (g generator) float() float64    { return rapid.SampledFrom(floats).Draw(g.t, "float") }
func (g generator) textValue() string { return rapid.SampledFrom(texts).Draw(g.t, "text") }
func (g generator) instant() moment   { return rapid.SampledFrom(instants).Draw(g.t, "instant") }

// json draws a value of a json field.
func (g generator) json(depth int) any {
	most := 7
	if depth == 0 {
		most = 4
	}
	switch rapid.IntRange(0, most).Draw(g.t, "json") {
	case 0:
		return nil
	case 1:
		return g.chance("true", 50)
	case 2:
		return g.int()
	case 3:
		return g.float()
	case 4:
		return g.textValue()
	case 5:
		list := []any{}
		for range rapid.IntRange(0, 2).Draw(g.t, "items") {
			list = append(list, g.json(depth-1))
		}
		return list
	}
	object := map[string]any{}
	for _, key := range []string{"v", "w"} {
		if g.chance("key", 80) {
			object[key] = g.json(depth - 1)
		}
	}
	return object
}

// document draws a document: a value for most fields.
func (g generator) document() map[string]any {
	d := map[string]any{"n": nil, "m": nil, "x": nil, "s": nil, "u": nil, "t": nil, "b": nil, "l": nil, "j": nil}
	set := func(field string, v func() any) {
		if g.chance(field, 80) {
			d[field] = v()
		}
	}
	set("n", func() any { return g.int() })
	set("m", func() any { return int64(rapid.IntRange(0, 3).Draw(g.t, "m")) })
	set("x", func() any { return g.float() })
	set("s", func() any { return g.textValue() })
	set("u", func() any { return g.textValue() })
	set("t", func() any { return g.instant() })
	set("b", func() any { return g.chance("b", 50) })
	set("l", func() any {
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(g.t, "items") {
			list = append(list, g.int())
		}
		return list
	})
	set("j", func() any { return g.json(2) })
	return d
}

func (g generator) number(depth int) string {
	if depth <= 0 {
		return g.pick("number", "n", "m", "x", "id", "n", "m", "x", spelled(g.int()), spelled(g.float()), "null")
	}
	switch rapid.IntRange(0, 7).Draw(g.t, "number form") {
	case 0:
		return fmt.Sprintf("(%s %s %s)", g.number(depth-1), g.pick("op", "+", "-", "*", "/", "%"), g.number(depth-1))
	case 1:
		return fmt.Sprintf("%s(%s)", g.pick("function", "abs", "round"), g.number(depth-1))
	case 2:
		return fmt.Sprintf("len(%s)", g.pick("len", g.text(depth-1), "l"))
	case 3:
		return fmt.Sprintf("coalesce(%s, %s)", g.number(depth-1), g.number(depth-1))
	case 4:
		return fmt.Sprintf("case when %s then %s else %s end", g.condition(depth-1), g.number(depth-1), g.number(depth-1))
	case 5:
		return fmt.Sprintf("(%s - %s)", g.time(depth-1), g.time(depth-1))
	case 6:
		return "-(" + g.number(depth-1) + ")"
	}
	return g.number(0)
}

func (g generator) text(depth int) string {
	if depth > 0 && g.chance("text form", 40) {
		return fmt.Sprintf("%s(%s)", g.pick("function", "lower", "upper"), g.text(depth-1))
	}
	return g.pick("text", "s", "u", "s", spelled(g.textValue()))
}

func (g generator) time(depth int) string {
	if depth > 0 && g.chance("time form", 50) {
		switch rapid.IntRange(0, 2).Draw(g.t, "time") {
		case 0:
			return fmt.Sprintf("(%s %s %s)", g.time(depth-1), g.pick("op", "+", "-"), g.pick("ms", "n", "m", "1000", "-1"))
		case 1:
			return fmt.Sprintf("bucket(%s, %s)", g.time(depth-1), g.pick("span", "m", "1000", "86400000"))
		}
	}
	return g.pick("time", "t", "t", "now()", "timestamp("+spelled(g.instant())+")")
}

func (g generator) jsonPath() string {
	return g.pick("path", "j", "j.v", "j.w", "j.v", "j.w.v")
}

func (g generator) numberValue() any {
	if g.chance("float", 30) {
		return g.float()
	}
	return g.int()
}

func (g generator) scalarValue() any {
	if v := g.json(0); v != nil {
		return v
	}
	return int64(1)
}

func (g generator) scalar() string { return spelled(g.scalarValue()) }

// comparison draws one condition without logic.
func (g generator) comparison(depth int) string {
	op := g.pick("comparison", "=", "=", "!=", "<", "<=", ">", ">=")
	// sides may come the other way around.
	join := func(a, b string) string {
		// Each alone, for the other side may hold parameters.
		if a == "null" {
			a = "n"
		}
		if b == "null" {
			b = "1"
		}
		if g.chance("swap", 20) {
			a, b = b, a
		}
		return a + " " + op + " " + b
	}
	switch rapid.IntRange(0, 13).Draw(g.t, "comparison form") {
	case 0, 1:
		return join(g.pick("column", "n", "m", "x", "id"), g.constant(g.numberValue()))
	case 2:
		return join(g.pick("column", "s", "u", "s", "u", "coalesce(u)"), g.constant(g.textValue()))
	case 3:
		if g.chance("instant", 40) {
			return join("t", g.constant(g.instant()))
		}
		return join("t", g.pick("instant", "now()", "now() - 1000", "0"))
	case 4:
		return join(g.jsonPath(), g.constant(g.scalarValue()))
	case 5:
		return join(g.number(depth), g.number(depth))
	case 6:
		return join(g.text(depth), g.text(depth))
	case 7:
		return join(g.time(depth), g.time(depth))
	case 8:
		return g.membership()
	case 9:
		return g.pick("null", "n", "x", "s", "u", "t", "b", "l", "j", "j.v", "id") + g.pick("is", " is null", " is not null")
	case 10:
		text := g.pick("text", "s", "u", "j.v", "j.w")
		if g.chance("pattern", 50) {
			return "like(" + text + ", " + g.pattern() + ")"
		}
		return text + " ~ " + g.pick("sub", spelled(g.textValue()), "lower(s)", "u")
	case 11:
		if g.chance("constant item", 40) {
			return "l has " + g.constant(g.numberValue())
		}
		return g.pick("list", "l has n", "l has 1.0", "j.v has "+g.scalar(), "j has 1")
	case 12:
		return g.pick("flag", "b", "b = true", "b != true", "b = false", "j.v", "true")
	}
	return join(g.pick("any", "n", "s", "t", "b", "j.v", "x", "l"), g.pick("other", "n", "u", "j.w", "x", "id", "b"))
}

// innerMembership draws an in with an inner get, whose rows never fail.
func (g generator) innerMembership() string {
	number := g.pick("numbers", "n", "m", "x", "id")
	pair := g.pick("in", number+" in n", number+" in x", "m + 0 in m", "s in u", "lower(s) in s", "t in t", "j.v in n", "j.v in t", "j.w in j", "n in j.v", "s in j.w", "j in s", "b in b")
	x, f, _ := strings.Cut(pair, " in ")
	rest := g.pick("inner", "", "", " where m > 1", " where n is not null order n desc limit 3", " where m in (get c select n)", " where id > 3 order m limit 2 offset 1", " where id < 0")
	if g.chance("greatest", 10) && !strings.Contains(f, ".") && !strings.Contains(rest, "limit") {
		f = "max(" + f + ")"
	}
	return fmt.Sprintf("%s %sin (get c select %s%s)", x, g.pick("not", "", "", "not "), f, rest)
}

// pattern draws what like takes.
func (g generator) pattern() string {
	if g.chance("pattern of the row", 20) {
		return g.pick("pattern", "u", "s", "j.w")
	}
	pattern := ""
	for range rapid.IntRange(0, 4).Draw(g.t, "pieces") {
		pattern += g.pick("piece", "*", "*", "%", `\*`, `\`, "a", "B", "i", "İ", "ß", "_", "ab")
	}
	return g.constant(pattern)
}

func (g generator) membership() string {
	if g.chance("inner get", 25) {
		return g.innerMembership()
	}
	column, item := "n", func() string { return g.constant(g.numberValue()) }
	switch g.pick("in", "n", "m", "x", "s", "u", "t", "j", "id") {
	case "m":
		column, item = "m", func() string { return g.pick("item", "0", "1.0", "2", "2.5", "3") }
	case "x":
		column, item = "x", func() string { return g.constant(g.numberValue()) }
	case "s":
		column, item = "s", func() string { return g.constant(g.textValue()) }
	case "u":
		column, item = "u", func() string { return spelled(g.textValue()) }
	case "t":
		column, item = "t", func() string { return spelled(g.instant()) }
	case "j":
		column, item = g.jsonPath(), g.scalar
	case "id":
		column, item = "id", func() string { return fmt.Sprint(rapid.IntRange(-1, 20).Draw(g.t, "id")) }
	}
	var items []string
	for range rapid.IntRange(0, 4).Draw(g.t, "members") {
		items = append(items, item())
	}
	if g.chance("null member", 10) {
		items = append(items, "null")
	}
	if g.chance("field member", 10) {
		items = append(items, column)
	}
	return fmt.Sprintf("%s %sin [%s]", column, g.pick("not", "", "", "not "), strings.Join(items, ", "))
}

func (g generator) condition(depth int) string {
	if depth <= 0 || g.chance("leaf", 40) {
		return g.comparison(depth)
	}
	switch rapid.IntRange(0, 3).Draw(g.t, "logic") {
	case 0:
		return "not (" + g.condition(depth-1) + ")"
	case 1:
		return "(" + g.condition(depth-1) + " or " + g.condition(depth-1) + ")"
	case 2:
		return "(" + g.condition(depth-1) + ") is null"
	}
	return "(" + g.condition(depth-1) + " and " + g.condition(depth-1) + ")"
}

// where draws an and chain, or none.
func (g generator) where() string {
	var terms []string
	for range rapid.IntRange(0, 3).Draw(g.t, "terms") {
		terms = append(terms, g.condition(rapid.IntRange(0, 2).Draw(g.t, "depth")))
	}
	if terms == nil {
		return ""
	}
	return " where " + strings.Join(terms, " and ")
}

func (g generator) order() string {
	var keys []string
	named := map[string]bool{}
	for range rapid.SampledFrom([]int{0, 0, 1, 1, 1, 2, 3}).Draw(g.t, "keys") {
		key := g.pick("key", "n", "m", "x", "s", "u", "t", "b", "l", "j", "j.v", "j.w", "id")
		if strings.HasPrefix(key, "j") || key == "s" || key == "u" {
			key += g.collate()
		}
		if named[key] {
			continue
		}
		named[key] = true
		keys = append(keys, key+g.pick("direction", "", " desc"))
	}
	if keys == nil {
		return ""
	}
	return " order " + strings.Join(keys, ", ")
}

func (g generator) collate() string {
	return g.pick("collation", "", "", " collate und", " collate tr")
}

func (g generator) page() string {
	page := ""
	if g.chance("limit", 50) {
		page += fmt.Sprintf(" limit %d", rapid.IntRange(0, 8).Draw(g.t, "limit"))
	}
	if g.chance("offset", 20) {
		page += fmt.Sprintf(" offset %d", rapid.IntRange(0, 8).Draw(g.t, "offset"))
	}
	return page
}

// put writes a document as a statement.
func put(d map[string]any) string {
	var items []string
	for _, field := range keys(d) {
		items = append(items, field+": "+spelled(d[field]))
	}
	return "put c {" + strings.Join(items, ", ") + "}"
}

// indexes draws the declarations of fieldList.
func (g generator) indexes() []any {
	var out []any
	for _, field := range []string{"n", "m", "x", "s", "u", "t", "b"} {
		out = append(out, g.pick("index on "+field, "", " @hash", " @sorted", " @sorted"))
	}
	if out[6] == " @sorted" {
		out[6] = " @hash"
	}
	return out
}

// normal is a value of the model as it comes out of a json field: what is a number equal to an int
// is one.
func normal(v any) any {
	switch v := v.(type) {
	case float64:
		raw, err := doc.ParseJSON(nil, doc.AppendFloat(nil, v))
		if err != nil {
			panic(err)
		}
		return decode(doc.Raw(raw).Value())
	case []any:
		for i, e := range v {
			v[i] = normal(e)
		}
	case map[string]any:
		for k, e := range v {
			v[k] = normal(e)
		}
	}
	return v
}
