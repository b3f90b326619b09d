package text

import "math"

// saturation is the part of BM25 that a document brings to it. The score of a document d for a query is
//
//	sum over the words t of the query of  idf(t) * tf*(k1+1) / (tf + k1*(1 - b + b*|d|/avgdl))
//
//	idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5))
//
// where tf is how often t is in d, df in how many documents t is, N the number of documents with at least one word, |d|
// the number of words of d and avgdl the mean of that over the N documents. A word that a query repeats counts each
// time. It is Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009), equation 3.15,
// with the 1 within the logarithm that keeps words of more than half of the documents from having a negative weight.
//
// Here it is idf(t)*(k1+1), the weight of a word, times tf/(tf + k1*(...)), the saturation, which is below 1.
type saturation struct{ base, slope float64 }

// statistics are what scores depend on besides a document and its terms.
type statistics struct {
	live  int   // documents
	words int64 // of all of them
}

// statistics returns those of the documents that e does not count; e may be nil.
func (x *Index) statistics(e *ended) statistics {
	if e == nil {
		return statistics{x.live, x.words}
	}
	return statistics{x.live - e.live, x.words - e.words}
}

// average returns the mean number of words of a document.
func (st statistics) average() float64 { return float64(st.words) / float64(st.live) }

// idf returns the weight of a term that df documents have, by how rare it is.
func (st statistics) idf(df uint32) float64 {
	return math.Log1p((float64(st.live) - float64(df) + 0.5) / (float64(df) + 0.5))
}

func (x *Index) saturation(st statistics) saturation {
	return saturation{base: x.o.K1 * (1 - x.o.B), slope: x.o.K1 * x.o.B / st.average()}
}

// of returns the saturation of a term that is tf times in a document of so many words.
func (s saturation) of(tf, length uint32) float64 {
	f := float64(tf)
	return f / (f + s.at(length))
}

// at returns the term frequency at which the saturation in a document of so many words is one half.
func (s saturation) at(length uint32) float64 {
	// The conversion keeps the product from being fused with the sum on some machines only: equal documents score
	// equal.
	return s.base + float64(s.slope*float64(length))
}
