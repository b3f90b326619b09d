package index

import (
	"cmp"
	"slices"
)

// posting says that a document has a weight at an index of its sparse vector.
type posting struct {
	index  uint32
	weight float32
	id     int64
}

// postingKey is what postings are in the order of: no two share one.
type postingKey struct {
	index uint32
	id    int64
}

func (p *posting) key() postingKey { return postingKey{p.index, p.id} }

func (k postingKey) compare(l postingKey) int {
	if k.index != l.index {
		return cmp.Compare(k.index, l.index)
	}
	return cmp.Compare(k.id, l.id)
}

// postings are the postings of an Inverted, in pages, by index and then id.
type postings struct {
	firsts []postingKey // of each page
	pages  [][]posting  // none of them empty
}

// find is the place of the first posting whose key is not less than k: within a page, or the end of the last one.
func (x *postings) find(k postingKey) place {
	i, ok := slices.BinarySearchFunc(x.firsts, k, postingKey.compare)
	if !ok && i > 0 {
		i--
	}
	if i == len(x.pages) {
		return place{}
	}
	at, _ := slices.BinarySearchFunc(x.pages[i], k, func(p posting, k postingKey) int { return p.key().compare(k) })
	if at == len(x.pages[i]) && i+1 < len(x.pages) {
		return place{i + 1, 0}
	}
	return place{i, at}
}

// set puts a posting in, in the place of the one of its key.
func (x *postings) set(p posting) {
	if len(x.pages) == 0 {
		x.insertPage(0, append(make([]posting, 0, smallest), p))
		return
	}
	at := x.find(p.key())
	if page := x.pages[at.page]; at.at < len(page) && page[at.at].key() == p.key() {
		page[at.at] = p
		return
	}
	// Between two pages the first of them takes the posting, so that an ascending run fills its pages.
	if at.at == 0 && at.page > 0 {
		at.page--
		at.at = len(x.pages[at.page])
	}
	page := x.pages[at.page]
	if len(page) == pageSize {
		if at.at == pageSize {
			x.insertPage(at.page+1, append(make([]posting, 0, smallest), p))
			return
		}
		const half = pageSize / 2
		x.insertPage(at.page+1, append(make([]posting, 0, pageSize), page[half:]...))
		page = page[:half]
		x.pages[at.page] = page
		if at.at > half {
			at.page++
			at.at -= half
			page = x.pages[at.page]
		}
	}
	x.pages[at.page] = insertAt(page, at.at, p)
	if at.at == 0 {
		x.firsts[at.page] = p.key()
	}
}

// remove takes the posting of a key out and tells whether it was there.
func (x *postings) remove(k postingKey) bool {
	if len(x.pages) == 0 {
		return false
	}
	at := x.find(k)
	page := x.pages[at.page]
	if at.at == len(page) || page[at.at].key() != k {
		return false
	}
	if len(page) == 1 {
		x.deletePage(at.page)
		return true
	}
	page = slices.Delete(page, at.at, at.at+1)
	x.pages[at.page] = page
	x.firsts[at.page] = page[0].key()
	if len(page) < mergeAt {
		x.merge(at.page)
	}
	return true
}

func (x *postings) insertPage(i int, page []posting) {
	x.firsts = slices.Insert(x.firsts, i, page[0].key())
	x.pages = slices.Insert(x.pages, i, page)
}

func (x *postings) deletePage(i int) {
	x.firsts = slices.Delete(x.firsts, i, i+1)
	x.pages = slices.Delete(x.pages, i, i+1)
	if len(x.pages) == 0 {
		x.firsts, x.pages = nil, nil
	}
}

// merge puts page i and a neighbour together where they make no large page.
func (x *postings) merge(i int) {
	if i+1 == len(x.pages) || i > 0 && len(x.pages[i-1]) < len(x.pages[i+1]) {
		i--
	}
	if i < 0 || len(x.pages[i])+len(x.pages[i+1]) > mergedSize {
		return
	}
	x.pages[i] = append(x.pages[i], x.pages[i+1]...)
	x.deletePage(i + 1)
}

// load makes the pages of postings whose keys all differ, in any order, in one go. It uses up all.
func (x *postings) load(all []posting) {
	slices.SortFunc(all, func(a, b posting) int { return a.key().compare(b.key()) })
	x.firsts, x.pages = nil, nil
	if len(all) == 0 {
		return
	}
	pages := (len(all) + filled - 1) / filled
	x.firsts, x.pages = make([]postingKey, 0, pages), make([][]posting, 0, pages)
	for part := range slices.Chunk(all, filled) {
		page := append(make([]posting, 0, room(len(part))), part...)
		x.firsts, x.pages = append(x.firsts, page[0].key()), append(x.pages, page)
	}
}

// bytes is the memory held.
func (x *postings) bytes() int64 {
	n := int64(cap(x.firsts))*16 + int64(cap(x.pages))*24
	for _, page := range x.pages {
		n += int64(cap(page)) * 16
	}
	return n
}
