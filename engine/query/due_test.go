package query

import (
	"fmt"
	"testing"
	"time"

	"fenec/engine/doc"
	"fenec/engine/query/syntax"

	"pgregory.net/rapid"
)

// farthest is how far the twin of Due looks, in milliseconds.
const farthest = 40

// timed draws a condition with comparisons of t and until with the time.
func timed(t *rapid.T, depth int) string {
	pick := func(from ...string) string { return rapid.SampledFrom(from).Draw(t, "pick") }
	if depth > 0 && rapid.Bool().Draw(t, "nested") {
		switch pick("and", "or", "not") {
		case "and":
			return timed(t, depth-1) + " and (" + timed(t, depth-1) + ")"
		case "or":
			return "(" + timed(t, depth-1) + " or " + timed(t, depth-1) + ")"
		}
		return "not (" + timed(t, depth-1) + ")"
	}
	if rapid.IntRange(0, 2).Draw(t, "plain") == 0 {
		return pick("m = 1", "m > 0", "m is null", "t is null")
	}
	field, relation := pick("t", "until"), pick("<=", "<", "=", "!=", ">", ">=")
	now := pick("now()", "now() + 3", "now() - 4", "5 + now()", "now() - -2", "now() - 1000")
	if rapid.Bool().Draw(t, "turned") {
		return now + " " + relation + " " + field
	}
	return field + " " + relation + " " + now
}

func TestDueIsWhenTheConditionStartsToHold(tb *testing.T) {
	rapid.Check(tb, func(t *rapid.T) {
		m := newMemory()
		indexed := rapid.SampledFrom([]string{"t timestamp, until timestamp", "t timestamp @sorted, until timestamp", "t timestamp @sorted, until timestamp @ttl(1s)"}).Draw(t, "fields")
		m.must(tb, "create collection c (m int, "+indexed+")")
		const now = 10000
		for range rapid.IntRange(0, 6).Draw(t, "documents") {
			value := func(behind int) string {
				if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
					return "null"
				}
				return fmt.Sprint(now - behind + rapid.IntRange(-10, 20).Draw(t, "at"))
			}
			m.must(tb, fmt.Sprintf("put c {m: %d, t: %s, until: %s}", rapid.IntRange(0, 1).Draw(t, "m"), value(0), value(rapid.SampledFrom([]int{0, 1000}).Draw(t, "behind"))))
		}
		condition := timed(t, 2)
		if rapid.IntRange(0, 3).Draw(t, "one term") == 0 {
			condition = "t <= now() and m = 1"
		}
		get, err := m.prepare("get c where " + condition)
		if err != nil {
			t.Fatal(err)
		}
		want := int64(Never)
		for at := int64(now); at < now+farthest && want == Never; at++ {
			r, err := get.Run(&Env{Now: time.UnixMilli(at)}, m, nil)
			if err != nil {
				t.Fatal(err)
			}
			if r.Rows > 0 {
				want = at
			}
		}
		st, err := syntax.Parse("del c where " + condition)
		if err != nil {
			t.Fatal(err)
		}
		due, err := PrepareDue(st, m)
		if err != nil {
			t.Fatal(err)
		}
		within := func(at int64) int64 {
			if at >= now+farthest {
				return Never
			}
			return at
		}
		env := &Env{Now: time.UnixMilli(now)}
		all, err := due.All(env, m)
		if err != nil {
			t.Fatal(err)
		}
		if within(all) != want && want != now { // what there is already, no time brings about
			t.Fatalf("%s: all of them are due at %d, want %d", condition, all, want)
		}
		var documents []doc.Document
		m.Table("c").Ascend(1, func(d doc.Document) bool {
			documents = append(documents, d)
			return true
		})
		next, err := due.Next(env, m, documents)
		if err != nil {
			t.Fatal(err)
		}
		if within(next) != want {
			t.Fatalf("%s: the next of them is due at %d, want %d", condition, next, want)
		}
	})
}

func TestDueByAnIndex(t *testing.T) {
	m := newMemory()
	m.must(t, "create collection c (m int, t timestamp @sorted)")
	for text, want := range map[string]bool{
		"t <= now()": true, "t < now() + 5 and m = 1": true, "m = 1 and now() - 1 >= t": true,
		"t <= now() or m = 1": false, "t > now()": false, "t = now()": false, "not (t > now())": false,
		"t <= now() and t > now() - 5": false, "m = 1": false,
	} {
		st, err := syntax.Parse("del c where " + text)
		if err != nil {
			t.Fatal(err)
		}
		due, err := PrepareDue(st, m)
		if err != nil {
			t.Fatal(err)
		}
		if got := due.indexed != nil; got != want {
			t.Errorf("%s is found by an index: %v", text, got)
		}
	}
}

func TestTimesAtTheEndsOfTime(t *testing.T) {
	for _, tc := range []struct{ now, at, side, want int64 }{
		{5, 7, 5, 7},
		{5, 3, 5, 3},
		{5, Never, 5, Never},
		{5, Never, -5, Never},
		{Never - 1, 3, 2, Never},
		{5, -Never - 1, 5, Never},
		{5, -Never - 1, -1, -Never + 5},
	} {
		if got := ahead(tc.now, tc.at, tc.side); got != tc.want {
			t.Errorf("at %d, %d is reached from %d at %d, want %d", tc.now, tc.at, tc.side, got, tc.want)
		}
	}
}
