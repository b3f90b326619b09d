package query

import (
	"cmp"
	"slices"

	"fenec/engine/doc"
)

// orderKey is one key of an order.
type orderKey struct {
	column *column
	desc   bool
}

// sorter puts documents in an order: all of them, or with a limit the first few, of which it keeps no more
// than that many in a heap whose root is the last in order.
type sorter struct {
	keys    []orderKey
	limit   int            // how many are wanted
	docs    []doc.Document // as they came
	entries []sortEntry    // one for each of them: a heap once there are limit of them, at last in order
	barred  bool           // the heap is full and the value of its last is the int or timestamp bar
	bar     int64
}

// sortEntry stands for one document. Its key orders most of them without a look at their bytes.
type sortEntry struct {
	key uint64 // the sort key of the value of the first of the order's keys, its bits turned around for desc
	id  int64
	doc int // in docs
}

func (s *sorter) begin(keys []orderKey, limit int) { s.keys, s.limit = keys, limit }

// reset forgets the documents.
func (s *sorter) reset() {
	clear(s.docs)
	*s = sorter{docs: kept(s.docs), entries: kept(s.entries)}
}

// add takes a document.
func (s *sorter) add(d doc.Document) {
	if s.barred && s.beyond(d) {
		return
	}
	key := doc.SortKey(s.keys[0].column.value(d))
	if s.keys[0].desc {
		key = ^key
	}
	n := len(s.docs)
	if n < s.limit {
		s.docs = append(s.docs, d)
		s.entries = append(s.entries, sortEntry{key, d.ID(), n})
		if n+1 == s.limit {
			for i := n / 2; i >= 0; i-- {
				s.sink(i)
			}
			s.raiseBar()
		}
		return
	}
	// The heap is full: d takes the place of the last in it where it comes before that one.
	last := s.entries[0]
	if key > last.key || key == last.key && s.compareTies(key, d, s.docs[last.doc]) >= 0 {
		return
	}
	s.docs[last.doc] = d
	s.entries[0] = sortEntry{key, d.ID(), last.doc}
	s.sink(0)
	s.raiseBar()
}

// raiseBar notes the value that a document must not be beyond to be kept, where it is read at a glance.
func (s *sorter) raiseBar() {
	col := s.keys[0].column
	if col.id || col.keys != nil || !whole(col.typ) {
		return
	}
	v := col.value(s.docs[s.entries[0].doc])
	s.barred, s.bar = v.Kind != doc.Null, v.Int()
}

// beyond reports whether d comes after everything in the full heap by the order's first key alone.
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
	return s.compareTies(a.key, s.docs[a.doc], s.docs[b.doc])
}

// exact reports whether documents with that key hold one value under the first of the order's keys.
func (s *sorter) exact(key uint64) bool {
	if s.keys[0].desc {
		key = ^key
	}
	return doc.KeyExact(key)
}

// compareTies orders two documents that share a key.
func (s *sorter) compareTies(key uint64, a, b doc.Document) int {
	keys := s.keys
	if s.exact(key) {
		keys = keys[1:]
	}
	for _, k := range keys {
		c := doc.Compare(k.column.value(a), k.column.value(b))
		if c == 0 {
			continue
		}
		if k.desc {
			return -c
		}
		return c
	}
	return cmp.Compare(a.ID(), b.ID())
}

// sink puts the heap's entry i where it belongs below.
func (s *sorter) sink(i int) {
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

// sorted visits the documents in order, the first skip of them left out, until fn is false.
func (s *sorter) sorted(skip int, fn func(doc.Document) bool) {
	slices.SortFunc(s.entries, s.compare)
	for _, e := range s.entries[min(skip, len(s.entries)):] {
		if !fn(s.docs[e.doc]) {
			return
		}
	}
}
