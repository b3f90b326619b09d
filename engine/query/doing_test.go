package query

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"fenec/engine/fail"
)

// limited is an endAfter that says how long it gave.
type limited struct{ endAfter }

func (c *limited) Limit() time.Duration { return 2 * time.Second }

func TestATimeoutNamesWhatTheStatementWasDoing(t *testing.T) {
	db := newMemory()
	db.must(t, "create collection books (year int @sorted, author text @hash, n int, v vector<2>, words text @text, s sparse<9> @inverted)")
	db.must(t, "create collection reviews (book int @hash)")
	rows := make([]string, 0, 20_000)
	for i := range cap(rows) {
		rows = append(rows, fmt.Sprintf(`{year: %d, author: "a%d", n: %d, v: [1, %d], words: "w", s: "{1:1}/9"}`, i%5000, i%4, i%7, i))
	}
	db.must(t, "put books ["+strings.Join(rows, ",")+"]")
	reviews := make([]string, 0, 9000)
	for range cap(reviews) {
		reviews = append(reviews, "{book: 1}")
	}
	db.must(t, "put reviews ["+strings.Join(reviews, ",")+"]")
	db.must(t, "create collection sessions (seen timestamp @ttl(1d), n int @sorted)")
	db.must(t, "put sessions [{seen: 0, n: 1}, {n: 2}]")
	for _, c := range []struct {
		statement string
		asked     int
		want      string
	}{
		{"get books", 0, "about to begin"},
		{"collections", 1, "building the index on seen of sessions"},
		{`explain get books where author = "none" and year < 5`, 2, "building the index on year of books"},
		{`get books where n in (get sessions select max(n)) count`, 2, "building the index on seen of sessions"},
		{"get sessions count", 1, "building the index on seen of sessions"},
		{"get sessions select max(n)", 1, "building the index on seen of sessions"},
		{"get books", 1, "scanning books, 4 096 of 20 000 rows tested"},
		{"get books where n = 9 count", 3, "scanning books, 12 288 of 20 000 rows tested"},
		{"get books order n, year", 2, "scanning books, 8 192 of 20 000 rows tested"},
		{"get books order n, author", 6, "sorting 20 000 rows of books"},
		{"get books order id desc", 1, "scanning books, 4 096 of 20 000 rows tested"},
		{"get books where year >= 0 and n = 9 order year limit 1", 3, "walking @sorted on year of books, 4 096 of 20 000 rows tested"},
		{`get books where author = "a1" and n = 9`, 2, "reading the rows of books that @hash on author leads to, 4 096 of 20 000 rows tested"},
		{`get books where author in ["a0", "a1"] and n = 9 limit 1`, 1, "building the index on author of books"},
		{"get books where year < 1250 and n = 9", 2, "taking rows of books from @sorted on year, 5 000 so far"},
		{"get books where year < 1250 and n = 9", 3, "reading the rows of books that @sorted on year leads to, 4 096 of 20 000 rows tested"},
		{"get books select n, count(*) group n", 2, "grouping books, 8 192 of 20 000 rows tested"},
		{"get books select id as k, count(*) group id having count(*) > 1", 6, "grouping books, 20 000 of 20 000 rows tested"},
		{"get books where id = 1 lookup reviews on book", 2, "looking up reviews for the rows of books, 4 096 rows tested"},
		{"get books near v [1, 2] exact", 1, "scanning books, 4 096 of 20 000 rows tested"},
		{"get books where n = 9 match words 'w' limit 10", 2, "searching books, 4 096 of 20 000 rows looked at"},
		{"get books where n < 9 near s '{1:1}/9' limit 10", 1, "building the index on s of books"},
		{"get books where n in (get reviews select book) count", 1, "about to begin"},
		{"get books where n in (get reviews select book) count", 2, "scanning reviews, 4 096 of 9 000 rows tested"},
		{"set books {n: 1} where id > 0", 5, "writing books, 4 095 rows done"},
		{"del books", 6, "writing books, 8 191 rows done"},
	} {
		t.Run(fmt.Sprint(c.statement, " ", c.asked), func(t *testing.T) {
			over := db.snapshot()
			p, err := over.prepare(c.statement)
			if err != nil {
				t.Fatal(err)
			}
			ctx := &limited{endAfter{Context: context.Background(), end: c.asked, err: context.DeadlineExceeded}}
			_, err = p.Run(&Env{Ctx: ctx, Now: testNow}, over, nil)
			if want := "the statement ran out of time after 2s: it was " + c.want; fail.KindOf(err) != fail.Timeout || err.Error() != want {
				t.Errorf("%v\nwant %s", err, want)
			}
		})
	}
}

func TestACancelledStatementNamesWhatItWasDoing(t *testing.T) {
	s := newSegment(t, 10_000)
	ctx := &endAfter{Context: context.Background(), end: 1, err: context.Canceled}
	_, err := s.plan(t, "get c").Run(&Env{Ctx: ctx, Now: testNow}, s, nil)
	want := "the statement was given up, its caller went away: it was scanning c, 4 096 of 10 000 rows tested"
	if fail.KindOf(err) != fail.Canceled || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}
