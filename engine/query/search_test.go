package query

import (
	"context"
	"testing"

	"fenec/engine/doc"
)

// Runs of a plan share their frames, so a search must leave nothing for the next run, which may not come to search.
func TestASearchLeavesNothingForTheNextRun(t *testing.T) {
	db := newMemory()
	db.must(t, `create collection c (n int, w text @text, v vector<2>)`)
	db.must(t, `put c [`+numbered(20, `{n: %[1]d, w: "word", v: [1, %[1]d]}`)+`]`)
	for _, statement := range []string{
		`explain get c where n < 10 near v [1, 0] limit $1`,
		`explain get c where n < 10 match w "word" limit $1`,
		`explain get c where n < 10 match w "word" rerank v [1, 0] limit $1`,
		`explain get c where n < 10 near v [1, 0] match w "word" fuse limit $1`,
	} {
		p, err := db.prepare(statement)
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		want := string(db.must(t, statement, doc.IntValue(0)).Body)
		for range 20 { // a frame that was used is likely to be used again
			for _, limit := range []int64{3, 0} {
				r, err := p.Run(&Env{Ctx: context.Background(), Params: []doc.Value{doc.IntValue(limit)}, Now: testNow}, db, nil)
				if err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
				if got := string(r.Body); limit == 0 && got != want {
					t.Fatalf("%s: limit 0 after limit 3 answered %s, want %s", statement, got, want)
				}
			}
		}
	}
}
