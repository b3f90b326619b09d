package index

import (
	"math"
	"slices"
)

// IDs finds the place of a document by its id: an ordered map from int64 to uint64. The zero value is empty and ready
// to use.
type IDs struct {
	firsts []int64 // the first id of each page
	pages  []idPage
	n      int
}

// idPage is a run of ids and the ref of each.
type idPage struct {
	refs []uint64
	ids  []int64 // ascending; nil while the page's ids have no gap
}

// Len returns the number of ids.
func (x *IDs) Len() int { return x.n }

// Last returns the largest id, 0 if there is none.
func (x *IDs) Last() int64 {
	if x.n == 0 {
		return 0
	}
	last := len(x.pages) - 1
	p := &x.pages[last]
	return p.id(x.firsts[last], len(p.refs)-1)
}

// Bytes returns the memory held in bytes.
func (x *IDs) Bytes() int64 {
	n := int64(cap(x.firsts))*8 + int64(cap(x.pages))*48
	for i := range x.pages {
		n += int64(cap(x.pages[i].refs)+cap(x.pages[i].ids)) * 8
	}
	return n
}

// Get returns the ref of id.
func (x *IDs) Get(id int64) (ref uint64, ok bool) {
	i := x.page(id)
	if i >= len(x.pages) {
		return 0, false
	}
	p := &x.pages[i]
	if p.ids == nil {
		at := uint64(id) - uint64(x.firsts[i])
		if at >= uint64(len(p.refs)) {
			return 0, false
		}
		return p.refs[at], true
	}
	at, ok := p.search(id)
	if !ok {
		return 0, false
	}
	return p.refs[at], true
}

// Refs writes the ref of each of the ids, which are ascending, to refs, which has the same length. An unknown id gets
// none.
func (x *IDs) Refs(ids []int64, none uint64, refs []uint64) {
	refs = refs[:len(ids)]
	for i := 0; i < len(ids); {
		at := x.page(ids[i])
		if at >= len(x.pages) {
			refs[i] = none
			i++
			continue
		}
		p, first, next := &x.pages[at], x.firsts[at], int64(math.MaxInt64)
		if at+1 < len(x.firsts) {
			next = x.firsts[at+1]
		}
		for start := i; i < len(ids) && (i == start || ids[i] < next); i++ {
			refs[i] = none
			if p.ids == nil {
				if n := uint64(ids[i]) - uint64(first); n < uint64(len(p.refs)) {
					refs[i] = p.refs[n]
				}
			} else if n, ok := p.search(ids[i]); ok {
				refs[i] = p.refs[n]
			}
		}
	}
}

// page returns the page that id is in, if it is in any. If the ids are dense, its place is computed.
func (x *IDs) page(id int64) int {
	if len(x.firsts) < 2 {
		return 0
	}
	guess := (uint64(id) - uint64(x.firsts[0])) / pageSize
	if guess < uint64(len(x.firsts)) && x.firsts[guess] <= id && (guess+1 == uint64(len(x.firsts)) || id < x.firsts[guess+1]) {
		return int(guess)
	}
	return lastNotAfter(x.firsts, id)
}

// id returns the id at a place of the page, whose first id is first.
func (p *idPage) id(first int64, at int) int64 {
	if p.ids == nil {
		return first + int64(at)
	}
	return p.ids[at]
}

// find returns the place of id in the page, or the place where it would be inserted.
func (p *idPage) find(first, id int64) (at int, ok bool) {
	if p.ids != nil {
		return p.search(id)
	}
	if id < first {
		return 0, false
	}
	if n := uint64(id) - uint64(first); n < uint64(len(p.refs)) {
		return int(n), true
	}
	return len(p.refs), false
}

// search is find for ids with gaps. Since ids are distinct, one is no further from either end of the page than its
// difference to the id there: with few gaps almost nothing is left to search.
func (p *idPage) search(id int64) (at int, ok bool) {
	n := len(p.ids)
	first, last := p.ids[0], p.ids[n-1]
	if id < first {
		return 0, false
	}
	if id > last {
		return n, false
	}
	lo, hi := 0, n-1
	if d := uint64(id) - uint64(first); d < uint64(hi) {
		hi = int(d)
	}
	if d := uint64(last) - uint64(id); d < uint64(n-1) {
		lo = n - 1 - int(d)
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if p.ids[mid] < id {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, p.ids[lo] == id
}

// Set sets the ref of id and returns the previous one.
func (x *IDs) Set(id int64, ref uint64) (old uint64, had bool) {
	if len(x.pages) == 0 {
		x.insertPage(0, id, idPage{refs: append(make([]uint64, 0, smallest), ref)})
		x.n = 1
		return 0, false
	}
	i := x.page(id)
	p := &x.pages[i]
	at, ok := p.find(x.firsts[i], id)
	if ok {
		old, p.refs[at] = p.refs[at], ref
		return old, true
	}
	x.n++
	if len(p.refs) == pageSize {
		switch {
		case i == len(x.pages)-1 && at == pageSize:
			x.insertPage(i+1, id, idPage{refs: append(make([]uint64, 0, pageSize), ref)})
			return 0, false
		case i == 0 && at == 0:
			x.insertPage(0, id, idPage{refs: append(make([]uint64, 0, smallest), ref)})
			return 0, false
		}
		x.split(i)
		if id >= x.firsts[i+1] {
			i++
		}
		p = &x.pages[i]
		at, _ = p.find(x.firsts[i], id)
	}
	x.insert(i, at, id, ref)
	return 0, false
}

// insert inserts an entry into a page that has room for it.
func (x *IDs) insert(i, at int, id int64, ref uint64) {
	p := &x.pages[i]
	n := len(p.refs)
	if p.ids == nil && !(at == n && id == x.firsts[i]+int64(n)) && !(at == 0 && id == x.firsts[i]-1) {
		p.expand(x.firsts[i])
	}
	p.refs = insertAt(p.refs, at, ref)
	if p.ids != nil {
		p.ids = insertAt(p.ids, at, id)
		p.close()
	}
	if at == 0 {
		x.firsts[i] = id
	}
}

// expand writes out the ids of a page that is about to have a gap.
func (p *idPage) expand(first int64) {
	p.ids = make([]int64, len(p.refs), cap(p.refs))
	for at := range p.ids {
		p.ids[at] = first + int64(at)
	}
}

// insertAt is slices.Insert with the growth of a page.
func insertAt[T any](s []T, at int, v T) []T {
	n := len(s)
	if n == cap(s) {
		grown := make([]T, n+1, room(n))
		copy(grown, s[:at])
		copy(grown[at+1:], s[at:])
		grown[at] = v
		return grown
	}
	s = s[:n+1]
	copy(s[at+1:], s[at:])
	s[at] = v
	return s
}

func (x *IDs) insertPage(i int, first int64, p idPage) {
	x.firsts = slices.Insert(x.firsts, i, first)
	x.pages = slices.Insert(x.pages, i, p)
}

// split splits a full page into two.
func (x *IDs) split(i int) {
	p := &x.pages[i]
	half := len(p.refs) / 2
	upper := idPage{refs: append(make([]uint64, 0, pageSize), p.refs[half:]...)}
	first := p.id(x.firsts[i], half)
	if p.ids != nil {
		upper.ids = append(make([]int64, 0, pageSize), p.ids[half:]...)
		p.ids = p.ids[:half]
	}
	p.refs = p.refs[:half]
	p.close()
	upper.close()
	x.insertPage(i+1, first, upper)
}

// close drops the ids of a page that has no gap any more.
func (p *idPage) close() {
	if n := len(p.ids); n > 0 && uint64(p.ids[n-1])-uint64(p.ids[0]) == uint64(n-1) {
		p.ids = nil
	}
}

// Delete removes id and returns its ref.
func (x *IDs) Delete(id int64) (old uint64, had bool) {
	if len(x.pages) == 0 {
		return 0, false
	}
	i := x.page(id)
	p := &x.pages[i]
	at, ok := p.find(x.firsts[i], id)
	if !ok {
		return 0, false
	}
	old = p.refs[at]
	x.n--
	n := len(p.refs)
	if n == 1 {
		x.deletePage(i)
		return old, true
	}
	if p.ids == nil && at > 0 && at < n-1 {
		p.expand(x.firsts[i])
	}
	p.refs = slices.Delete(p.refs, at, at+1)
	if p.ids != nil {
		p.ids = slices.Delete(p.ids, at, at+1)
		x.firsts[i] = p.ids[0]
	} else if at == 0 {
		x.firsts[i]++
	}
	if n-1 < mergeAt {
		x.merge(i)
	}
	return old, true
}

func (x *IDs) deletePage(i int) {
	x.firsts = slices.Delete(x.firsts, i, i+1)
	x.pages = slices.Delete(x.pages, i, i+1)
	if len(x.pages) == 0 {
		x.firsts, x.pages = nil, nil
	}
}

// merge merges page i with a neighbour if the result is not too large.
func (x *IDs) merge(i int) {
	if i+1 == len(x.pages) || i > 0 && len(x.pages[i-1].refs) < len(x.pages[i+1].refs) {
		i--
	}
	if i < 0 || len(x.pages[i].refs)+len(x.pages[i+1].refs) > mergedSize {
		return
	}
	lower, upper := &x.pages[i], &x.pages[i+1]
	if lower.ids == nil {
		lower.expand(x.firsts[i])
	}
	if upper.ids == nil {
		upper.expand(x.firsts[i+1])
	}
	lower.refs = append(lower.refs, upper.refs...)
	lower.ids = append(lower.ids, upper.ids...)
	lower.close()
	x.deletePage(i + 1)
}

// Ascend calls fn for each id from from on, ascending, until fn returns false.
func (x *IDs) Ascend(from int64, fn func(id int64, ref uint64) bool) {
	if len(x.pages) == 0 {
		return
	}
	i := x.page(from)
	at, _ := x.pages[i].find(x.firsts[i], from)
	for ; i < len(x.pages); i++ {
		p, first := &x.pages[i], x.firsts[i]
		for ; at < len(p.refs); at++ {
			if !fn(p.id(first, at), p.refs[at]) {
				return
			}
		}
		at = 0
	}
}

// AscendRefs is Ascend without the ids, in runs: fn is called with the refs of neighbouring ids, which it must not
// keep.
func (x *IDs) AscendRefs(from int64, fn func(refs []uint64) bool) {
	if len(x.pages) == 0 {
		return
	}
	i := x.page(from)
	at, _ := x.pages[i].find(x.firsts[i], from)
	for ; i < len(x.pages) && fn(x.pages[i].refs[at:]); i++ {
		at = 0
	}
}

// Clone returns a copy that shares nothing with x.
func (x *IDs) Clone() *IDs {
	c := &IDs{firsts: slices.Clone(x.firsts), pages: slices.Clone(x.pages), n: x.n}
	for i := range c.pages {
		p := &c.pages[i]
		p.refs, p.ids = slices.Clone(p.refs), slices.Clone(p.ids)
	}
	return c
}
