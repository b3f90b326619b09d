// Package text finds the documents that hold the words of a query, best first: an inverted index with the scores of BM25.
package text

import (
	"cmp"
	"math"
	"slices"

	"fenec/engine/index"
)

// Options say how texts are read and scored.
type Options struct {
	K1     float64 // how soon more occurrences of a word stop counting
	B      float64 // how much long documents are held back, from 0 to 1
	Prefix int     // the prefixes of 3 to Prefix letters of each word are terms too; none below 3
	Chars  bool    // the single characters of what is read as pairs and triples are terms too
}

// Index is the index of one field.
type Index struct {
	o     Options
	docs  map[int64]*counted
	df    map[string]int
	words int
}

type counted struct {
	tf    map[string]int
	words int
}

// New is an empty index.
func New(o Options) *Index {
	return &Index{o: o, docs: map[int64]*counted{}, df: map[string]int{}}
}

// Build enters many documents at once.
func (x *Index) Build(n, workers int, each func(add func(id int64, text []byte))) { each(x.Add) }

// Add enters a document with its text.
func (x *Index) Add(id int64, text []byte) {
	d := &counted{tf: map[string]int{}}
	for _, t := range x.o.Terms(text) {
		d.tf[t.Text]++
		if !t.Extra {
			d.words++
		}
	}
	if d.words == 0 {
		return
	}
	x.docs[id] = d
	x.words += d.words
	for t := range d.tf {
		x.df[t]++
	}
}

// Remove takes a document out. The text is the one it was entered with.
func (x *Index) Remove(id int64, text []byte) {
	d, ok := x.docs[id]
	if !ok {
		return
	}
	delete(x.docs, id)
	x.words -= d.words
	for t := range d.tf {
		x.df[t]--
	}
}

// Len is the number of documents with at least one word.
func (x *Index) Len() int { return len(x.docs) }

// Bytes is the memory held.
func (x *Index) Bytes() int64 { return int64(x.words) * 8 }

// Search appends to dst the k documents that score highest among those accept takes, best first, ties by ascending id.
// A nil accept takes all.
func (x *Index) Search(query []byte, k int, accept func(id int64) bool, dst []index.Hit) []index.Hit {
	terms := x.o.Terms(query)
	n := float64(len(x.docs))
	avg := float64(x.words) / n
	var hits []index.Hit
	for id, d := range x.docs {
		score, found := 0.0, false
		for _, t := range terms {
			tf := float64(d.tf[t.Text])
			if tf == 0 {
				continue
			}
			found = true
			df := float64(x.df[t.Text])
			idf := math.Log1p((n - df + 0.5) / (df + 0.5))
			score += idf * tf * (x.o.K1 + 1) / (tf + x.o.K1*(1-x.o.B+x.o.B*float64(d.words)/avg))
		}
		if found && (accept == nil || accept(id)) {
			hits = append(hits, index.Hit{ID: id, Score: float32(score)})
		}
	}
	slices.SortFunc(hits, func(a, b index.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return append(dst, hits[:min(k, len(hits))]...)
}
