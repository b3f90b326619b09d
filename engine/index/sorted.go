package index

import (
	"fenec/engine/collation"
	"fenec/engine/doc"
)

// Sorted keeps documents in the order of a value by doc.CompareBy, nulls first; documents with equal values are ordered
// by ascending id in both directions. Values are equal here if doc.CompareBy says so.
//
// An entry is the value's sort key and the id. Most keys are exact: those of nulls, bools, timestamps, texts of up to
// seven bytes (of the collation's key), and numbers of up to 51 significant bits. For other values that share a key the
// documents themselves are read.
type Sorted struct{ pairs pairs }

// NewSorted returns an empty index with texts in the order of a collation. value returns the value of a document that
// is in the index; it is called on any goroutine that reads or writes.
func NewSorted(c collation.Collation, value func(id int64) doc.Value) *Sorted {
	return &Sorted{pairs{value: value, collate: c}}
}

// Bound is one end of a range.
type Bound struct {
	Value     doc.Value
	Inclusive bool // Value itself is included
	Unbounded bool // the range has no end on this side, and includes nulls; Value is ignored
}

// Add adds a document with its value.
func (x *Sorted) Add(v doc.Value, id int64) { x.pairs.add(x.entryOf(v, id)) }

// Remove removes a document. The value is the one it was added with, which the callback of NewSorted must still return.
func (x *Sorted) Remove(v doc.Value, id int64) { x.pairs.remove(x.entryOf(v, id)) }

func (x *Sorted) entryOf(v doc.Value, id int64) *probe {
	return &probe{key: x.key(v), value: v, id: id}
}

func (x *Sorted) key(v doc.Value) uint64 { return doc.SortKeyBy(x.pairs.collate, v) }

// Len returns the number of documents.
func (x *Sorted) Len() int { return x.pairs.n }

// Bytes returns the memory held in bytes.
func (x *Sorted) Bytes() int64 { return x.pairs.bytes() }

// Count returns the number of documents from lo to hi. Its time depends on the pages between them, not on the
// documents.
func (x *Sorted) Count(lo, hi Bound) int {
	from, to := x.span(lo, hi)
	return x.pairs.count(from, to)
}

// Range calls fn for each document from lo to hi, ascending by value or descending, until fn returns false.
func (x *Sorted) Range(lo, hi Bound, desc bool, fn func(id int64) bool) {
	from, to := x.span(lo, hi)
	if !desc {
		x.pairs.walk(from, to, fn)
		return
	}
	for {
		start := x.runBefore(from, to)
		if start == to || !x.pairs.walk(start, to, fn) {
			return
		}
		to = start
	}
}

// AppendIDs appends to dst the documents from lo to hi, ascending by value.
func (x *Sorted) AppendIDs(dst []int64, lo, hi Bound) []int64 {
	from, to := x.span(lo, hi)
	return x.pairs.appendIDs(dst, from, to)
}

// span returns the place of the first document from lo on and that of the first past hi.
func (x *Sorted) span(lo, hi Bound) (from, to place) {
	if !lo.Unbounded {
		from = x.pairs.find(&probe{key: x.key(lo.Value), value: lo.Value, after: !lo.Inclusive})
	}
	to = x.pairs.end()
	if !hi.Unbounded {
		to = x.pairs.find(&probe{key: x.key(hi.Value), value: hi.Value, after: hi.Inclusive})
	}
	return from, to
}

// runBefore returns where the run of equal values begins that ends at to, but not before from. It returns to if nothing
// is between.
func (x *Sorted) runBefore(from, to place) place {
	last, ok := x.previous(from, to)
	if !ok {
		return to
	}
	e := x.pairs.at(last)
	before, ok := x.previous(from, last)
	if !ok {
		return last
	}
	p := probe{key: e.key}
	if doc.KeyExact(e.key) {
		if x.pairs.at(before).key != e.key {
			return last
		}
	} else {
		p.value = x.pairs.value(e.id)
		if !x.pairs.same(before, &p) {
			return last
		}
	}
	return x.pairs.find(&p) // not before from, since a range includes all of a value or none
}

// previous returns the place before at; ok is false if that is before from.
func (x *Sorted) previous(from, at place) (place, bool) {
	if at.page < from.page || at.page == from.page && at.at <= from.at {
		return place{}, false
	}
	if at.at == 0 {
		at.page--
		at.at = len(x.pairs.pages[at.page])
	}
	at.at--
	return at, true
}

// Build replaces x by the index of about n documents. each calls add once for every one of them, in any order. The
// callback of NewSorted must return the value of each.
func (x *Sorted) Build(n int, each func(add func(v doc.Value, id int64))) {
	all := make([]pair, 0, n)
	each(func(v doc.Value, id int64) { all = append(all, pair{x.key(v), id}) })
	x.pairs.load(all)
}
