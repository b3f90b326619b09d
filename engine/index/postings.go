package index

import (
	"cmp"
	"slices"
)

// posting is a document that has a weight at an index of its sparse vector.
type posting struct {
	index  uint32
	weight float32
	id     int64
}

// postingKey is what postings are ordered by: no two have the same.
type postingKey struct {
	index uint32
	id    int64
}

func (p posting) pageKey() postingKey { return postingKey{p.index, p.id} }

func (k postingKey) compare(l postingKey) int {
	if k.index != l.index {
		return cmp.Compare(k.index, l.index)
	}
	return cmp.Compare(k.id, l.id)
}

// postings are the postings of an Inverted, in pages, by index and then id.
type postings struct {
	paged[posting, postingKey]
}

// find returns the place of the first posting whose key is not less than k: within a page, or the end of the last one.
func (x *postings) find(k postingKey) place {
	i, ok := slices.BinarySearchFunc(x.firsts, k, postingKey.compare)
	if !ok && i > 0 {
		i--
	}
	if i == len(x.pages) {
		return place{}
	}
	at, _ := slices.BinarySearchFunc(x.pages[i], k, func(p posting, k postingKey) int { return p.pageKey().compare(k) })
	if at == len(x.pages[i]) && i+1 < len(x.pages) {
		return place{i + 1, 0}
	}
	return place{i, at}
}

// set inserts a posting, or replaces the one with its key.
func (x *postings) set(p posting) {
	k := p.pageKey()
	at := x.find(k)
	if x.has(at, k) {
		x.pages[at.page][at.at] = p
		return
	}
	x.insert(at, p)
}

// remove removes the posting with a key and reports whether it existed.
func (x *postings) remove(k postingKey) bool {
	at := x.find(k)
	if !x.has(at, k) {
		return false
	}
	x.paged.remove(at)
	return true
}

// has reports whether a posting with the key is at its place.
func (x *postings) has(at place, k postingKey) bool {
	return at.page < len(x.pages) && at.at < len(x.pages[at.page]) && x.pages[at.page][at.at].pageKey() == k
}

// load replaces x by postings whose keys all differ, in any order. It sorts all.
func (x *postings) load(all []posting) {
	slices.SortFunc(all, func(a, b posting) int { return a.pageKey().compare(b.pageKey()) })
	x.fill(all)
}
