package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"fenec/internal/vfs/crashfs"
)

// TestABlockIsRefusedByWhatItDoes records the effects that Options.Refuse is called with, one for each block.
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

	// Rows of internal collections do not count, and a sweep is checked like any block.
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

// TestAWriteIsAnsweredOnceItIsAcknowledged has whoever acknowledges wait: the write does not return and is on disk and
// visible already. A repeat under its key waits too.
func TestAWriteIsAnsweredOnceItIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []uint64
		answer := make(chan error)
		hold := false
		fs := crashfs.New(1)
		db := inMemory(t, Options{FS: fs, Sync: always, Acknowledge: func(_ context.Context, seq uint64) error {
			if !hold {
				return nil
			}
			asked = append(asked, seq)
			return <-answer
		}})
		mustExec(t, db, `create collection c (n int)`)
		hold = true
		once := func(key string) *Once {
			return &Once{Key: key, Answer: func([]Result) (int, []byte) { return 201, []byte(key) }}
		}
		write := func(o *Once, texts ...string) <-chan error {
			done := make(chan error, 1)
			go func() {
				reply, err := db.Run(t.Context(), Everything(), &Request{Statements: statements1(texts...), Once: o})
				if err == nil && reply.Kept == nil && o != nil && reply.Result.Seq+uint64(len(reply.Results)) == 0 {
					err = errors.New("neither a result nor a kept answer")
				}
				done <- err
			}()
			synctest.Wait()
			return done
		}
		errLate := errors.New("no replica has it")
		for i, tc := range []struct {
			name  string
			once  *Once
			texts []string
			err   error
			rows  int
		}{
			{"a statement", nil, []string{`put c {n: 1}`}, nil, 1},
			{"one that is not acknowledged", nil, []string{`put c {n: 2}`}, errLate, 2},
			{"a batch", nil, []string{`put c {n: 3}`, `get c`, `put c {n: 4}`}, nil, 4},
			{"a write under a key that is not acknowledged", once("k"), []string{`put c {n: 5}`}, errLate, 5},
			{"its repeat", once("k"), []string{`put c {n: 5}`}, nil, 5},
		} {
			done := write(tc.once, tc.texts...)
			if len(asked) != i+1 || asked[i] != db.seq {
				t.Fatalf("%s: asked about %v at change %d", tc.name, asked, db.seq)
			}
			select {
			case err := <-done:
				t.Fatalf("%s is answered before it is acknowledged: %v", tc.name, err)
			default:
			}
			if n := mustExec(t, db, `get c`).Rows; n != tc.rows {
				t.Errorf("%s: %d rows are visible, want %d", tc.name, n, tc.rows)
			}
			answer <- tc.err
			if err := <-done; !errors.Is(err, tc.err) {
				t.Errorf("%s: %v, want %v", tc.name, err, tc.err)
			}
		}
		for _, text := range []string{`get c`, `del c where n = 99`} { // no block
			if err := <-write(nil, text); err != nil || len(asked) != 5 {
				t.Errorf("%s: %v, asked about %v", text, err, asked)
			}
		}
		hold = false
		left := fs.Crash()
		reopened := reopen(t, Options{FS: left})
		if n := mustExec(t, reopened, `get c`).Rows; n != 5 {
			t.Errorf("%d rows are on disk, want 5", n)
		}
	})
}
