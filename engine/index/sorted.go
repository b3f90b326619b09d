package index

import (
	"fenec/engine/collation"
	"fenec/engine/doc"
)

// Sorted keeps documents in the order of a value, as doc.CompareBy has it, nulls first; documents with equal values by
// ascending id, whichever way they are walked. Values are equal here where that order says so.
//
// An entry is the value's sort key and the id. Most keys say all there is to know of the value: those of nulls, bools,
// timestamps, texts of up to seven bytes (of the collation's key), and numbers of up to 51 significant bits. For others that
// share a key the documents themselves are asked.
type Sorted struct{ pairs pairs }

// NewSorted is an empty index, its texts in the order of a collation. Value answers the value of a document that is in
// the index; it is called from whichever goroutine reads or writes.
func NewSorted(c collation.Collation, value func(id int64) doc.Value) *Sorted {
	return &Sorted{pairs{value: value, collate: c}}
}

// Bound is one end of a range.
type Bound struct {
	Value     doc.Value
	Inclusive bool // Value itself is within
	Unbounded bool // the range has no end on this side, nulls included; Value is not looked at
}

// Add enters a document with its value.
func (x *Sorted) Add(v doc.Value, id int64) { x.pairs.add(x.entryOf(v, id)) }

// Remove takes a document out. The value is the one it was entered with, which the callback of NewSorted still answers.
func (x *Sorted) Remove(v doc.Value, id int64) { x.pairs.remove(x.entryOf(v, id)) }

func (x *Sorted) entryOf(v doc.Value, id int64) *probe {
	return &probe{key: x.key(v), value: v, id: id}
}

func (x *Sorted) key(v doc.Value) uint64 { return doc.SortKeyBy(x.pairs.collate, v) }

// Len is the number of documents.
func (x *Sorted) Len() int { return x.pairs.n }

// Bytes is the memory held.
func (x *Sorted) Bytes() int64 { return x.pairs.bytes() }

// Count is the number of documents from lo to hi. It takes time for the pages between them, not for the documents.
func (x *Sorted) Count(lo, hi Bound) int {
	from, to := x.span(lo, hi)
	return x.pairs.count(from, to)
}

// Range calls fn for each document from lo to hi, ascending by value or descending, until fn answers false.
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

// span is the place of the first document from lo on and of the first past hi.
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

// runBefore is where the run of equal values begins that ends at to, not before from; to itself where nothing lies between.
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
	return x.pairs.find(&p) // not before from, as a range takes in all of a value or none
}

// previous is the place before at; ok is false where that is before from.
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

// Build makes x the index of about n documents in one go: each calls add once for every one of them, in any order. The
// callback of NewSorted answers for all of them.
func (x *Sorted) Build(n int, each func(add func(v doc.Value, id int64))) {
	all := make([]pair, 0, n)
	each(func(v doc.Value, id int64) { all = append(all, pair{x.key(v), id}) })
	x.pairs.load(all)
}
