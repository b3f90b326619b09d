package engine

import (
	"context"
	"strings"
	"testing"
	"unsafe"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query"
)

// withAccount returns a context whose account permits most bytes, and the account.
func withAccount(most int64) (context.Context, *query.Account) {
	a := &query.Account{Most: most}
	return &query.Accounted{Context: context.Background(), Account: a}, a
}

func TestWhatABlockTakesIsCountedUntilItHasLanded(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, "create collection c (n int)")
	rows, err := doc.ParseDocuments(nil, []byte("["+strings.Repeat(`{"n": 1},`, 49_999)+`{"n": 1}]`))
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, db, "insert into c $1", doc.Raw(rows).Value())
	const update = "set c {n: n + 1}"
	for name, c := range map[string]struct {
		statements []string
		most       int64
		fits       bool
	}{
		"an update with room":          {[]string{update}, 8 << 20, true},
		"an update without room":       {[]string{update}, 2 << 20, false},
		"a delete without room":        {[]string{"del c"}, 1 << 20, false},
		"two updates with room":        {[]string{update, update}, 16 << 20, true},
		"two updates, room for one":    {[]string{update, update}, 4 << 20, false},
		"an update of a batch and get": {[]string{update, "get c limit 3"}, 8 << 20, true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, account := withAccount(c.most)
			before := string(mustExec(t, db, "get c count").Body)
			want := int64(0) // of the answers
			var err error
			if len(c.statements) == 1 {
				_, err = db.Exec(ctx, Everything(), Statement{Text: c.statements[0]}, nil)
			} else {
				var sts []Statement
				for _, text := range c.statements {
					sts = append(sts, Statement{Text: text})
				}
				var results []Result
				results, _, err = db.Batch(ctx, Everything(), sts)
				want = int64(len(sts)) * int64(unsafe.Sizeof(Result{}))
				for i := range results {
					want += int64(cap(results[i].Body))
				}
			}
			switch {
			case c.fits && err != nil:
				t.Fatal(err)
			case c.fits && account.Held() != want:
				t.Errorf("%d bytes stay counted, want %d", account.Held(), want)
			case !c.fits && (fail.KindOf(err) != fail.TooLarge || !strings.Contains(err.Error(), "it was writing")):
				t.Errorf("without room: %v", err)
			case string(mustExec(t, db, "get c count").Body) != before:
				t.Error("the number of rows has changed")
			}
		})
	}
}
