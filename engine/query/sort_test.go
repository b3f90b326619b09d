package query

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fenec/engine/collation"

	"pgregory.net/rapid"
)

// Texts whose keys are longer than what a sort keeps of them.
func TestLongTextsComeInTheOrderOfACollation(t *testing.T) {
	ends := []string{"", "a", "A", "ä", "b", " a", strings.Repeat("z", 40), "e\u0301", "é"}
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string) string {
			return strings.Repeat("Straße ", rapid.IntRange(0, 6).Draw(t, label+" length")) + rapid.SampledFrom(ends).Draw(t, label)
		}
		by := rapid.SampledFrom([]collation.Collation{collation.Root, collation.Turkish}).Draw(t, "collation")
		type row struct {
			id   int
			a, b string
		}
		db := newMemory()
		must := func(statement string) string {
			r, err := db.exec(statement)
			if err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
			return string(r.Body)
		}
		must("create collection c (a text, b text)")
		var rows []row
		for id := range rapid.IntRange(1, 20).Draw(t, "rows") {
			r := row{id + 1, text("a"), text("b")}
			must(fmt.Sprintf("put c {a: %q, b: %q}", r.a, r.b))
			rows = append(rows, r)
		}
		slices.SortStableFunc(rows, func(x, y row) int {
			if c := collators[by].CompareString(y.b, x.b); c != 0 {
				return c
			}
			return collators[by].CompareString(x.a, y.a)
		})
		limit := rapid.IntRange(1, 22).Draw(t, "limit")
		var want []string
		for _, r := range rows[:min(limit, len(rows))] {
			want = append(want, fmt.Sprintf(`{"id":%d}`, r.id))
		}
		statement := fmt.Sprintf("get c select id order b collate %v desc, a collate %v limit %d", by, by, limit)
		if got := must(statement); got != "["+strings.Join(want, ",")+"]" {
			t.Fatalf("%s answers %s, want %s", statement, got, want)
		}
	})
}
