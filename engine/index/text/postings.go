package text

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// The postings of a term are, for each document it is in, the document's number and how often the term is in it,
// ascending. The last ones, fewer than blockSize, are its tail: differences and term frequencies as varints, a format
// made to grow. When there are blockSize of them they become a block, a format made to be searched: document numbers as
// differences to the first one, in as many bytes each as the largest needs, and term frequencies, which are left out if
// all are 1.
//
// A removed document stays in the postings until so many of a term's are removed that the rest is rewritten.

// blockSize is the number of postings of a block.
const blockSize = 128

// block is blockSize postings and the bounds of their scores.
type block struct {
	first, last uint32 // documents
	ref         uint32
	minLen      uint32  // words of the shortest document
	peak        float32 // the largest saturation, see bm25, when the average length was avg
	avg         float32
	docWidth    uint8 // bytes of a document number: 1, 2 or 4
	tfWidth     uint8 // bytes of a term frequency: 0 if all are 1, 1 or 4
}

func (b *block) size() int { return blockSize * int(b.docWidth+b.tfWidth) }

// view is a run of postings in the searchable format.
type view struct {
	n     int
	first uint32
	d8    []uint8 // one of these three is set: differences to first
	d16   []uint16
	d32   []uint32
	f8    []uint8 // one of these two is set, or neither if each is 1: term frequencies
	f32   []uint32
}

// view returns the postings of a block. It is valid until the index changes.
func (x *Index) view(b *block) view {
	bytes := x.arena.at(b.ref, b.size())
	docs, tfs := bytes[:blockSize*int(b.docWidth)], bytes[blockSize*int(b.docWidth):]
	v := view{n: blockSize, first: b.first}
	switch b.docWidth {
	case 1:
		v.d8 = docs
	case 2:
		v.d16 = numbers[uint16](docs)
	default:
		v.d32 = numbers[uint32](docs)
	}
	switch b.tfWidth {
	case 1:
		v.f8 = tfs
	case 4:
		v.f32 = numbers[uint32](tfs)
	}
	return v
}

// doc returns the document of posting i.
func (v *view) doc(i int) uint32 {
	switch {
	case v.d16 != nil:
		return v.first + uint32(v.d16[i])
	case v.d8 != nil:
		return v.first + uint32(v.d8[i])
	}
	return v.first + v.d32[i]
}

// tf returns the term frequency of posting i.
func (v *view) tf(i int) uint32 {
	switch {
	case v.f8 != nil:
		return uint32(v.f8[i])
	case v.f32 != nil:
		return v.f32[i]
	}
	return 1
}

// search returns the first posting of a document not before doc, or the number of postings.
func (v *view) search(doc uint32) int {
	if doc <= v.first {
		return 0
	}
	diff := doc - v.first
	switch {
	case v.d16 != nil:
		return firstNotBefore(v.d16, diff)
	case v.d8 != nil:
		return firstNotBefore(v.d8, diff)
	}
	return firstNotBefore(v.d32, diff)
}

// firstNotBefore is a binary search without a branch that depends on the values.
func firstNotBefore[T uint8 | uint16 | uint32](s []T, v uint32) int {
	base := 0
	n := len(s)
	for n > 1 {
		half := n >> 1
		if uint32(s[base+half-1]) < v {
			base += half
		}
		n -= half
	}
	if n == 1 && uint32(s[base]) < v {
		base++
	}
	return base
}

// append adds a posting to a term, after all it has. The document's length is already in lengths.
func (x *Index) append(t *term, doc, tf uint32) {
	length := x.lengths[doc]
	switch t.tailN {
	case 0:
		t.tail, t.tailMin = tf, length
	case 1:
		first := t.tail
		t.tail, t.tailLen = 0, 0
		x.appendTail(t, t.last, first)
		x.appendTail(t, doc-t.last, tf)
	default:
		x.appendTail(t, doc-t.last, tf)
	}
	t.last = doc
	t.tailMin = min(t.tailMin, length)
	t.tailN++
	if t.tailN == blockSize {
		x.seal(t)
	}
}

// appendTail writes a posting at the end of a tail.
func (x *Index) appendTail(t *term, diff, tf uint32) {
	var buf [2 * binary.MaxVarintLen64]byte
	code := buf[:0]
	if tf == 1 {
		code = binary.AppendUvarint(code, uint64(diff)<<1)
	} else {
		code = binary.AppendUvarint(code, uint64(diff)<<1|1)
		code = binary.AppendUvarint(code, uint64(tf))
	}
	was, is := int(t.tailLen), int(t.tailLen)+len(code)
	if was == 0 {
		t.tail = x.arena.alloc(is)
	} else if room(was) != room(is) {
		ref := x.arena.alloc(is)
		copy(x.arena.at(ref, was), x.arena.at(t.tail, was))
		x.arena.release(t.tail, was)
		t.tail = ref
	}
	copy(x.arena.at(t.tail, is)[was:], code)
	t.tailLen = uint16(is)
}

// readTail appends the postings of a tail to dst.
func (x *Index) readTail(t *term, dst []occurrence) []occurrence {
	if t.tailN < 2 {
		if t.tailN == 1 {
			dst = append(dst, occurrence{t.last, t.tail})
		}
		return dst
	}
	code := x.arena.at(t.tail, int(t.tailLen))
	doc := uint32(0)
	for len(code) > 0 {
		diff, n := binary.Uvarint(code)
		code = code[n:]
		tf := uint64(1)
		if diff&1 != 0 {
			tf, n = binary.Uvarint(code)
			code = code[n:]
		}
		doc += uint32(diff >> 1)
		dst = append(dst, occurrence{doc, uint32(tf)})
	}
	return dst
}

// dropTail frees the postings of a tail.
func (x *Index) dropTail(t *term) {
	if t.tailN > 1 {
		x.arena.release(t.tail, int(t.tailLen))
	}
	t.tail, t.tailLen, t.tailN = 0, 0, 0
}

// seal makes a block of a full tail.
func (x *Index) seal(t *term) {
	var room [blockSize]occurrence
	all := x.readTail(t, room[:0])
	st := x.statistics(nil)
	b := block{first: all[0].doc, last: t.last, minLen: t.tailMin, docWidth: 4, avg: float32(st.average())}
	switch span := b.last - b.first; {
	case span <= math.MaxUint8:
		b.docWidth = 1
	case span <= math.MaxUint16:
		b.docWidth = 2
	}
	s := x.saturation(st)
	for _, o := range all {
		if length := x.lengths[o.doc]; length != 0 {
			b.peak = max(b.peak, float32(s.of(o.tf, length)))
		}
		switch {
		case o.tf > math.MaxUint8:
			b.tfWidth = 4
		case o.tf > 1:
			b.tfWidth = max(b.tfWidth, 1)
		}
	}
	x.dropTail(t)
	b.ref = x.arena.alloc(b.size())
	v := x.view(&b)
	for i, o := range all {
		switch diff := o.doc - b.first; b.docWidth {
		case 1:
			v.d8[i] = uint8(diff)
		case 2:
			v.d16[i] = uint16(diff)
		default:
			v.d32[i] = diff
		}
		switch b.tfWidth {
		case 1:
			v.f8[i] = uint8(o.tf)
		case 4:
			v.f32[i] = o.tf
		}
	}
	x.addBlock(t, b)
}

func (x *Index) addBlock(t *term, b block) {
	if t.list == 0 {
		if n := len(x.spareLists); n > 0 {
			t.list = x.spareLists[n-1]
			x.spareLists = x.spareLists[:n-1]
		} else {
			x.lists = append(x.lists, nil)
			t.list = uint32(len(x.lists))
		}
	}
	x.lists[t.list-1] = append(x.lists[t.list-1], b)
}

// blocks returns the blocks of a term.
func (x *Index) blocks(t *term) []block {
	if t.list == 0 {
		return nil
	}
	return x.lists[t.list-1]
}

// held returns the number of postings of a term, including those of removed documents.
func (x *Index) held(t *term) int { return blockSize*len(x.blocks(t)) + int(t.tailN) }

// postings appends to dst the postings of a term whose documents exist.
func (x *Index) postings(t *term, dst []occurrence) []occurrence {
	for i := range x.blocks(t) {
		v := x.view(&x.blocks(t)[i])
		for i := range v.n {
			if doc := v.doc(i); x.lengths[doc] != 0 {
				dst = append(dst, occurrence{doc, v.tf(i)})
			}
		}
	}
	from := len(dst)
	dst = x.readTail(t, dst)
	kept := dst[:from]
	for _, o := range dst[from:] {
		if x.lengths[o.doc] != 0 {
			kept = append(kept, o)
		}
	}
	return kept
}

// drop frees all postings of a term.
func (x *Index) drop(t *term) {
	x.dropTail(t)
	if t.list == 0 {
		return
	}
	for i := range x.blocks(t) {
		b := &x.blocks(t)[i]
		x.arena.release(b.ref, b.size())
	}
	x.lists[t.list-1] = nil
	x.spareLists = append(x.spareLists, t.list)
	t.list = 0
}

// listBytes returns the memory that the lists hold outside of the arena, in bytes.
func (x *Index) listBytes() int64 {
	n := int64(cap(x.lists))*24 + int64(cap(x.spareLists))*4
	for i := range x.lists {
		n += int64(cap(x.lists[i])) * int64(unsafe.Sizeof(block{}))
	}
	return n
}
