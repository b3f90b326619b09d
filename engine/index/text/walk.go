package text

import (
	"math"
	"math/bits"
)

// need returns the smallest term frequency with which a document of a length of at least shortest scores at least least
// by a term, 0 if there is none.
func (s *search) need(c *cursor, least float64) uint32 {
	if least <= 0 {
		return 1
	}
	if least >= c.weight {
		return math.MaxUint32
	}
	tf := least * s.scores.at(c.shortest()) / (c.weight - least)
	return uint32(min(math.Ceil(tf*(1-slack)), math.MaxUint32))
}

// next returns the first document from from on that one of the essential cursors has.
func (s *search) next(essential int, from uint32) (doc uint32, ok bool) {
	doc = math.MaxUint32
	for i := range essential {
		c := &s.cursors[i]
		c.seek(from)
		if c.done() {
			continue
		}
		ok = true
		if first := c.first(); first >= from {
			doc = min(doc, first)
			continue
		}
		c.load(s.x)
		doc = min(doc, c.v.doc(c.v.search(from)))
	}
	return doc, ok
}

// probeCost is about how many postings are added in the time of probing a cursor for a document.
const probeCost = 8

// walkWindow finds documents from first up to but not including first+window.
func (s *search) walkWindow(essential int, first uint32) {
	any := false
	for i := range essential {
		any = s.addCursor(i, first, any)
	}
	if !any {
		return
	}
	found := 0
	for _, set := range s.touched {
		found += bits.OnesCount64(set)
	}
	// If there is much to probe, adding up is faster.
	for ; essential < len(s.cursors); essential++ {
		if per := s.cursors[essential].count() * blockSize * window / len(s.x.ids); per > probeCost*found {
			break
		}
		s.addCursor(essential, first, true)
	}
	for w, set := range s.touched {
		s.touched[w] = 0
		for ; set != 0; set &= set - 1 {
			at := 64*w + bits.TrailingZeros64(set)
			score := s.sums[at]
			s.sums[at] = 0
			if score+s.rest[essential] >= s.limit {
				s.complete(first+uint32(at), score, essential)
			}
		}
	}
}

// addCursor adds the scores of cursor i to the sums of the window at first, and reports whether any sum is in use.
// While none is, documents that cannot be among the best without the cursors before i are left out.
func (s *search) addCursor(i int, first uint32, any bool) bool {
	c, until := &s.cursors[i], first+window
	for c.seek(first); !c.done() && c.first() < until; c.at++ {
		if any || c.bound(s.average)+s.rest[i+1] >= s.limit {
			c.load(s.x)
			lo, hi := c.v.search(first), c.v.n
			if c.last() >= until {
				hi = c.v.search(until)
			}
			if any {
				s.addAll(c, first, lo, hi)
			} else {
				any = s.addSome(c, first, lo, hi, s.limit-s.rest[i+1])
			}
		}
		if c.last() >= until {
			break
		}
	}
	return any
}

// addAll adds the scores of the postings from lo up to hi of the current block to the sums of the window at first.
func (s *search) addAll(c *cursor, first uint32, lo, hi int) {
	c.v.decode(&s.docs, &s.tfs, lo, hi)
	for i, doc := range s.docs[:hi-lo] {
		at := (doc - first) % window
		s.sums[at] += c.weight * s.scores.of(s.tfs[i], s.x.lengths[doc])
		s.touched[at/64] |= 1 << (at % 64)
	}
}

// addSome adds those of the scores that are at least least, and reports whether there are any.
func (s *search) addSome(c *cursor, first uint32, lo, hi int, least float64) bool {
	need := s.need(c, least)
	any := false
	for _, i := range c.v.pick(&s.picked, lo, hi, need) {
		doc := c.v.doc(int(i))
		score := c.weight * s.scores.of(c.v.tf(int(i)), s.x.lengths[doc])
		if score < least {
			continue
		}
		any = true
		at := (doc - first) % window
		s.sums[at] += score
		s.touched[at/64] |= 1 << (at % 64)
	}
	return any
}

// walk finds documents from from on that the first cursor has.
func (s *search) walk(from uint32) {
	c := &s.cursors[0]
	for c.seek(from); !c.done(); c.at++ {
		if s.rest[0] < s.limit {
			return
		}
		least := s.limit - s.rest[1]
		if c.bound(s.average) < least {
			continue
		}
		c.load(s.x)
		for _, i := range c.v.pick(&s.picked, c.v.search(from), c.v.n, s.need(c, least)) {
			doc := c.v.doc(int(i))
			score := c.weight * s.scores.of(c.v.tf(int(i)), s.x.lengths[doc])
			if score+s.rest[1] >= s.limit {
				s.complete(doc, score, 1)
			}
		}
	}
}
