package feed

import (
	"slices"

	"fenec/engine"
)

// rewrite is what the feed prepared for a rewrite of the file under way. The feed itself does not change until the
// rewrite is done, because it may be abandoned.
type rewrite struct {
	image  uint64 // the change at which the new file's image was taken
	kept   []span // copies of the latest blocks up to the image
	copied int64  // bytes of them that were not copies before
}

// Rewriting implements engine.Feed. It copies what the file is about to lose, the latest first, as much as the feed may
// keep. Blocks land meanwhile. They come after the image, where the copied spans end.
func (f *Feed) Rewriting(seq uint64) {
	spans := f.upTo(seq)
	kept := int64(0)
	from := len(spans)
	for from > 0 && kept+int64(len(spans[from-1].data)) <= f.keep {
		from--
		kept += int64(len(spans[from].data))
	}
	copies := rewrite{image: seq, kept: slices.Clone(spans[from:])} // a copy, which keeps the spans before from alive no longer
	for i := range copies.kept {
		if s := &copies.kept[i]; !s.own {
			s.data, s.own, s.ticket = slices.Clone(s.data), true, 0
			copies.copied += int64(len(s.data))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rewrite = copies
}

// upTo returns the spans up to a change at which a block ends.
func (f *Feed) upTo(seq uint64) []span {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.after(seq)
	spans := slices.Clone(f.spans[:n])
	if n < len(f.spans) && f.spans[n].before < seq {
		s := f.spans[n]
		s.cut(s.blocksUpTo(seq))
		spans = append(spans, s)
	}
	return spans
}

// Abandoned implements engine.Feed. It releases the copies made for the rewrite.
func (f *Feed) Abandoned() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rewrite = rewrite{}
}

// Rewritten implements engine.Feed. Of the changes before the new file's image only the copies stay; those after it are
// in the new segments. All of it is on disk.
func (f *Feed) Rewritten(segments [][]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.rewrite.image
	f.spans, f.onDisk = f.rewrite.kept, allOnDisk
	f.rewrite = rewrite{}
	f.own, f.first = 0, before
	for i := range f.spans {
		f.own += int64(len(f.spans[i].data))
	}
	if len(f.spans) > 0 {
		f.first = f.spans[0].before
	}
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
