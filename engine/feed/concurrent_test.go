package feed

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"fenec/engine"
	"fenec/engine/wal"
)

// TestReadersFollowDuringWritesAndRewrites runs readers from the first change while writers write and the file is rewritten.
// Each reader sees every change once, in order.
func TestReadersFollowDuringWritesAndRewrites(t *testing.T) {
	const writers, each = 4, 150
	f := fresh(t, DefaultKeep, engine.Options{Sync: wal.Policy{Always: true}})
	f.exec("create collection c (n int)")
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var writing, following sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for n := range each {
				st := engine.Statement{Text: fmt.Sprintf("put c {id: %d, n: %d}", w*each+n+1, n)}
				if _, err := f.Exec(ctx, engine.Everything(), st, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Go(func() {
		for range 10 {
			if err := f.Compact(ctx); err != nil {
				t.Error(err)
			}
		}
	})
	for _, r := range []Reach{Landed, Durable, Durable} {
		following.Go(func() {
			if err := f.followTo(ctx, r, writers*each+1); err != nil {
				t.Errorf("in reach %d: %v", r, err)
			}
		})
	}
	writing.Wait()
	following.Wait()
}

// followTo reads from the beginning to the change last.
func (f *followed) followTo(ctx context.Context, r Reach, last uint64) error {
	since, names := uint64(0), f.Names()
	for since < last {
		moved := f.Moved(r)
		blocks, err := f.Read(engine.Everything(), nil, since, r, 1000)
		if err != nil {
			return err
		}
		for _, b := range blocks {
			if b.Before != since {
				return fmt.Errorf("a block behind change %d comes after %d", b.Before, since)
			}
			seq := b.Before
			if err := b.Record.Changes(func(c *engine.Change) error {
				if seq++; names.Schema(c, seq).Name != "c" {
					return fmt.Errorf("change %d is of another collection", seq)
				}
				return nil
			}); err != nil {
				return err
			}
			since = b.After
		}
		if len(blocks) > 0 {
			continue
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("stuck behind change %d of %d", since, f.End(r))
		}
	}
	return nil
}
