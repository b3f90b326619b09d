package engine

import (
	"fmt"
	"testing"

	"fenec/engine/fail"

	"golang.org/x/sync/errgroup"
)

// TestConcurrentAlters is for the race detector: schemas change concurrently with readers, index builds, a
// compact and the deletion of expired documents.
func TestConcurrentAlters(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int @sorted, j json, at timestamp @ttl(1s))`)
	mustExec(t, db, `create index on c (j.k) @hash`)
	var group errgroup.Group
	for _, texts := range [][]string{
		{`alter collection c rename field n to m`, `alter collection c rename field m to n`},
		{`alter collection c add field x int`, `create index on c (x) @unique`, `alter collection c drop field x`},
		{`alter collection c drop field at`, `alter collection c add field at timestamp @ttl(1s)`},
		{`put c {j: {k: 1}}`, `put c {at: 0}`, `set c {j.k: 2} where j.k = 1 limit 1`, `del c limit 1`, `put c {at: 0, x: 1}`},
		{`get c where n > 1 order n limit 2`, `get c where j.k = 1`, `get c order at limit 3`, `get c count`, `collections`},
		{`expire`, `compact`},
	} {
		group.Go(func() error {
			for i := range 60 * len(texts) {
				_, err := step(db, texts[i%len(texts)])
				if kind := fail.KindOf(err); err != nil && kind != fail.NotFound && kind != fail.Conflict {
					return fmt.Errorf("%s: %w", texts[i%len(texts)], err)
				}
				if _, err := db.Collections(Everything()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	wantLive(t, db)
	before := dump(t, db)
	mustExec(t, db, `compact`)
	if after := dump(t, db); after != before {
		t.Errorf("a compact changed what there is:\n%s\n%s", before, after)
	}
}
