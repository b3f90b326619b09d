package index

import (
	"slices"
	"unsafe"
)

// entry is an entry of a paged list; key is what a page that begins with it is found by.
type entry[K any] interface{ pageKey() K }

// paged is an ordered list of entries in pages. The caller finds the place of an entry.
type paged[E entry[K], K any] struct {
	firsts []K   // the key of each page's first entry
	pages  [][]E // none of them empty
}

// place is where an entry is, or would be inserted.
type place struct{ page, at int }

// insert inserts an entry at a place.
func (x *paged[E, K]) insert(at place, e E) {
	if len(x.pages) == 0 {
		x.insertPage(0, append(make([]E, 0, smallest), e))
		return
	}
	// Between two pages the entry goes to the first, so that an ascending run fills its pages.
	if at.at == 0 && at.page > 0 {
		at.page--
		at.at = len(x.pages[at.page])
	}
	page := x.pages[at.page]
	if len(page) == pageSize {
		if at.at == pageSize {
			x.insertPage(at.page+1, append(make([]E, 0, pageSize), e))
			return
		}
		const half = pageSize / 2
		x.insertPage(at.page+1, append(make([]E, 0, pageSize), page[half:]...))
		page = page[:half]
		x.pages[at.page] = page
		if at.at > half {
			at.page++
			at.at -= half
			page = x.pages[at.page]
		}
	}
	x.pages[at.page] = insertAt(page, at.at, e)
	if at.at == 0 {
		x.firsts[at.page] = e.pageKey()
	}
}

// remove removes the entry at a place.
func (x *paged[E, K]) remove(at place) {
	page := x.pages[at.page]
	if len(page) == 1 {
		x.deletePage(at.page)
		return
	}
	page = slices.Delete(page, at.at, at.at+1)
	x.pages[at.page] = page
	x.firsts[at.page] = page[0].pageKey()
	if len(page) < mergeAt {
		x.merge(at.page)
	}
}

func (x *paged[E, K]) insertPage(i int, page []E) {
	x.firsts = slices.Insert(x.firsts, i, page[0].pageKey())
	x.pages = slices.Insert(x.pages, i, page)
}

func (x *paged[E, K]) deletePage(i int) {
	x.firsts = slices.Delete(x.firsts, i, i+1)
	x.pages = slices.Delete(x.pages, i, i+1)
	if len(x.pages) == 0 {
		x.firsts, x.pages = nil, nil
	}
}

// merge merges page i with a neighbour if the result is not too large.
func (x *paged[E, K]) merge(i int) {
	if i+1 == len(x.pages) || i > 0 && len(x.pages[i-1]) < len(x.pages[i+1]) {
		i--
	}
	if i < 0 || len(x.pages[i])+len(x.pages[i+1]) > mergedSize {
		return
	}
	x.pages[i] = append(x.pages[i], x.pages[i+1]...)
	x.deletePage(i + 1)
}

// fill replaces the pages by pages of the entries, in their order.
func (x *paged[E, K]) fill(all []E) {
	x.firsts, x.pages = nil, nil
	if len(all) == 0 {
		return
	}
	pages := (len(all) + filled - 1) / filled
	x.firsts, x.pages = make([]K, 0, pages), make([][]E, 0, pages)
	for part := range slices.Chunk(all, filled) {
		page := append(make([]E, 0, room(len(part))), part...)
		x.firsts, x.pages = append(x.firsts, page[0].pageKey()), append(x.pages, page)
	}
}

// bytes returns the memory held in bytes.
func (x *paged[E, K]) bytes() int64 {
	var key K
	var e E
	n := int64(cap(x.firsts))*int64(unsafe.Sizeof(key)) + int64(cap(x.pages))*int64(unsafe.Sizeof([]E{}))
	for _, page := range x.pages {
		n += int64(cap(page)) * int64(unsafe.Sizeof(e))
	}
	return n
}
