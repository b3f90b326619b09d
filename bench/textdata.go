package main

import (
	"math/rand/v2"
	"slices"
	"strings"
)

const (
	textDocuments = 100_000
	textLength    = 60 // words of a document
	vocabulary    = 50_000
	textQueries   = 300
)

// corpus draws words as text has them: the n-th most frequent about 1/n as often as the first.
type corpus struct {
	at   *rand.Rand
	zipf *rand.Zipf
}

func newCorpus(seed uint64) *corpus {
	at := rand.New(rand.NewPCG(seed, 5))
	return &corpus{at, rand.NewZipf(at, 1.07, 2, vocabulary-1)}
}

// wordOf is the word of a rank, in syllables, so that no analyzer takes it for a stop word or a number.
func wordOf(rank uint64) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var b strings.Builder
	for n := rank + 70; n > 0; n /= 70 {
		b.WriteByte(consonants[n%70/5])
		b.WriteByte(vowels[n%5])
	}
	return b.String()
}

func (c *corpus) document() string {
	words := make([]string, textLength)
	for i := range words {
		words[i] = wordOf(c.zipf.Uint64())
	}
	return strings.Join(words, " ")
}

// stopWords is how many of the most frequent words nobody asks for: each is in nearly half of the documents or more.
const stopWords = 10

// terms draws n different words to ask for, by how frequent they are.
func (c *corpus) terms(n int) []string {
	var terms []string
	for len(terms) < n {
		rank := c.zipf.Uint64()
		if word := wordOf(rank); rank >= stopWords && !slices.Contains(terms, word) {
			terms = append(terms, word)
		}
	}
	return terms
}
