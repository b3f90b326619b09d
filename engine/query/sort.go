package query

import (
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
	keys  []orderKey
	limit int // how many are wanted
	docs  []doc.Document
	vals  []doc.Value // of document i: vals[i*len(keys):]
	order []int32     // documents by number: a heap once there are limit of them, at last in order
}

// maxSorted is how many documents one statement sorts: their numbers are int32s.
const maxSorted = 1<<31 - 1

func (s *sorter) begin(keys []orderKey, limit int) {
	s.keys, s.limit = keys, min(limit, maxSorted)
}

// reset forgets the documents.
func (s *sorter) reset() {
	clear(s.docs)
	clear(s.vals)
	*s = sorter{docs: kept(s.docs), vals: kept(s.vals), order: kept(s.order)}
}

// add takes a document.
func (s *sorter) add(d doc.Document) {
	n := len(s.docs)
	if n < s.limit {
		s.docs = append(s.docs, d)
		s.vals = s.appendValues(s.vals, d)
		s.order = append(s.order, int32(n))
		if n+1 == s.limit {
			for i := n / 2; i >= 0; i-- {
				s.sink(i)
			}
		}
		return
	}
	if n == 0 {
		return
	}
	// A full heap: d stands in for the last of it if it comes before that one.
	last := int(s.order[0])
	if s.compareWith(d, last) >= 0 {
		return
	}
	s.docs[last] = d
	at := last * len(s.keys)
	s.appendValues(s.vals[:at], d)
	s.sink(0)
}

func (s *sorter) appendValues(dst []doc.Value, d doc.Document) []doc.Value {
	for _, k := range s.keys {
		dst = append(dst, k.column.value(d))
	}
	return dst
}

// compareWith orders d and kept document i.
func (s *sorter) compareWith(d doc.Document, i int) int {
	vals := s.vals[i*len(s.keys):]
	for j, k := range s.keys {
		if c := doc.Compare(k.column.value(d), vals[j]); c != 0 {
			return k.signed(c)
		}
	}
	return compareIDs(d, s.docs[i])
}

// compare orders kept documents i and j.
func (s *sorter) compare(i, j int32) int {
	n := len(s.keys)
	a, b := s.vals[int(i)*n:], s.vals[int(j)*n:]
	for x, k := range s.keys {
		if c := doc.Compare(a[x], b[x]); c != 0 {
			return k.signed(c)
		}
	}
	return compareIDs(s.docs[i], s.docs[j])
}

func (k orderKey) signed(c int) int {
	if k.desc {
		return -c
	}
	return c
}

func compareIDs(a, b doc.Document) int {
	switch x, y := a.ID(), b.ID(); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// sink puts the heap's entry i where it belongs below.
func (s *sorter) sink(i int) {
	h := s.order
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
	slices.SortFunc(s.order, s.compare)
	for _, i := range s.order[min(skip, len(s.order)):] {
		if !fn(s.docs[i]) {
			return
		}
	}
}

// value is the column's value in d.
func (c *column) value(d doc.Document) doc.Value {
	if c.id {
		return doc.IntValue(d.ID())
	}
	return c.raw(d).Value()
}
