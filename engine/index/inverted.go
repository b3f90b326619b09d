package index

import (
	"math"
	"math/bits"
	"sync"

	"fenec/engine/doc"
)

// Inverted finds the documents whose sparse vector has the largest dot product with a query, exactly. For every index
// it keeps the documents that have a weight at it. The zero value is empty and ready to use.
type Inverted struct {
	postings postings
	n        int
}

// Add adds a document with its weights. A document without weights is not added.
func (x *Inverted) Add(w doc.Weights, id int64) {
	for i := range w.Len() {
		index, weight := w.At(i)
		x.postings.set(posting{index, weight, id})
	}
	if w.Len() > 0 {
		x.n++
	}
}

// Remove removes a document. The weights must be those it was added with.
func (x *Inverted) Remove(w doc.Weights, id int64) {
	removed := false
	for i := range w.Len() {
		index, _ := w.At(i)
		removed = x.postings.remove(postingKey{index, id}) || removed
	}
	if removed {
		x.n--
	}
}

// Build replaces x by the index of documents. each calls add once for every one of them, in any order.
func (x *Inverted) Build(each func(add func(w doc.Weights, id int64))) {
	var all []posting
	x.n = 0
	each(func(w doc.Weights, id int64) {
		for i := range w.Len() {
			index, weight := w.At(i)
			all = append(all, posting{index, weight, id})
		}
		if w.Len() > 0 {
			x.n++
		}
	})
	x.postings.load(all)
}

// Len returns the number of documents.
func (x *Inverted) Len() int { return x.n }

// Bytes returns the memory held in bytes.
func (x *Inverted) Bytes() int64 { return x.postings.bytes() }

// SparseDot returns the dot product of two sparse vectors; shared reports whether both have a weight at some index. It
// is bit for bit the score that Search returns.
func SparseDot(q, w doc.Weights) (score float32, shared bool) {
	sum := 0.0
	for i, j := 0, 0; i < q.Len() && j < w.Len(); {
		qi, a := q.At(i)
		wi, b := w.At(j)
		switch {
		case qi < wi:
			i++
		case qi > wi:
			j++
		default:
			sum += float64(a) * float64(b)
			shared = true
			i++
			j++
		}
	}
	return scoreOf(sum), shared
}

// scoreOf rounds a sum of products, which are added by ascending index. A product of two float32 is exact in float64,
// so the sum is the same whether or not a processor fuses the addition. A sum past the largest float32 is rounded to
// that.
func scoreOf(sum float64) float32 {
	return float32(max(min(sum, math.MaxFloat32), -math.MaxFloat32))
}

// windowSize is the number of ids that are scored at a time. Their sums fit the first-level cache.
const windowSize = 2048

// window holds the sums of the ids from base on.
type window struct {
	base int64
	sums [windowSize]float64
	seen [windowSize / 64]uint64 // which ids have a posting
}

// cursor is a place among the postings of one index of the query.
type cursor struct {
	index  uint32
	weight float64   // the query's
	page   []posting // the rest of it, empty if the index has no more postings
	next   int       // the page after it
}

// scratch is the working memory of a search.
type scratch struct {
	cursors []cursor
	window  window
	hits    []Hit
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// Search appends to dst the k documents with the largest dot products with q among those that share an index with it
// and that accept returns true for, nil for all: best first, of equal ones the lower id.
func (x *Inverted) Search(q doc.Weights, k int, accept func(id int64) bool, dst []Hit) []Hit {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.cursors = s.cursors[:0]
	for i := range q.Len() {
		c := cursor{}
		var weight float32
		c.index, weight = q.At(i)
		c.weight = float64(weight)
		if x.seek(&c) {
			s.cursors = append(s.cursors, c)
		}
	}
	top := NewTopK(k, false, s.hits)
	for s.fill(x) {
		s.window.drain(&top, accept)
	}
	dst = top.Append(dst)
	s.hits = top.heap
	clear(s.cursors[:cap(s.cursors)]) // it holds references to pages
	return dst
}

// seek moves a cursor to the first posting of its index; it returns false if there is none.
func (x *Inverted) seek(c *cursor) bool {
	at := x.postings.find(postingKey{index: c.index})
	if at.page == len(x.postings.pages) {
		return false
	}
	c.page, c.next = x.postings.pages[at.page][at.at:], at.page+1
	return len(c.page) > 0 && c.page[0].index == c.index
}

// advance moves a cursor past its page.
func (x *Inverted) advance(c *cursor) {
	c.page = nil
	if c.next < len(x.postings.pages) && x.postings.firsts[c.next].index == c.index {
		c.page = x.postings.pages[c.next]
		c.next++
	}
}

// fill sums up the next window that has a document; it returns false if there is none. The cursors are ordered by
// index, and so each sum is added in that order.
func (s *scratch) fill(x *Inverted) bool {
	w := &s.window
	w.base = math.MaxInt64
	live := s.cursors[:0]
	for _, c := range s.cursors {
		if len(c.page) > 0 && c.page[0].index == c.index {
			live = append(live, c)
			w.base = min(w.base, c.page[0].id)
		}
	}
	s.cursors = live
	for i := range live {
		c := &live[i]
		for len(c.page) > 0 && w.add(c) {
			x.advance(c)
		}
	}
	return len(live) > 0
}

// add adds the postings of the cursor's page that are in the window, and reports whether that was the whole page.
func (w *window) add(c *cursor) bool {
	for i := range c.page {
		p := &c.page[i]
		at := uint64(p.id - w.base)
		if p.index != c.index || at >= windowSize {
			c.page = c.page[i:]
			return false
		}
		w.sums[at] += c.weight * float64(p.weight)
		w.seen[at/64] |= 1 << (at % 64)
	}
	return true
}

// drain pushes the window's documents to top and empties it.
func (w *window) drain(top *TopK, accept func(id int64) bool) {
	for i, seen := range w.seen {
		for ; seen != 0; seen &= seen - 1 {
			at := 64*i + bits.TrailingZeros64(seen)
			h := Hit{ID: w.base + int64(at), Score: scoreOf(w.sums[at])}
			w.sums[at] = 0
			if top.Full() && (top.k == 0 || !top.Better(h, top.Worst())) || accept != nil && !accept(h.ID) {
				continue
			}
			top.Push(h)
		}
		w.seen[i] = 0
	}
}
