package index

import (
	"cmp"
	"slices"

	"fenec/engine/collation"
	"fenec/engine/doc"
)

// pair is one entry of a Hash or Sorted.
type pair struct {
	key uint64
	id  int64
}

func (e pair) pageKey() uint64 { return e.key }

// pairs is an ordered set of entries: by key, then, if value is set and the key is inexact, by the documents' values,
// then by id.
type pairs struct {
	paged[pair, uint64]
	n int

	value   func(id int64) doc.Value
	collate collation.Collation // of texts among the values
}

// probe is what is searched for. Every id is positive, so id 0 comes before all entries of its value.
type probe struct {
	key   uint64
	value doc.Value
	id    int64
	after bool // past all entries of the value, whatever id is
}

// before reports whether e comes before p.
func (x *pairs) before(e pair, p *probe) bool {
	if e.key != p.key {
		return e.key < p.key
	}
	if x.value != nil && !doc.KeyExact(e.key) {
		if c := doc.CompareBy(x.collate, x.value(e.id), p.value); c != 0 {
			return c < 0
		}
	}
	return p.after || e.id < p.id
}

// find returns the place of the first entry that does not come before p: within a page, or the end of the last one.
func (x *pairs) find(p *probe) place {
	if len(x.pages) == 0 {
		return place{}
	}
	// Of the pages that begin with p's key, and the one before them, search the last that begins before p.
	i := lastNotAfter(x.firsts, p.key)
	if x.firsts[i] == p.key {
		lo, _ := slices.BinarySearch(x.firsts[:i+1], p.key)
		for lo <= i {
			mid := int(uint(lo+i) >> 1)
			if x.before(x.pages[mid][0], p) {
				lo = mid + 1
			} else {
				i = mid - 1
			}
		}
		i = max(i, 0)
	}
	page := x.pages[i]
	base := firstWithKey(page, p.key)
	if n := len(page) - base; n > 0 && x.before(page[base], p) {
		// Only entries of exactly that key are left, mostly one.
		for base, n = base+1, n-1; n > 0; {
			half := n >> 1
			if x.before(page[base+half], p) {
				base += half + 1
				n -= half + 1
			} else {
				n = half
			}
		}
	}
	if base == len(page) && i+1 < len(x.pages) {
		return place{i + 1, 0}
	}
	return place{i, base}
}

// firstWithKey returns the place in a page of the first entry whose key is not less than key. Keys are spread evenly
// over most pages, so the search begins where key would be if they were, in steps that double: it touches one or two
// cache lines where a binary search of the page would touch five.
func firstWithKey(page []pair, key uint64) int {
	n := len(page)
	first, last := page[0].key, page[n-1].key
	if key <= first {
		return 0
	}
	if key > last {
		return n
	}
	// From here on page[lo].key < key <= page[hi].key.
	lo, hi := 0, n-1
	guess := int(float64(key-first) / float64(last-first) * float64(hi))
	if step := 4; page[guess].key < key {
		for lo = guess; lo+step < hi && page[lo+step].key < key; step *= 2 {
			lo += step
		}
		hi = min(lo+step, hi)
	} else {
		for hi = guess; hi-step > lo && page[hi-step].key >= key; step *= 2 {
			hi -= step
		}
		lo = max(hi-step, lo)
	}
	for hi-lo > 1 {
		mid := int(uint(lo+hi) >> 1)
		if page[mid].key < key {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// add inserts an entry; one that exists is left alone.
func (x *pairs) add(p *probe) {
	if at := x.find(p); !x.has(at, p) {
		x.insert(at, pair{p.key, p.id})
		x.n++
	}
}

// remove removes an entry if it exists.
func (x *pairs) remove(p *probe) {
	if at := x.find(p); x.has(at, p) {
		x.paged.remove(at)
		x.n--
	}
}

// has reports whether the entry is at its place.
func (x *pairs) has(at place, p *probe) bool {
	return at.page < len(x.pages) && at.at < len(x.pages[at.page]) && x.pages[at.page][at.at] == pair{p.key, p.id}
}

// walk calls fn for the entries from from up to but not including to, ascending, until fn returns false, and reports
// whether fn never did.
func (x *pairs) walk(from, to place, fn func(id int64) bool) bool {
	for i := from.page; i <= to.page && i < len(x.pages); i++ {
		page := x.pages[i]
		if i == to.page {
			page = page[:to.at]
		}
		if i == from.page {
			page = page[min(from.at, len(page)):]
		}
		for _, e := range page {
			if !fn(e.id) {
				return false
			}
		}
	}
	return true
}

// appendIDs appends to dst the ids of the entries from from up to but not including to.
func (x *pairs) appendIDs(dst []int64, from, to place) []int64 {
	n := x.count(from, to)
	if n == 0 {
		return dst
	}
	at := len(dst)
	dst = slices.Grow(dst, n)[:at+n]
	for i, start := from.page, from.at; at < len(dst); i, start = i+1, 0 {
		run := x.pages[i][start:]
		run = run[:min(len(run), len(dst)-at)]
		into := dst[at : at+len(run)]
		for j := range run {
			into[j] = run[j].id
		}
		at += len(run)
	}
	return dst
}

// count returns the number of entries from from up to but not including to.
func (x *pairs) count(from, to place) int {
	if to.page == from.page {
		return max(to.at-from.at, 0)
	}
	if to.page < from.page {
		return 0
	}
	n := len(x.pages[from.page]) - from.at + to.at
	for _, page := range x.pages[from.page+1 : to.page] {
		n += len(page)
	}
	return n
}

// end returns the place after the last entry.
func (x *pairs) end() place {
	if len(x.pages) == 0 {
		return place{}
	}
	last := len(x.pages) - 1
	return place{last, len(x.pages[last])}
}

// load replaces the set by entries, which all differ, in any order. It sorts all.
func (x *pairs) load(all []pair) {
	slices.SortFunc(all, func(a, b pair) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Compare(a.id, b.id)
	})
	if x.value != nil {
		x.sortByValue(all)
	}
	x.n = len(all)
	x.fill(all)
}

// sortByValue sorts the entries of each inexact key by their values. It reads each value once, and makes its collation key
// once.
func (x *pairs) sortByValue(all []pair) {
	type valued struct {
		value doc.Value // of a text under a collation, the collation's key for it
		id    int64
	}
	var run []valued
	var keys []byte
	for len(all) > 1 {
		key, n := all[0].key, 1
		for n < len(all) && all[n].key == key {
			n++
		}
		if n > 1 && !doc.KeyExact(key) {
			run, keys = run[:0], keys[:0]
			for _, e := range all[:n] {
				v := x.value(e.id)
				if x.collate != collation.None && v.Kind == doc.Text {
					start := len(keys)
					keys = x.collate.AppendKey(keys, v.B)
					v.B = keys[start:]
				}
				run = append(run, valued{v, e.id})
			}
			slices.SortFunc(run, func(a, b valued) int {
				if c := doc.Compare(a.value, b.value); c != 0 {
					return c
				}
				return cmp.Compare(a.id, b.id)
			})
			for i := range run {
				all[i].id = run[i].id
			}
		}
		all = all[n:]
	}
}

// at returns the entry at a place.
func (x *pairs) at(p place) pair { return x.pages[p.page][p.at] }

// same reports whether the entry at a place has p's key and value.
func (x *pairs) same(at place, p *probe) bool {
	e := x.at(at)
	return e.key == p.key && doc.CompareBy(x.collate, x.value(e.id), p.value) == 0
}
