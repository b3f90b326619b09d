package text

import (
	"cmp"
	"math"
	"slices"

	"fenec/engine/index"
)

// oracle scores by the definition, from the terms of the texts alone.
type oracle struct {
	o     Options
	texts map[int64]string
	docs  map[int64]counted // of the texts with a word
}

type counted struct {
	tf    map[string]float64
	words float64
}

func newOracle(o Options) *oracle { return &oracle{o, map[int64]string{}, map[int64]counted{}} }

func (w *oracle) put(id int64, text string) {
	w.remove(id)
	w.texts[id] = text
	d := counted{tf: map[string]float64{}}
	for _, t := range w.o.Terms([]byte(text)) {
		d.tf[t.Text]++
		if !t.Extra {
			d.words++
		}
	}
	if d.words > 0 {
		w.docs[id] = d
	}
}

func (w *oracle) remove(id int64) {
	delete(w.texts, id)
	delete(w.docs, id)
}

// search returns the documents that hold a word of the query, and the score of each to more digits than a result has.
func (w *oracle) search(query string, accept func(id int64) bool) ([]index.Hit, map[int64]float64) {
	df, total := map[string]float64{}, 0.0
	for _, d := range w.docs {
		total += d.words
		for t := range d.tf {
			df[t]++
		}
	}

	n := float64(len(w.docs))
	scores := map[int64]float64{}
	for _, t := range w.o.Terms([]byte(query)) {
		idf := math.Log(1 + (n-df[t.Text]+0.5)/(df[t.Text]+0.5))
		for id, d := range w.docs {
			if tf := d.tf[t.Text]; tf > 0 && (accept == nil || accept(id)) {
				scores[id] += idf * tf * (w.o.K1 + 1) / (tf + w.o.K1*(1-w.o.B+w.o.B*d.words/(total/n)))
			}
		}
	}
	var hits []index.Hit
	for id, score := range scores {
		hits = append(hits, index.Hit{ID: id, Score: float32(score)})
	}
	slices.SortFunc(hits, func(a, b index.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return hits, scores
}
