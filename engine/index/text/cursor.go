package text

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// cursor is a position in the postings of a term of a query. It only moves forward.
type cursor struct {
	weight float64 // a score is this times the saturation
	peak   float64 // the largest score of any document

	blocks []block
	at     int // position in blocks; the last block is followed by the tail, as if it were a block

	v      view // of the block at position loaded
	loaded int

	tail      view
	tailLast  uint32
	tailMin   uint32 // words of the shortest document
	tailPeak  float32
	docs, tfs []uint32 // buffers of tail
}

// begin puts a cursor before the first posting of a term.
func (c *cursor) begin(s *search, t *term, weight float64) {
	c.weight, c.blocks, c.at, c.loaded = weight, s.x.blocks(t), 0, -1
	s.tail = s.x.readTail(t, s.tail[:0])
	n := len(s.tail)
	c.docs, c.tfs = slices.Grow(c.docs[:0], n)[:n], slices.Grow(c.tfs[:0], n)[:n]
	most := uint32(0)
	for i, o := range s.tail {
		c.docs[i], c.tfs[i] = o.doc, o.tf
		most = max(most, o.tf)
	}
	c.tail = view{n: n, d32: c.docs, f32: c.tfs}
	c.tailLast, c.tailMin, c.tailPeak = t.last, t.tailMin, float32(s.scores.of(most, t.tailMin))
	c.peak = 0
	for c.at = range c.count() {
		c.peak = max(c.peak, c.bound(s.average))
	}
	c.at = 0
}

// count returns the number of blocks, including the tail.
func (c *cursor) count() int {
	if c.tail.n > 0 {
		return len(c.blocks) + 1
	}
	return len(c.blocks)
}

// first and last return the first and the last document of the current block.
func (c *cursor) first() uint32 {
	if c.at < len(c.blocks) {
		return c.blocks[c.at].first
	}
	return c.docs[0]
}

func (c *cursor) last() uint32 {
	if c.at < len(c.blocks) {
		return c.blocks[c.at].last
	}
	return c.tailLast
}

// bound returns an upper bound, except for rounding, of the scores of the documents in the current block. If documents
// have become longer since the block was made, the saturations in it have grown, each by no more than the average length.
func (c *cursor) bound(average float64) float64 {
	if c.at == len(c.blocks) {
		return c.weight * float64(c.tailPeak)
	}
	b := &c.blocks[c.at]
	return c.weight * float64(b.peak) * max(1, average/float64(b.avg))
}

// shortest returns a lower bound of the length of the documents in the current block.
func (c *cursor) shortest() uint32 {
	if c.at == len(c.blocks) {
		return c.tailMin
	}
	return c.blocks[c.at].minLen
}

// load makes v the current block.
func (c *cursor) load(x *Index) {
	if c.loaded == c.at {
		return
	}
	c.loaded = c.at
	if c.at == len(c.blocks) {
		c.v = c.tail
		return
	}
	c.v = x.view(&c.blocks[c.at])
}

// seek moves on to the first block that ends at doc or after it, and reports whether doc may be in it.
func (c *cursor) seek(doc uint32) bool {
	if c.at < len(c.blocks) && c.blocks[c.at].last < doc {
		// Steps that double, then a binary search between the last two.
		lo, step := c.at, 1
		for lo+step < len(c.blocks) && c.blocks[lo+step].last < doc {
			lo += step
			step *= 2
		}
		hi := min(lo+step, len(c.blocks))
		for hi-lo > 1 {
			mid := int(uint(lo+hi) >> 1)
			if c.blocks[mid].last < doc {
				lo = mid
			} else {
				hi = mid
			}
		}
		c.at = hi
	}
	switch {
	case c.at < len(c.blocks):
		return c.blocks[c.at].first <= doc
	case c.done():
		return false
	case c.tailLast < doc:
		c.at++
		return false
	}
	return c.docs[0] <= doc
}

// done reports whether there are no more blocks.
func (c *cursor) done() bool { return c.at >= c.count() }

// decode writes the postings of v from lo up to hi to docs and tfs.
func (v *view) decode(docs, tfs *[blockSize]uint32, lo, hi int) {
	switch {
	case v.d16 != nil:
		widen(docs[:hi-lo], v.d16[lo:hi], v.first)
	case v.d8 != nil:
		widen(docs[:hi-lo], v.d8[lo:hi], v.first)
	default:
		widen(docs[:hi-lo], v.d32[lo:hi], v.first)
	}
	switch {
	case v.f8 != nil:
		widen(tfs[:hi-lo], v.f8[lo:hi], 0)
	case v.f32 != nil:
		copy(tfs[:hi-lo], v.f32[lo:hi])
	default:
		for i := range tfs[:hi-lo] {
			tfs[i] = 1
		}
	}
}

func widen[T uint8 | uint16 | uint32](dst []uint32, src []T, add uint32) {
	_ = dst[:len(src)]
	for i, n := range src {
		dst[i] = add + uint32(n)
	}
}

// pick writes to picked the positions of the postings of v, from lo up to hi, whose term frequency is at least need.
func (v *view) pick(picked *[blockSize]uint8, lo, hi int, need uint32) []uint8 {
	n := 0
	switch {
	case need <= 1:
		for i := lo; i < hi; i++ {
			picked[n] = uint8(i)
			n++
		}
	case v.f32 != nil:
		for i := lo; i < hi; i++ {
			if v.f32[i] >= need {
				picked[n] = uint8(i)
				n++
			}
		}
	case v.f8 != nil && need <= math.MaxUint8:
		// Eight at a time: adding 128-need to a byte below 128 sets its highest bit if it is at least need.
		const ones, high = 0x0101010101010101, 0x8080808080808080
		add := uint64(high) - uint64(min(need, 128))*ones
		for i := lo &^ 7; i < hi; i += 8 {
			eight := binary.LittleEndian.Uint64(v.f8[i:])
			for hit := (eight&^high + add | eight) & high; hit != 0; hit &= hit - 1 {
				at := i + bits.TrailingZeros64(hit)/8
				if at >= lo && at < hi && uint32(v.f8[at]) >= need {
					picked[n] = uint8(at)
					n++
				}
			}
		}
	}
	return picked[:n]
}
