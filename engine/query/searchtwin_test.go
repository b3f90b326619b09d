package query

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"fenec/engine/doc"
	"fenec/engine/query/syntax"

	"pgregory.net/rapid"
)

// searched is a collection with vectors and words, and its documents decoded.
type searched struct {
	db     *memory
	rows   []map[string]any // without those whose ttl is over
	sparse map[int64]map[int]float64
	metric string
	k1, b  float64
}

var (
	numbers = []float64{0, 1, -1, 0.5, 2, 1.5}
	words   = []string{"fox", "bear", "wolf", "owl"}
)

func (g generator) vector() []float64 {
	return []float64{rapid.SampledFrom(numbers).Draw(g.t, "x"), rapid.SampledFrom(numbers).Draw(g.t, "y"), rapid.SampledFrom(numbers).Draw(g.t, "z")}
}

func (g generator) words(most int) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, most).Draw(g.t, "words"), " ")
}

// sparse draws a sparse vector, and how it is spelled.
func (g generator) sparse() (map[int]float64, string) {
	out, text := map[int]float64{}, []string{}
	for at := 1; at <= 4; at++ {
		if g.chance("weight", 40) {
			out[at] = rapid.SampledFrom(numbers[1:]).Draw(g.t, "weight")
			text = append(text, fmt.Sprintf("%d:%v", at, out[at]))
		}
	}
	return out, "{" + strings.Join(text, ",") + "}/4"
}

func newSearched(t *rapid.T) *searched {
	g := generator{t: t}
	w := &searched{db: newMemory(), sparse: map[int64]map[int]float64{}, metric: g.pick("metric", "cosine", "l2", "dot")}
	w.k1, w.b = rapid.SampledFrom([]float64{1.2, 0, 2}).Draw(t, "k1"), rapid.SampledFrom([]float64{0.75, 0, 1}).Draw(t, "b")
	indexes := g.indexes()
	ttl := doc.Index{Kind: doc.IndexTTL, Span: 20_000 * 24 * time.Hour}
	if g.chance("ttl", 40) {
		indexes[5] = " " + ttl.String()
	} else {
		ttl.Span = 0
	}
	create := "create collection c (" + fmt.Sprintf(fieldList, indexes...) + fmt.Sprintf(", v vector<3%s> @hnsw(%s, m=2%s), w vector<3>, p sparse<4>%s, d text @text(k1=%v, b=%v))",
		g.pick("storage", "", ", f16"), w.metric, g.pick("quant", "", "", ", quant=int8", ", quant=bit"), g.pick("inverted", "", " @inverted"), w.k1, w.b)
	if _, err := w.db.exec(create); err != nil {
		t.Fatalf("%s: %v", create, err)
	}
	for id := range int64(rapid.IntRange(0, 40).Draw(t, "documents")) {
		d := g.document()
		d["id"] = id + 1
		if g.chance("vector", 85) {
			var list []any
			for _, x := range g.vector() {
				list = append(list, x)
			}
			d["v"], d["w"] = list, list
		}
		if g.chance("sparse", 85) {
			w.sparse[id+1], d["p"] = g.sparse()
		}
		if g.chance("text", 85) {
			d["d"] = g.words(6)
		}
		if _, err := w.db.exec(put(d)); err != nil {
			t.Fatalf("%s: %v", put(d), err)
		}
		d["j"] = normal(d["j"])
		if at, ok := d["t"].(moment); !ok || ttl.Span == 0 || int64(at)+ttl.Span.Milliseconds() > testNow.UnixMilli() {
			w.rows = append(w.rows, d)
		}
	}
	return w
}

// passing are the rows that pass a where; ok is false where one fails.
func (w *searched) passing(where string) (rows []map[string]any, ok bool) {
	st, err := syntax.Parse("get c" + where)
	if err != nil {
		return nil, false
	}
	n := &naive{types: fieldTypes, all: w.rows}
	if n.constants(st.(*syntax.Get).Where) != nil {
		return nil, false
	}
	rows, err = n.rows(w.rows, st.(*syntax.Get).Where, nil, nil, nil)
	return rows, err == nil
}

// get runs a statement; ok is false if it fails, which a condition may.
func (w *searched) get(statement string) (rows []scored, ok bool) {
	r, err := w.db.exec(statement)
	if err != nil {
		return nil, false
	}
	var answer []struct {
		ID    int64   `json:"id"`
		Score float64 `json:"_score"`
	}
	if err := json.Unmarshal(r.Body, &answer); err != nil {
		panic(err)
	}
	for _, row := range answer {
		rows = append(rows, scored{row.ID, row.Score})
	}
	return rows, true
}

// fail reports an answer that differs from the expected one.
func (w *searched) fail(t *rapid.T, why, statement string, got, want []scored) {
	plan, err := w.db.exec("explain " + statement)
	t.Fatalf("%s: %s\ngot  %v\nwant %v\n%s", statement, why, got, want, answerText(plan, err))
}

// check compares an answer with a page of the rows wanted: place by place, or where that is not whole in what each row
// scores and that there are as many.
func (w *searched) check(t *rapid.T, statement string, got, want []scored, ascending, whole bool, limit, offset int) {
	want = best(want, ascending)
	scores := map[int64]float64{}
	for _, row := range want {
		scores[row.id] = row.score
	}
	if n := min(limit, max(0, len(want)-offset)); len(got) != n {
		w.fail(t, fmt.Sprintf("%d rows, want %d", len(got), n), statement, got, want)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-5*max(1, math.Abs(a)) }
	for i, row := range got {
		score, ok := scores[row.id]
		switch {
		case !ok || !near(score, row.score):
			w.fail(t, fmt.Sprintf("row %d does not score so", row.id), statement, got, want)
		case whole && !near(want[offset+i].score, row.score):
			w.fail(t, fmt.Sprintf("row %d is in another place", row.id), statement, got, want)
		case i > 0 && row.score == got[i-1].score && row.id <= got[i-1].id:
			w.fail(t, fmt.Sprintf("row %d comes after one of a higher id", row.id), statement, got, want)
		case i > 0 && row.score != got[i-1].score && (row.score < got[i-1].score) == ascending:
			w.fail(t, fmt.Sprintf("row %d comes after a worse one", row.id), statement, got, want)
		}
	}
}

// vectorText spells a vector.
func vectorText(q []float64) string { return strings.ReplaceAll(fmt.Sprint(q), " ", ",") }

func TestSearchesAgreeWithANaiveOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSearched(t)
		g := generator{t: t}
		for range 10 {
			where := ""
			if g.chance("where", 60) {
				where = g.where()
			}
			rows, ok := w.passing(where)
			if !ok {
				continue
			}
			limit, offset := rapid.IntRange(0, 12).Draw(t, "limit"), rapid.SampledFrom([]int{0, 0, 0, 2}).Draw(t, "offset")
			page := fmt.Sprintf(" limit %d offset %d", limit, offset)
			statement, ascending, whole := "get c select id"+where, false, true
			q, query := g.vector(), g.words(3)
			var want []scored
			switch g.pick("search", "graph", "narrow graph", "exact", "unindexed", "sparse", "match", "match in order", "match in order") {
			case "graph":
				statement += " near v " + vectorText(q) + page
				want, ascending = naiveNear(rows, "v", w.metric, q), w.metric == "l2"
			case "narrow graph":
				statement += " near v " + vectorText(q) + g.pick("ef", " ef 1", " ef 2") + page
				want, ascending, whole = naiveNear(rows, "v", w.metric, q), w.metric == "l2", false
			case "exact":
				statement += " near v " + vectorText(q) + " exact" + page
				want, ascending = naiveNear(rows, "v", w.metric, q), w.metric == "l2"
			case "unindexed":
				statement += " near w " + vectorText(q) + page
				want = naiveNear(rows, "w", "cosine", q)
			case "sparse":
				weights, text := g.sparse()
				statement += fmt.Sprintf(" near p %q%s%s", text, g.pick("exact", "", " exact"), page)
				want = naiveSparse(rows, w.sparse, weights)
			case "match":
				statement += fmt.Sprintf(" match d %q", query) + page
				want = naiveMatch(w.rows, rows, "d", query, w.k1, w.b)
			default:
				w.checkOrdered(t, statement, query, rows)
				continue
			}
			if got, ok := w.get(statement); ok {
				w.check(t, statement, got, want, ascending, whole, limit, offset)
			}
		}
	})
}

// checkOrdered compares a match that has an order of its own with the rows in that order.
func (w *searched) checkOrdered(t *rapid.T, statement, query string, rows []map[string]any) {
	g := generator{t: t}
	tail := g.order() + g.page()
	statement += fmt.Sprintf(" match d %q", query) + tail
	st, err := syntax.Parse("get c" + tail)
	if err != nil {
		t.Fatal(err)
	}
	get := st.(*syntax.Get)
	if len(get.Order) == 0 {
		return
	}
	found := map[int64]float64{}
	for _, row := range naiveMatch(w.rows, rows, "d", query, w.k1, w.b) {
		found[row.id] = row.score
	}
	var want []scored
	matched := slices.DeleteFunc(slices.Clone(rows), func(row map[string]any) bool { _, ok := found[row["id"].(int64)]; return !ok })
	ordered, err := (&naive{types: fieldTypes}).rows(matched, nil, get.Order, get.Limit, get.Offset)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range ordered {
		want = append(want, scored{row["id"].(int64), found[row["id"].(int64)]})
	}
	got, ok := w.get(statement)
	same := func(a, b scored) bool { return a.id == b.id && math.Abs(a.score-b.score) < 1e-5 }
	if ok && !slices.EqualFunc(got, want, same) {
		w.fail(t, "not those rows in that order", statement, got, want)
	}
}

// What rerank and fuse make is compared with the results of the same near and match alone.
func TestRerankAndFuseAgreeWithNaiveOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSearched(t)
		g := generator{t: t}
		for range 10 {
			where := g.where()
			q, query, n := vectorText(g.vector()), g.words(3), rapid.IntRange(1, 6).Draw(t, "candidates")
			match := fmt.Sprintf("get c select id%s match d %q", where, query)
			matched, ok := w.get(fmt.Sprintf("%s limit %d", match, n))
			if !ok {
				continue
			}
			limit, offset := rapid.IntRange(1, 12).Draw(t, "limit"), rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "offset")
			page := fmt.Sprintf(" limit %d offset %d", limit, offset)
			var want []scored
			var statement string
			ascending := false
			if g.chance("rerank", 50) {
				matched, _ = w.get(fmt.Sprintf("%s limit %d", match, max(n, limit+offset)))
				field := g.pick("field", "v", "w")
				ascending = field == "v" && w.metric == "l2"
				statement = fmt.Sprintf("%s rerank %s %s candidates %d%s", match, field, q, n, page)
				var ids []string
				for _, row := range matched {
					ids = append(ids, fmt.Sprint(row.id))
				}
				want, _ = w.get(fmt.Sprintf("get c select id where id in [%s] near %s %s exact limit 100", strings.Join(ids, ", "), field, q))
			} else {
				near, ok := w.get(fmt.Sprintf("get c select id%s near v %s exact limit %d", where, q, n))
				if !ok {
					continue
				}
				k := rapid.OneOf(rapid.Int64Range(0, 60), rapid.Int64Range(0, math.MaxInt32)).Draw(t, "k")
				statement = fmt.Sprintf("%s near v %s exact fuse k %d candidates %d%s", match, q, k, n, page)
				want = naiveFuse(k, matched, near)
				want = want[min(offset, len(want)):]
				want = want[:min(limit, len(want))]
				if got, ok := w.get(statement); ok && !slices.EqualFunc(got, want, func(a, b scored) bool {
					return a.id == b.id && math.Abs(a.score-b.score) <= 1e-6*b.score
				}) {
					w.fail(t, "not those rows in that order", statement, got, want)
				}
				continue
			}
			if got, ok := w.get(statement); ok {
				w.check(t, statement, got, want, ascending, true, limit, offset)
			}
		}
	})
}
