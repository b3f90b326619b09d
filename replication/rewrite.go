package replication

import (
	"slices"

	"fenec/engine"
)

// rewrite is a rewrite of the file under way, as the feed prepared for it.
type rewrite struct {
	image    uint64 // the change the new file's image is of
	keptFrom uint64 // the change behind which everything up to the image has been copied
}

// Rewriting is engine.Feed's: it copies what the file is about to lose, the latest first, as much as the feed may keep.
func (f *Feed) Rewriting(seq uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.split(seq)
	f.rewrite = rewrite{image: seq, keptFrom: seq}
	kept := int64(0)
	for i := f.after(seq) - 1; i >= 0; i-- {
		if kept += int64(len(f.spans[i].data)); kept > f.keep {
			f.forget(i + 1)
			return
		}
		if !f.copyOut(i) {
			return
		}
		f.rewrite.keptFrom = f.spans[i].before
	}
}

// copyOut makes the data of a span the feed's own. It lets go of the lock meanwhile: blocks may land behind that span,
// and only where the disk fails may it be gone then.
func (f *Feed) copyOut(i int) bool {
	data := f.spans[i].data
	if f.spans[i].own {
		return true
	}
	f.mu.Unlock()
	own := slices.Clone(data)
	f.mu.Lock()
	if i >= len(f.spans) || len(f.spans[i].data) != len(own) {
		return false
	}
	f.spans[i].data, f.spans[i].own = own, true
	f.own += int64(len(own))
	return true
}

// forget lets go of the copies among the first n spans, which are the oldest of all.
func (f *Feed) forget(n int) {
	i := 0
	for i < n && f.spans[i].own {
		f.dropped(&f.spans[i])
		i++
	}
	if i > 0 {
		f.first = f.spans[i-1].after
		f.spans = slices.Delete(f.spans, 0, i)
	}
}

// dropped counts a span out.
func (f *Feed) dropped(s *span) {
	if s.own {
		f.own -= int64(len(s.data))
	}
}

// Rewritten is engine.Feed's: of what came before the new file's image only the copies stay, and what came after it is
// where the new segments have it. All of it is on disk.
func (f *Feed) Rewritten(segments [][]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var spans []span
	f.own, f.first = 0, f.rewrite.image
	for _, s := range f.spans {
		if s.before >= f.rewrite.keptFrom && s.after <= f.rewrite.image {
			if len(spans) == 0 {
				f.first = s.before
			}
			s.ticket = 0
			spans = append(spans, s)
			f.own += int64(len(s.data))
		}
	}
	f.spans, f.inherited = spans, false
	before := f.rewrite.image
	for i, segment := range segments { // numbers that no segment of the database has
		for at := 0; at < len(segment); {
			r := engine.RecordAt(segment[at:])
			f.add(engine.Landed{Before: before, After: r.After(), Memory: segment[:at+len(r)], Segment: -1 - i, Start: at})
			before = r.After()
			at += len(r)
		}
	}
	f.schemas.forget(f.first)
}
