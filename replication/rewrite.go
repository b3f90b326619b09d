package replication

import (
	"slices"

	"fenec/engine"
)

// rewrite is a rewrite of the file under way, as the feed prepared for it. The feed itself stays as it is until the
// rewrite is done, for it may come to nothing.
type rewrite struct {
	image  uint64 // the change the new file's image is of
	kept   []span // copies of the latest blocks up to the image
	copied int64  // bytes of them that were not copies before
}

// Rewriting is engine.Feed's: it copies what the file is about to lose, the latest first, as much as the feed may keep.
// Blocks land meanwhile. They come after the image, and the spans copied end there.
func (f *Feed) Rewriting(seq uint64) {
	spans := f.upTo(seq)
	kept := int64(0)
	from := len(spans)
	for from > 0 && kept+int64(len(spans[from-1].data)) <= f.keep {
		from--
		kept += int64(len(spans[from].data))
	}
	copies := rewrite{image: seq, kept: slices.Clone(spans[from:])} // which keeps nothing alive of the spans before
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

// upTo is the spans up to a change, which is the end of a block.
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

// Abandoned is engine.Feed's: the copies made for the rewrite are let go of.
func (f *Feed) Abandoned() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rewrite = rewrite{}
}

// Rewritten is engine.Feed's: of what came before the new file's image only the copies stay, and what came after it is
// where the new segments have it. All of it is on disk.
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
