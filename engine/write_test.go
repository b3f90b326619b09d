package engine

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// TestABlockIsRefusedByWhatItDoes asks before each block lands, with the effect of the whole block.
func TestABlockIsRefusedByWhatItDoes(t *testing.T) {
	var asked []Effect
	errFull := errors.New("no more")
	refuse := false
	now := time.UnixMilli(1_700_000_000_000)
	db := inMemory(t, Options{Clock: func() time.Time { return now }, Refuse: func(e Effect) error {
		asked = append(asked, e)
		if refuse {
			return errFull
		}
		return nil
	}})
	mustExec(t, db, `create collection c (n int @unique, at timestamp @ttl(1s))`)
	mustExec(t, db, `create collection d (n int)`)
	mustExec(t, db, `put d [{n: 1}, {n: 2}]`)
	asked = nil
	for _, tc := range []struct {
		texts []string
		rows  int64
	}{
		{[]string{`put c [{n: 1}, {n: 2}, {n: 3}]`}, 3},
		{[]string{`set c {n: 10} where n = 1`}, 0},
		{[]string{`put c {id: 1, n: 11}`}, 0},
		{[]string{`del c where n = 2`}, -1},
		{[]string{`put c {n: 4}`, `del c where n = 4`}, 0},
		{[]string{`del c where n = 3`, `put c {id: 3, n: 3}`, `put c {n: 5, at: 1700000000000}`}, 1},
		{[]string{`insert c {n: 3} if absent`, `put c {n: 6}`}, 1},
		{[]string{`drop collection d`}, -2},
		{[]string{`create collection d (n int)`, `put d {n: 1}`}, 1},
		{[]string{`get c`, `del c where n = 99`}, 0}, // no block
	} {
		asked = nil
		before := everything(t, db)
		seq := db.seq
		refuse = true
		_, err := db.Run(t.Context(), Everything(), &Request{Statements: statements1(tc.texts...), Batch: true})
		blocks := 1
		if tc.texts[0] == `get c` {
			blocks = 0
		} else if !errors.Is(err, errFull) {
			t.Errorf("%q: error %v, want that of the refusal", tc.texts, err)
		}
		if after := everything(t, db); after != before {
			t.Errorf("%q, refused, left\n%s\nof\n%s", tc.texts, after, before)
		}
		refuse = false
		if _, err := db.Run(t.Context(), Everything(), &Request{Statements: statements1(tc.texts...), Batch: true}); err != nil {
			t.Errorf("%q: %v", tc.texts, err)
		}
		if len(asked) != 2*blocks || blocks > 0 && (asked[0].Rows != tc.rows || asked[0] != asked[1] || db.seq == seq) {
			t.Errorf("%q: asked about %+v, want %d rows twice", tc.texts, asked, tc.rows)
		}
	}

	// The server's own rows do not count, and a sweep is asked about like any block.
	asked = nil
	o := &Once{Key: "a", Answer: func([]Result) (int, []byte) { return 200, []byte("{}") }}
	if _, err := db.Run(t.Context(), Everything(), &Request{Statements: statements1(`put c {n: 7}`), Once: o}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.SetConsumer(Everything(), nil, Consumer{"a", 1}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Second)
	if n, err := db.Expire(); n != 1 || err != nil {
		t.Fatalf("%d expired, %v", n, err)
	}
	var rows []int64
	for _, e := range asked {
		rows = append(rows, e.Rows)
		if e.Bytes < recordHead || e.Bytes > 1<<12 {
			t.Errorf("a record of %d bytes", e.Bytes)
		}
	}
	if !slices.Equal(rows, []int64{1, 0, -1}) {
		t.Errorf("asked about %v rows", rows)
	}
}
