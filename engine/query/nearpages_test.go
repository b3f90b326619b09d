package query

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// crowdedAround is a database of so many vectors that its graphs are walked, with fields to filter by: n by a @sorted index, h by a
// @hash one, m by none. A hundredth of the rows have no vector, a few share one.
func crowdedAround(tb rapid.TB, seed uint64, rows, dim int, metric, quant string) *memory {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	db := newMemory()
	db.must(tb, fmt.Sprintf("create collection c (n int @sorted, h int @hash, m int, t text @text, v vector<%d> @hnsw(%s, m=2, ef_construction=8%s))", dim, metric, quant))
	texts := make([]string, rows)
	last := "null"
	for i := range texts {
		v := make([]string, dim)
		for j := range v {
			v[j] = fmt.Sprintf("%.3f", r.NormFloat64())
		}
		vector := "[" + strings.Join(v, ",") + "]"
		switch r.IntN(100) {
		case 0:
			vector = "null"
		case 1, 2, 3:
			vector = last
		}
		last = vector
		texts[i] = fmt.Sprintf("{n: %d, h: %d, m: %d, t: %q, v: %s}", r.IntN(1000), r.IntN(10), r.IntN(1000), words[r.IntN(4)], vector)
	}
	db.must(tb, "put c ["+strings.Join(texts, ",")+"]")
	return db
}

type nearRow struct {
	ID    int64   `json:"id"`
	Score float32 `json:"_score"`
}

func (m *memory) near(t rapid.TB, statement string) []nearRow {
	t.Helper()
	r, err := m.exec(statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	var rows []nearRow
	if err := json.Unmarshal(r.Body, &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// drawNear draws the where and the vector of a near.
func drawNear(t *rapid.T, dim int) (where, near string) {
	n := rapid.SampledFrom([]int{3, 30, 100, 300, 600, 900}).Draw(t, "per mille")
	where = rapid.SampledFrom([]string{
		"", fmt.Sprintf(" where n < %d", n), fmt.Sprintf(" where m < %d", n), " where h = 3", " where h in [3, 4, 5]",
		fmt.Sprintf(" where h = 3 and m < %d", n), fmt.Sprintf(" where n >= %d and m < 500", n), fmt.Sprintf(" where m < %d or h = 1", n),
	}).Draw(t, "where")
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "vector"), 12))
	v := make([]float64, dim)
	for i := range v {
		v[i] = math.Round(r.NormFloat64()*8) / 8
	}
	return where, " near v " + vectorText(v)
}

// crowds are the databases made so far. Nothing writes to one once it is made.
var crowds = map[string]*memory{}

func drawCrowded(t *rapid.T) (db *memory, dim int) {
	dim = rapid.SampledFrom([]int{3, 65}).Draw(t, "dim") // a search among documents goes by signs from 64 on
	metric := rapid.SampledFrom([]string{"cosine", "l2", "dot"}).Draw(t, "metric")
	quant := rapid.SampledFrom([]string{"", "", ", quant=int8", ", quant=bit"}).Draw(t, "quant")
	rows := rapid.SampledFrom([]int{200, 1200}).Draw(t, "rows")
	key := fmt.Sprint(rows, dim, metric, quant)
	if crowds[key] == nil {
		crowds[key] = crowdedAround(t, uint64(rows), rows, dim, metric, quant)
	}
	return crowds[key], dim
}

// TestPagesOfANearAreCutFromOneOrder compares pages within ef with one long page.
func TestPagesOfANearAreCutFromOneOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		db, dim := drawCrowded(t)
		for range 6 {
			where, near := drawNear(t, dim)
			ef := rapid.IntRange(1, 60).Draw(t, "ef")
			statement := fmt.Sprintf("get c select id%s%s ef %d", where, near, ef)
			long := db.near(t, fmt.Sprintf("%s limit %d", statement, ef))
			for range 4 {
				limit := rapid.IntRange(1, ef).Draw(t, "limit")
				offset := rapid.IntRange(0, ef-limit).Draw(t, "offset")
				page := fmt.Sprintf("%s limit %d offset %d", statement, limit, offset)
				want := long[min(offset, len(long)):]
				want = want[:min(limit, len(want))]
				if got := db.near(t, page); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%s:\n got %v\nwant %v\nof the long page %v", page, got, want, long)
				}
			}
		}
	})
}

// TestANearIsNeverShort asks for pages within and past ef: there are as many rows as pass the condition, each once, in order.
func TestANearIsNeverShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		db, dim := drawCrowded(t)
		for range 6 {
			where, near := drawNear(t, dim)
			all := db.near(t, fmt.Sprintf("get c select id%s%s exact limit 10000", where, near))
			limit := rapid.OneOf(rapid.IntRange(1, 100), rapid.IntRange(1, 2000)).Draw(t, "limit")
			offset := rapid.SampledFrom([]int{0, 0, 7, 150}).Draw(t, "offset")
			page := fmt.Sprintf("get c select id%s%s ef %d limit %d offset %d", where, near, rapid.IntRange(1, 60).Draw(t, "ef"), limit, offset)
			got := db.near(t, page)
			if want := min(limit, max(0, len(all)-offset)); len(got) != want {
				t.Fatalf("%s: %d rows, want %d", page, len(got), want)
			}
			exists := map[nearRow]bool{}
			for _, row := range all {
				exists[row] = true
			}
			for _, row := range got {
				if !exists[row] {
					t.Fatalf("%s: %v is no row of it, or twice", page, row)
				}
				delete(exists, row)
			}
		}
	})
}

// TestANearWithFewRowsIsExact compares searches whose condition leaves no more rows than ef x 2m with brute force, whichever
// index the condition has, and whether the rows lie near to the vector or not.
func TestANearWithFewRowsIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		db, dim := drawCrowded(t)
		for range 6 {
			where, near := drawNear(t, dim)
			if where == "" {
				continue
			}
			rows := len(db.near(t, fmt.Sprintf("get c select id%s%s exact limit 10000", where, near)))
			least := (rows + 3) / 4 // m is 2
			if least < 1 || least > 10_000 {
				continue
			}
			ef := least + rapid.SampledFrom([]int{0, 0, 1, 50}).Draw(t, "more")
			limit := rapid.IntRange(1, 20).Draw(t, "limit")
			got := db.near(t, fmt.Sprintf("get c select id%s%s ef %d limit %d", where, near, ef, limit))
			want := db.near(t, fmt.Sprintf("get c select id%s%s exact limit %d", where, near, limit))
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("of %d rows%s with ef %d\n got %v\nwant %v", rows, where, ef, got, want)
			}
		}
	})
}

// TestPagesOfARerankAndAFuseAreCutFromOneOrder: candidates alone decide what is ordered, for a rerank while the page stays within.
func TestPagesOfARerankAndAFuseAreCutFromOneOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		db, dim := drawCrowded(t)
		where, near := drawNear(t, dim)
		candidates := rapid.IntRange(1, 150).Draw(t, "candidates")
		match := fmt.Sprintf("get c select id%s match t %q", where, words[rapid.IntRange(0, 3).Draw(t, "word")])
		for statement, within := range map[string]int{
			fmt.Sprintf("%s rerank%s candidates %d", match, strings.TrimPrefix(near, " near"), candidates): candidates,
			fmt.Sprintf("%s%s ef 40 fuse candidates %d", match, near, candidates):                          10_000,
		} {
			long := db.near(t, fmt.Sprintf("%s limit %d", statement, within))
			for offset := 0; offset < within && offset <= len(long); offset += 7 {
				limit := min(7, within-offset)
				page := fmt.Sprintf("%s limit %d offset %d", statement, limit, offset)
				if got, want := db.near(t, page), long[offset:min(offset+limit, len(long))]; fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%s:\n got %v\nwant %v", page, got, want)
				}
			}
		}
	})
}
