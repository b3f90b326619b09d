// Package text finds the documents that hold words of a query, best first by BM25: an inverted index whose statistics
// are exactly those of the current documents after every change.
//
// A text becomes terms (scanner), which are counted (tally) and added to the index: a dictionary leads from each term
// to its postings. Documents are numbered in the order they are added. The length of a removed document is 0, and its
// number is used again only when the index is rewritten, which happens when more numbers belong to removed documents
// than to current ones.
//
// [Index.Build] starts goroutines and waits for them; nothing else does. Any number of goroutines may search while none
// writes, which the database's lock ensures.
package text

import (
	"sync"

	"fenec/engine/index"
)

// Options are how texts are read and scored.
type Options struct {
	K1     float64 // how late more occurrences of a word stop counting, at least 0
	B      float64 // how much a document's length lowers its score, from 0 to 1
	Prefix int     // prefixes of 3 to Prefix letters of each word are terms too; none if below 3
	Chars  bool    // single characters of what is read as pairs and triples are terms too
}

// Index is the index of one field.
type Index struct {
	o     Options
	dict  dict
	arena arena

	lists      [][]block // of terms of blockSize postings and more
	spareLists []uint32  // one more than places in lists that are free

	numbers index.IDs // each document's number
	ids     []int64   // by number
	lengths []uint32  // by number, words; 0 if the document was removed
	live    int       // number of documents
	words   int64     // of all of them

	ended *ended
}

// New returns an empty index.
func New(o Options) *Index { return &Index{o: o, ended: newEnded()} }

// Len returns the number of documents with at least one word.
func (x *Index) Len() int { return x.live }

// Bytes returns the memory held in bytes.
func (x *Index) Bytes() int64 {
	return x.dict.bytes() + x.arena.bytes() + x.listBytes() + x.numbers.Bytes() + int64(cap(x.ids))*8 + int64(cap(x.lengths))*4 +
		x.ended.bytes()
}

// tallies are reused for the next text that is added, removed or searched for.
var tallies = sync.Pool{New: func() any { return new(tally) }}

// Add adds a document with its text. It does nothing if the document exists.
func (x *Index) Add(id int64, text []byte) {
	t := tallies.Get().(*tally)
	defer tallies.Put(t)
	t.reset(x.o)
	t.add(text)
	x.enter(t, []int64{id})
}

// enter adds the texts of a tally, those of the documents ids.
func (x *Index) enter(t *tally, ids []int64) {
	const none = ^uint32(0)
	numbers := make([]uint32, len(ids))
	for i, length := range t.lengths {
		numbers[i] = none
		if length == 0 {
			continue
		}
		number := uint32(len(x.ids))
		if _, found := x.numbers.Get(ids[i]); found {
			continue
		}
		x.numbers.Set(ids[i], uint64(number))
		x.ids, x.lengths = append(x.ids, ids[i]), append(x.lengths, length)
		x.live++
		x.words += int64(length)
		numbers[i] = number
	}
	t.byTerm(func(hash uint32, text []byte, in []occurrence) {
		var e *term
		for _, o := range in {
			number := numbers[o.doc]
			if number == none {
				continue
			}
			if e == nil {
				e = &x.dict.terms[x.dict.enter(&x.arena, hash, text)]
			}
			e.df++
			x.append(e, number, o.tf)
		}
	})
}

// Remove removes a document. The text must be the one it was added with. It does nothing if the document does not
// exist.
func (x *Index) Remove(id int64, text []byte) {
	number, found := x.numbers.Delete(id)
	if !found {
		return
	}
	x.live--
	x.words -= int64(x.lengths[number])
	x.lengths[number] = 0
	if x.live == 0 {
		*x = Index{o: x.o, ended: x.ended}
		return
	}
	t := tallies.Get().(*tally)
	defer tallies.Put(t)
	t.reset(x.o)
	t.add(text)
	t.byTerm(func(hash uint32, text []byte, _ []occurrence) {
		if place, ok := x.dict.find(&x.arena, hash, text); ok {
			x.removeFrom(hash, place)
		}
	})
	if gone := len(x.ids) - x.live; gone > x.live+minGone {
		x.renumber()
	}
}

// minGone is how many documents or postings must be removed, whatever their share, before the rest is rewritten.
const minGone = 32

// removeFrom removes a document from the postings of a term.
func (x *Index) removeFrom(hash, place uint32) {
	e := &x.dict.terms[place]
	e.df--
	if e.df == 0 {
		x.drop(e)
		x.dict.remove(&x.arena, hash, place)
		return
	}
	if gone := x.held(e) - int(e.df); gone > minGone && gone > int(e.df)/2 {
		left := x.postings(e, make([]occurrence, 0, e.df))
		x.drop(e)
		for _, o := range left {
			x.append(e, o.doc, o.tf)
		}
	}
}

// renumber rewrites the index with new numbers for the current documents, in the same order.
func (x *Index) renumber() {
	y := &Index{o: x.o, live: x.live, words: x.words, ended: x.ended}
	y.ids, y.lengths = make([]int64, 0, x.live), make([]uint32, 0, x.live)
	numbers := make([]uint32, len(x.ids))
	for number, length := range x.lengths {
		if length != 0 {
			numbers[number] = uint32(len(y.ids))
			y.numbers.Set(x.ids[number], uint64(len(y.ids)))
			y.ids, y.lengths = append(y.ids, x.ids[number]), append(y.lengths, length)
		}
	}
	var left []occurrence
	for place := range x.dict.terms {
		e := &x.dict.terms[place]
		if e.df == 0 {
			continue
		}
		text := x.dict.text(&x.arena, uint32(place))
		to := &y.dict.terms[y.dict.enter(&y.arena, hashOf(text), text)]
		to.df = e.df
		left = x.postings(e, left[:0])
		for _, o := range left {
			y.append(to, numbers[o.doc], o.tf)
		}
	}
	*x = *y
}
