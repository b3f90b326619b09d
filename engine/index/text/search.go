package text

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"fenec/engine/index"
)

// Search appends to dst the k documents with the highest scores for the words of a query among those that accept
// returns true for, best first, ties by ascending id. A document needs to hold one of the words. A nil accept accepts
// all; a k of math.MaxInt finds all. accept may be called twice for a document, and only for one that could be among
// the k.
func (x *Index) Search(query []byte, k int, accept func(id int64) bool, dst []index.Hit) []index.Hit {
	s := searches.Get().(*search)
	defer searches.Put(s)
	s.begin(x, query, k, accept)
	s.weigh(nil)
	s.run()
	dst = s.top.Append(dst)
	s.end()
	return dst
}

var searches = sync.Pool{New: func() any { return new(search) }}

// search finds the best documents with MaxScore (Turtle and Flood 1995, as refined with blocks by Ding and Suel 2011).
//
// Its cursors, one a term, are ordered by their weights, largest first, and rest holds upper bounds of what the last
// ones can add. Once the best documents so far score more than cursors e and on can add together, each document worth
// finding is in one of the first e, the essential cursors: only these are walked, and the others are probed for the
// documents found. There are two ways to walk: while more than one is essential, window by window with a sum for each
// document of the window; the last one by itself, posting by posting.
//
// Both ways add the parts of a score in the order of the cursors, so that documents which are equal for the query have
// equal scores to the last bit.
type search struct {
	x       *Index
	accept  func(id int64) bool
	scores  saturation
	average float64 // words of a document
	tally   tally

	terms   []queryTerm
	cursors []cursor
	rest    []float64 // for each cursor, the most that it and those after it can add; 0 after the last one
	k       int
	top     index.TopK
	hits    []index.Hit // memory of top
	limit   float64     // a document that scores less is not among the best

	sums    [window]float64
	touched [window / 64]uint64 // whose sums are in use
	docs    [blockSize]uint32   // of the current block
	tfs     [blockSize]uint32
	picked  [blockSize]uint8
	tail    []occurrence
}

// queryTerm is a term of the query that some document has.
type queryTerm struct {
	place  uint32
	weight float64
}

// window is the number of document numbers that are walked at a time.
const window = 1024

// begin prepares a search, except for what the statistics make of its terms.
func (s *search) begin(x *Index, query []byte, k int, accept func(id int64) bool) {
	s.x, s.accept, s.k, s.limit = x, accept, k, math.Inf(-1)
	s.tally.reset(x.o)
	if k > 0 {
		s.tally.add(query)
	}
}

// end drops the references to what the search does not own.
func (s *search) end() { s.x, s.accept = nil, nil }

// weigh finds the terms of the query that some document has, and the weight of each by the statistics of the documents
// that e does not count; e may be nil.
func (s *search) weigh(e *ended) {
	x := s.x
	st := x.statistics(e)
	s.average, s.scores = st.average(), x.saturation(st)
	s.terms = s.terms[:0]
	found := 0
	for i := range s.tally.terms {
		t := &s.tally.terms[i]
		term := s.tally.text[t.from:t.to]
		place, ok := x.dict.find(&x.arena, t.hash, term)
		if !ok {
			continue
		}
		df := x.dict.terms[place].df
		if e != nil {
			df -= e.documents(t.hash, term)
		}
		if df == 0 {
			continue
		}
		found += int(df)
		// The tally of one text has a posting a term.
		weight := float64(s.tally.postings[i].tf) * st.idf(df) * (x.o.K1 + 1)
		s.terms = append(s.terms, queryTerm{place, weight})
	}
	slices.SortStableFunc(s.terms, func(a, b queryTerm) int { return cmp.Compare(b.weight, a.weight) })
	s.k = max(min(s.k, found, st.live), 0)
	s.hits = slices.Grow(s.hits[:0], s.k)
	s.top = index.NewTopK(s.k, false, s.hits)
}

// place puts the cursors before their first postings.
func (s *search) place() {
	s.cursors = slices.Grow(s.cursors[:0], len(s.terms))[:len(s.terms)]
	for i, w := range s.terms {
		s.cursors[i].begin(s, &s.x.dict.terms[w.place], w.weight)
	}
	s.rest = slices.Grow(s.rest[:0], len(s.cursors)+1)[:len(s.cursors)+1]
	s.rest[len(s.cursors)] = 0
	for i := len(s.cursors) - 1; i >= 0; i-- {
		s.rest[i] = s.rest[i+1] + s.cursors[i].peak
	}
}

// run walks the postings.
func (s *search) run() {
	s.place()
	s.presetLimit()
	from := uint32(0)
	for essential := len(s.cursors); ; {
		for essential > 0 && s.rest[essential-1] < s.limit {
			essential--
		}
		switch essential {
		case 0:
			return
		case 1:
			s.walk(from)
			return
		}
		first, ok := s.next(essential, from)
		if !ok {
			return
		}
		s.walkWindow(essential, first)
		from = first + window
	}
}

// slack covers what rounding may have made slightly too small. It is far more than that, and far less than a difference
// of scores that matters.
const slack = 1e-6

// raise sets the score that a document needs to have. An equal one may still have the lower id.
func (s *search) raise(score float32) { s.limit = max(s.limit, float64(score)*(1-slack)) }

// presetLimit raises the limit before the walk, by the scores of documents of the heaviest term alone.
func (s *search) presetLimit() {
	if len(s.cursors) < 2 || s.k > blockSize {
		return
	}
	c := &s.cursors[0]
	c.load(s.x)
	for i := range c.v.n {
		doc := c.v.doc(i)
		length := s.x.lengths[doc]
		if length == 0 || s.accept != nil && !s.accept(s.x.ids[doc]) {
			continue
		}
		s.top.Push(index.Hit{ID: s.x.ids[doc], Score: float32(c.weight * s.scores.of(c.v.tf(i), length))})
	}
	if s.top.Full() {
		s.raise(s.top.Worst().Score)
	}
	s.top = index.NewTopK(s.k, false, s.hits)
}

// offer ends a document's scoring.
func (s *search) offer(doc uint32, score float64) {
	if score < s.limit || s.x.lengths[doc] == 0 {
		return
	}
	h := index.Hit{ID: s.x.ids[doc], Score: float32(score)}
	if s.top.Full() && !s.top.Better(h, s.top.Worst()) {
		return
	}
	if s.accept != nil && !s.accept(h.ID) {
		return
	}
	s.top.Push(h)
	if s.top.Full() {
		s.raise(s.top.Worst().Score)
	}
}

// complete adds to the score of a document what the cursors from i on add, unless it turns out too low.
func (s *search) complete(doc uint32, score float64, i int) {
	for ; i < len(s.cursors); i++ {
		if score+s.rest[i] < s.limit {
			return
		}
		c := &s.cursors[i]
		if !c.seek(doc) {
			continue
		}
		if score+c.bound(s.average)+s.rest[i+1] < s.limit {
			return
		}
		c.load(s.x)
		if at := c.v.search(doc); at < c.v.n && c.v.doc(at) == doc {
			score += c.weight * s.scores.of(c.v.tf(at), s.x.lengths[doc])
		}
	}
	s.offer(doc, score)
}
