package query

import (
	"cmp"
	"slices"

	"fenec/engine/collation"
	"fenec/engine/doc"
)

// orderKey is one key of an order.
type orderKey struct {
	column  *column
	collate collation.Collation // of the texts in it
	desc    bool
}

// keyed reports whether a sort stores a prefix of the key's texts.
func (k *orderKey) keyed() bool {
	return k.collate != collation.None || k.column.typ.Kind == doc.TypeText
}

// sorter sorts documents: all of them, or with a limit the first few, which it keeps in a heap whose root is
// the last in order.
type sorter struct {
	keys    []orderKey
	limit   int            // how many are wanted
	docs    []doc.Document // in the order in which they were added
	texts   []textKey      // width for each document: one for each keyed key
	width   int
	entries []sortEntry // one for each document: a heap once there are limit of them, sorted at the end
	barred  bool        // the heap is full and the value of its root is the int or timestamp bar
	bar     int64
	f       *frame // of the run
	work    int    // keys compared since the context was checked
}

// sortEntry represents one document. Its key orders most documents without reading their bytes.
type sortEntry struct {
	key uint64 // the sort key of the value of the first of the order's keys, its bits inverted for desc
	id  int64
	doc int // in docs
}

func (s *sorter) begin(f *frame, keys []orderKey, limit int) {
	s.f, s.keys, s.limit, s.width, s.work = f, keys, limit, 0, 0
	for i := range keys {
		if keys[i].keyed() {
			s.width++
		}
	}
}

// reset removes the documents.
func (s *sorter) reset() {
	clear(s.docs)
	*s = sorter{docs: kept(s.docs), texts: kept(s.texts), entries: kept(s.entries)}
}

// add adds a document. It returns false once the run has an error.
func (s *sorter) add(d doc.Document) bool {
	if s.barred && s.beyond(d) {
		return true
	}
	first := &s.keys[0]
	key := doc.SortKeyBy(first.collate, first.column.value(d))
	if first.desc {
		key = ^key
	}
	n := len(s.docs)
	full := n == s.limit
	if full && key > s.entries[0].key {
		return true
	}
	if filled(s.docs) && !s.f.fits() || !s.worked(s.width) {
		return false
	}
	for i := range s.keys {
		if k := &s.keys[i]; k.keyed() {
			s.texts = append(s.texts, textKeyOf(k.collate, k.column.value(d)))
		}
	}
	s.docs = append(s.docs, d)
	e := sortEntry{key, d.ID(), n}
	if !full {
		s.entries = append(s.entries, e)
		if n+1 == s.limit {
			for i := n / 2; i >= 0; i-- {
				s.siftDown(i)
			}
			s.raiseBar()
		}
		return s.f.err == nil
	}
	// The heap is full: d replaces the last in it if it comes before that one.
	last := s.entries[0]
	before := s.compare(e, last) < 0
	if before {
		s.docs[last.doc] = d
		copy(s.texts[last.doc*s.width:], s.texts[n*s.width:])
	}
	s.docs, s.texts = s.docs[:n], s.texts[:n*s.width]
	if before {
		e.doc = last.doc
		s.entries[0] = e
		s.siftDown(0)
		s.raiseBar()
	}
	return s.f.err == nil
}

// worked counts n compared keys and checks the context regularly. It returns false once the run has an error.
func (s *sorter) worked(n int) bool {
	if s.work += n; s.work < comparesPerCheck {
		return true
	}
	s.work = 0
	return s.f.goesOn()
}

// raiseBar sets the bar, the value that a document must not be beyond to be kept, if it is quick to read.
func (s *sorter) raiseBar() {
	col := s.keys[0].column
	if col.id || col.keys != nil || !whole(col.typ) {
		return
	}
	v := col.value(s.docs[s.entries[0].doc])
	s.barred, s.bar = v.Kind != doc.Null, v.Int()
}

// beyond reports whether d comes after everything in the full heap, judged by the order's first key alone.
func (s *sorter) beyond(d doc.Document) bool {
	r := d.Field(s.keys[0].column.slot)
	n, ok := r.Int()
	if !ok {
		if n, ok = r.Timestamp(); !ok {
			return false
		}
	}
	if s.keys[0].desc {
		return n < s.bar
	}
	return n > s.bar
}

func (s *sorter) compare(a, b sortEntry) int {
	if a.key != b.key {
		return cmp.Compare(a.key, b.key)
	}
	if len(s.keys) == 1 && s.exact(a.key) {
		return cmp.Compare(a.id, b.id)
	}
	return s.compareTies(a, b)
}

// exact reports whether documents with that key are equal under the first of the order's keys.
func (s *sorter) exact(key uint64) bool {
	if s.keys[0].desc {
		key = ^key
	}
	return doc.KeyExact(key)
}

// compareTies orders two documents that share a key. Once the run has an error all are equal, so that a sort ends soon.
func (s *sorter) compareTies(a, b sortEntry) int {
	if !s.worked(len(s.keys)) {
		return 0
	}
	exact := s.exact(a.key)
	x, y := a.doc*s.width, b.doc*s.width // their text keys
	for at := range s.keys {
		k := &s.keys[at]
		c, known := 0, at == 0 && exact
		if k.keyed() {
			if !known {
				c, known = s.texts[x].compare(&s.texts[y])
			}
			x, y = x+1, y+1
		}
		if !known {
			c = doc.CompareBy(k.collate, k.column.value(s.docs[a.doc]), k.column.value(s.docs[b.doc]))
		}
		switch {
		case c == 0:
		case k.desc:
			return -c
		default:
			return c
		}
	}
	return cmp.Compare(a.id, b.id)
}

// siftDown moves the heap's entry i down to its place.
func (s *sorter) siftDown(i int) {
	h := s.entries
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && s.compare(h[child+1], h[child]) > 0 {
			child++
		}
		if s.compare(h[i], h[child]) >= 0 {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// sorted visits the documents in order, without the first skip of them, until fn returns false or the frame's
// context ends.
func (s *sorter) sorted(skip int, fn func(doc.Document) bool) {
	f := s.f
	was := f.doing
	f.doing, f.done = atSort, len(s.entries)
	compared := 0
	slices.SortFunc(s.entries, func(a, b sortEntry) int {
		if compared++; compared&(comparesPerCheck-1) == 0 {
			f.goesOn()
		}
		if f.err != nil {
			return 0 // from here on all are equal, so that the sort ends soon
		}
		return s.compare(a, b)
	})
	if f.doing = was; f.err != nil {
		return
	}
	for n, e := range s.entries[min(skip, len(s.entries)):] {
		if n&(f.every-1) == f.every-1 && !f.goesOn() || !fn(s.docs[e.doc]) {
			return
		}
	}
}
