package query

import (
	"strings"
	"testing"

	"fenec/engine/fail"
)

func TestAMatchOfTooManyRowsAsksForALimit(t *testing.T) {
	db := newMemory()
	db.must(t, `create collection c (n int, t text @text)`)
	db.must(t, `put c [`+strings.Repeat(`{n: 1, t: "fox"}, `, MaxPage-1)+`{n: 1, t: "fox"}]`)
	for _, order := range []string{"", " order n, id desc"} {
		if r, err := db.exec(`get c match t "fox"` + order); err != nil || r.Rows != MaxPage {
			t.Errorf("%s: of all that it may answer there are %d rows, %v", order, r.Rows, err)
		}
	}
	db.must(t, `put c {n: 2, t: "a fox"}`)
	for _, order := range []string{"", " order n, id desc"} {
		_, err := db.exec(`get c match t "fox"` + order)
		const want = "match t found more than 10000 rows, which is all it answers: give it a limit line 1 column 13"
		if fail.KindOf(err) != fail.Invalid || err.Error() != want {
			t.Errorf("%s: %v, want %s", order, err, want)
		}
		if r, err := db.exec(`get c where n = 1 match t "fox"` + order); err != nil || r.Rows != MaxPage {
			t.Errorf("%s: with a where that leaves as many as it may answer there are %d rows, %v", order, r.Rows, err)
		}
	}
}
