package feed

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"fenec/engine"
)

// landings records the blocks of a database as they are reported to a feed, and the records they are in.
func landings(f *followed) (all []engine.Landed) {
	before := uint64(0)
	for i := range f.spans {
		s := &f.spans[i]
		for at := 0; at < len(s.data); {
			r := engine.RecordAt(s.data[at:])
			all = append(all, engine.Landed{
				Before: before, After: r.After(), Segment: s.segment, Memory: s.data[:at+len(r)], Start: at,
			})
			before = r.After()
			at += len(r)
		}
	}
	return all
}

// TestABlockThatLandsWhileTheFeedCopiesLosesNoChanges lands a block right after the image of a rewrite, in the span that the
// feed is about to copy.
func TestABlockThatLandsWhileTheFeedCopiesLosesNoChanges(t *testing.T) {
	from := fresh(t, DefaultKeep, engine.Options{})
	from.exec("create collection c (s text)")
	text := strings.Repeat("x", 500)
	for range 100 {
		from.exec(fmt.Sprintf("put c {s: %q}", text))
	}
	all := landings(from)
	image := len(all) - 1
	for range 2000 {
		f := New(DefaultKeep)
		f.Begin(from.DB, 0, nil)
		for _, b := range all[:image] {
			f.Landed(b)
		}
		var beside sync.WaitGroup
		beside.Go(func() { f.Landed(all[image]) })
		f.Rewriting(uint64(image))
		beside.Wait()
		f.Rewritten([][]byte{all[image].Memory[all[image].Start:]})
		if f.First() != 0 || f.End(Landed) != uint64(len(all)) {
			t.Fatalf("the feed serves changes behind %d up to %d, want all of %d", f.First(), f.End(Landed), len(all))
		}
		if blocks, err := f.Read(engine.Everything(), nil, 0, Landed, 1<<20); err != nil || len(blocks) != len(all) {
			t.Fatalf("the feed reads %d blocks, %v, want %d", len(blocks), err, len(all))
		}
	}
}
