package query

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"fenec/engine/doc"

	"pgregory.net/rapid"
)

// drawn is a vector as an expression and what it comes to for a row; nil is null.
type drawn struct {
	text string
	of   func(row map[string][]float64) []float64
}

// vectors draws expressions whose values are vectors of one length.
type vectors struct {
	generator
	dim    int
	values *[]doc.Value // of the statement's parameters
}

// component draws one of the numbers that f16 holds, so that few sums of products are rounded.
func (g vectors) component() float64 {
	return float64(rapid.IntRange(-6, 6).Draw(g.t, "component")) / 2
}

func (g vectors) numbers() []float64 {
	v := make([]float64, g.dim)
	for i := range v {
		v[i] = g.component()
	}
	return v
}

func list(v []float64) string {
	var out []string
	for _, x := range v {
		out = append(out, string(doc.AppendFloat(nil, x)))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// given draws a constant: null, or a vector as a list, a text, or a parameter that holds either.
func (g vectors) given() drawn {
	v := g.numbers()
	out := drawn{of: func(map[string][]float64) []float64 { return v }}
	switch g.pick("form", "null", "list", "list", "text", "list parameter", "text parameter", "null parameter") {
	case "null":
		return drawn{"null", func(map[string][]float64) []float64 { return nil }}
	case "list":
		out.text = list(v)
	case "text":
		out.text = "'" + list(v) + "'"
	case "list parameter":
		raw, err := doc.ParseJSON(nil, []byte(list(v)))
		if err != nil {
			panic(err)
		}
		out.text = g.param(doc.Raw(raw).Value())
	case "text parameter":
		out.text = g.param(doc.Value{Kind: doc.Untyped, B: []byte(list(v))})
	case "null parameter":
		v = nil
		out.text = g.param(doc.Value{})
	}
	return out
}

func (g vectors) param(v doc.Value) string {
	*g.values = append(*g.values, v)
	return fmt.Sprintf("$%d", len(*g.values))
}

// vector draws an expression; exact ones come to numbers that are not rounded.
func (g vectors) vector(depth int, exact bool) drawn {
	field := func(name string) drawn {
		return drawn{name, func(row map[string][]float64) []float64 { return row[name] }}
	}
	if depth == 0 || g.chance("leaf", 40) {
		if g.chance("constant", 40) {
			return g.given()
		}
		if g.dim == 3 {
			return field("u")
		}
		return field(g.pick("field", "v", "w"))
	}
	a := g.vector(depth-1, exact)
	if !exact && g.chance("normalize", 50) {
		return drawn{"normalize(" + a.text + ")", func(row map[string][]float64) []float64 { return normalized(a.of(row)) }}
	}
	b := g.vector(depth-1, exact)
	if g.chance("case", 50) {
		return drawn{"case when v is null then " + a.text + " else " + b.text + " end", func(row map[string][]float64) []float64 {
			if row["v"] == nil {
				return a.of(row)
			}
			return b.of(row)
		}}
	}
	return drawn{"coalesce(" + a.text + ", " + b.text + ")", func(row map[string][]float64) []float64 {
		if v := a.of(row); v != nil {
			return v
		}
		return b.of(row)
	}}
}

func normalized(v []float64) []float64 {
	if v == nil {
		return nil
	}
	n := math.Sqrt(naiveDot(v, v))
	out := make([]float64, len(v))
	for i, x := range v {
		if n > 0 {
			out[i] = x / n
		}
	}
	return out
}

func naiveDot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// measure draws a measure and what it comes to; NaN is null.
func (g vectors) measure(exact bool) (string, func(row map[string][]float64) float64) {
	a := g.vector(2, exact)
	name := g.pick("measure", "dot", "l2", "cosine", "norm")
	if name == "norm" && !exact {
		return fmt.Sprintf("norm(%s)", a.text), func(row map[string][]float64) float64 {
			if x := a.of(row); x != nil {
				return math.Sqrt(naiveDot(x, x))
			}
			return math.NaN()
		}
	}
	b := g.vector(2, exact)
	if exact {
		name = "dot"
	}
	return fmt.Sprintf("%s(%s, %s)", name, a.text, b.text), func(row map[string][]float64) float64 {
		x, y := a.of(row), b.of(row)
		if x == nil || y == nil {
			return math.NaN()
		}
		switch name {
		case "dot":
			return naiveDot(x, y)
		case "cosine":
			return naiveDot(normalized(x), normalized(y))
		}
		sum := 0.0
		for i := range x {
			sum += (x[i] - y[i]) * (x[i] - y[i])
		}
		return math.Sqrt(sum)
	}
}

// nearly reports whether a number of an answer, nil for null, is x except for rounding; NaN is null.
func nearly(got any, x float64) bool {
	f, ok := got.(float64)
	if !ok {
		return got == nil && math.IsNaN(x)
	}
	return math.Abs(f-x) <= 2e-6*(1+math.Abs(x))
}

func TestMeasuresOfVectorsAreWhatFloatsSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var params []doc.Value
		g := vectors{generator{t: t}, 2, &params}
		db := newMemory()
		exec := func(statement string) string {
			r, err := db.exec(statement, params...)
			if err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
			return string(r.Body)
		}
		exec("create collection c (v vector<2>, w vector<2, f16>, u vector<3>)")
		rows := make([]map[string][]float64, rapid.IntRange(1, 5).Draw(t, "rows"))
		for i := range rows {
			rows[i] = map[string][]float64{}
			var items []string
			for _, name := range []string{"v", "w", "u"} {
				g.dim = 2
				if name == "u" {
					g.dim = 3
				}
				if g.chance("value of "+name, 80) {
					rows[i][name] = g.numbers()
					items = append(items, name+": "+list(rows[i][name]))
				}
			}
			exec("put c {" + strings.Join(items, ", ") + "}")
		}
		for range 8 {
			params = nil
			g.dim = rapid.SampledFrom([]int{2, 2, 3}).Draw(t, "dim")
			text, measure := g.measure(false)
			cond, exact := g.measure(true)
			limit := g.component()
			statement := fmt.Sprintf("get c select id, %s as m where %s >= %v", text, cond, limit)
			var got []map[string]any
			if err := json.Unmarshal([]byte(exec(statement)), &got); err != nil {
				t.Fatal(err)
			}
			for i, row := range rows {
				if !(exact(row) >= limit) {
					continue
				}
				if len(got) == 0 || got[0]["id"] != float64(i+1) || !nearly(got[0]["m"], measure(row)) {
					t.Fatalf("%s %v: row %d is missing or not %v: %v", statement, params, i+1, measure(row), got)
				}
				got = got[1:]
			}
			if len(got) > 0 {
				t.Fatalf("%s %v: too many: %v", statement, params, got)
			}
		}
	})
}
