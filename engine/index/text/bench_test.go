package text

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fenec/engine/index"
)

const (
	benchDocuments = 100_000
	benchWords     = 60
	benchTerms     = 50_000
)

// zipf draws words with the frequencies of a natural language.
func zipf(r *rand.Rand) *rand.Zipf { return rand.NewZipf(r, 1.07, 2, benchTerms-1) }

// word spells a number as a word of a few letters.
func word(n uint64) string {
	const letters = "etaoinshrdlucmfwypvbgkqjxz"
	b := []byte{letters[n%13]}
	for n = n/13 + 1; n > 0; n /= 26 {
		b = append(b, letters[n%26])
	}
	return string(b)
}

func benchCorpus() [][]byte {
	z := zipf(rand.New(rand.NewPCG(1, 1)))
	texts := make([][]byte, benchDocuments)
	for i := range texts {
		words := make([]string, benchWords)
		for j := range words {
			words[j] = word(z.Uint64())
		}
		texts[i] = []byte(strings.Join(words, " "))
	}
	return texts
}

func built(texts [][]byte, workers int) *Index {
	x := New(standard)
	x.Build(len(texts), workers, func(add func(id int64, text []byte)) {
		for i, text := range texts {
			add(int64(i+1), text)
		}
	})
	return x
}

func BenchmarkBuild(b *testing.B) {
	texts := benchCorpus()
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			var x *Index
			for b.Loop() {
				x = built(texts, workers)
			}
			b.ReportMetric(float64(x.Bytes())/benchDocuments, "held-B/doc")
		})
	}
}

func BenchmarkSearch(b *testing.B) {
	x := built(benchCorpus(), 2)
	for _, kind := range []string{"zipf", "uniform"} {
		for _, terms := range []int{1, 2, 3, 30} {
			r := rand.New(rand.NewPCG(7, uint64(terms)))
			z := zipf(r)
			asked := make([][]byte, 500)
			for i := range asked {
				words := make([]string, terms)
				for j := range words {
					n := z.Uint64()
					if kind == "uniform" {
						n = r.Uint64N(2000)
					}
					words[j] = word(n)
				}
				asked[i] = []byte(strings.Join(words, " "))
			}
			b.Run(fmt.Sprintf("%s/terms=%d", kind, terms), func(b *testing.B) {
				b.ReportAllocs()
				dst := make([]index.Hit, 0, 10)
				for i := 0; b.Loop(); i++ {
					dst = x.Search(asked[i%len(asked)], 10, nil, dst[:0])
				}
			})
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	texts := benchCorpus()
	x := built(texts, 2)
	r := rand.New(rand.NewPCG(9, 9))
	b.ReportAllocs()
	for b.Loop() {
		i, j := r.IntN(len(texts)), r.IntN(len(texts))
		x.Remove(int64(i+1), texts[i])
		texts[i], texts[j] = texts[j], texts[i]
		if i != j {
			x.Remove(int64(j+1), texts[i])
			x.Add(int64(j+1), texts[j])
		}
		x.Add(int64(i+1), texts[i])
	}
}
