package text

import (
	"hash/maphash"
	"slices"
)

// seed makes the places of terms in hash tables different in each process, so that no text can be written to collide.
var seed = maphash.MakeSeed()

func hashOf(term []byte) uint32 { return uint32(maphash.Bytes(seed, term)) }

// tally counts the terms of one text or of a few, before they are added to the index or searched for.
type tally struct {
	scanner  scanner
	table    []uint32 // open addressing over terms: one more than the place of each, 0 if the slot is free
	text     []byte   // the terms, one after another
	terms    []tallied
	postings []posting // text after text, each in the order in which its terms are first found
	lengths  []uint32  // words of each text

	starts  []uint32 // used by byTerm
	ordered []occurrence
}

// tallied is a term of a tally.
type tallied struct {
	hash     uint32
	from, to uint32 // in text
	texts    uint32 // number of texts it is in
	last     uint32 // place of the last posting
}

// posting is how often a term is in a text of a tally.
type posting struct {
	term uint32
	occurrence
}

// occurrence is how often a term is in a document.
type occurrence struct{ doc, tf uint32 }

// smallestTable is the number of slots of a first hash table.
const smallestTable = 16

// reset drops all texts. The options are those of the index.
func (t *tally) reset(o Options) {
	t.scanner.prefix, t.scanner.chars = o.Prefix, o.Chars
	clear(t.table)
	t.text, t.terms, t.postings, t.lengths = t.text[:0], t.terms[:0], t.postings[:0], t.lengths[:0]
}

// add counts the terms of a text, which is identified by its place among those added.
func (t *tally) add(text []byte) {
	doc, first := uint32(len(t.lengths)), uint32(len(t.postings))
	t.scanner.scan(text)
	length := uint32(0)
	for _, s := range t.scanner.spans {
		if !s.extra {
			length++
		}
		place := t.enter(t.scanner.bytes[s.from:s.to])
		e := &t.terms[place]
		if e.texts > 0 && e.last >= first {
			t.postings[e.last].tf++
			continue
		}
		e.texts++
		e.last = uint32(len(t.postings))
		t.postings = append(t.postings, posting{place, occurrence{doc, 1}})
	}
	t.lengths = append(t.lengths, length)
}

// enter returns the place of a term, which it adds if it is new.
func (t *tally) enter(term []byte) uint32 {
	if 2*len(t.terms) >= len(t.table) {
		t.grow()
	}
	hash := hashOf(term)
	mask := uint32(len(t.table) - 1)
	at := hash & mask
	for ; t.table[at] != 0; at = (at + 1) & mask {
		e := &t.terms[t.table[at]-1]
		if e.hash == hash && string(t.text[e.from:e.to]) == string(term) {
			return t.table[at] - 1
		}
	}
	place := uint32(len(t.terms))
	t.table[at] = place + 1
	from := uint32(len(t.text))
	t.text = append(t.text, term...)
	t.terms = append(t.terms, tallied{hash: hash, from: from, to: uint32(len(t.text))})
	return place
}

func (t *tally) grow() {
	t.table = make([]uint32, max(2*len(t.table), smallestTable))
	mask := uint32(len(t.table) - 1)
	for i := range t.terms {
		at := t.terms[i].hash & mask
		for t.table[at] != 0 {
			at = (at + 1) & mask
		}
		t.table[at] = uint32(i + 1)
	}
}

// byTerm calls fn for each term, in the order in which they were first found, with the texts it is in, ascending.
func (t *tally) byTerm(fn func(hash uint32, term []byte, in []occurrence)) {
	t.starts = slices.Grow(t.starts[:0], len(t.terms))[:len(t.terms)]
	n := uint32(0)
	for i := range t.terms {
		t.starts[i] = n
		n += t.terms[i].texts
	}
	t.ordered = slices.Grow(t.ordered[:0], int(n))[:n]
	for _, p := range t.postings {
		t.ordered[t.starts[p.term]] = p.occurrence
		t.starts[p.term]++
	}
	for i := range t.terms {
		e := &t.terms[i]
		end := t.starts[i]
		fn(e.hash, t.text[e.from:e.to], t.ordered[end-e.texts:end])
	}
}
