package text

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fenec/engine/index"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var standard = Options{K1: 1.2, B: 0.75}

// vocabulary holds words that exercise every way of reading, few enough that documents share them.
var vocabulary = []string{
	"a", "the", "fox", "foxes", "don't", "don’t", "international", "internet", "Straße", "STRASSE", "ısı", "ISI", "naïve",
	"σίσυφος", "ΣΊΣΥΦΟΣ", "3.14", "42", "x_y", "東京", "東京タワー", "タワー", "の", "한국어", "한국", "ภาษาไทย", "ไทย", "ก",
	"ພາສາລາວ", "ភាសាខ្មែរ", "မြန်မာ", "עברית", "हिन्दी", "ﬁne", "ｆｉｎｅ", "👍", "...", "", "e\u0301te\u0301", "été",
}

func drawOptions(t *rapid.T) Options {
	return Options{
		K1:     rapid.SampledFrom([]float64{1.2, 0, 0.5, 3}).Draw(t, "k1"),
		B:      rapid.SampledFrom([]float64{0.75, 0, 1}).Draw(t, "b"),
		Prefix: rapid.SampledFrom([]int{0, 0, 3, 5}).Draw(t, "prefix"),
		Chars:  rapid.Bool().Draw(t, "chars"),
	}
}

// drawText draws a text in which some words are far more frequent than others.
func drawText(t *rapid.T, label string) string {
	words := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		n := rapid.IntRange(1, len(vocabulary)).Draw(t, "most")
		return vocabulary[rapid.IntRange(0, n-1).Draw(t, "word")]
	}), 0, 12).Draw(t, label)
	return strings.Join(words, rapid.SampledFrom([]string{" ", "", "-"}).Draw(t, "between"))
}

// checkAgainst compares results with those by the definition.
func checkAgainst(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, x *Index, w *oracle, query string, k int, accept func(id int64) bool,
) {
	t.Helper()
	want, scores := w.search(query, accept)
	got := x.Search([]byte(query), k, accept, nil)
	if len(got) != min(k, len(want)) {
		t.Fatalf("%q finds %d documents, want %d of %d", query, len(got), min(k, len(want)), len(want))
	}
	for i, h := range got {
		exact, found := scores[h.ID]
		if !found {
			t.Fatalf("%q finds document %d, which holds none of its words", query, h.ID)
		}
		if math.Abs(float64(h.Score)-exact) > 1e-5*exact {
			t.Fatalf("%q scores document %d %v, want %v", query, h.ID, h.Score, exact)
		}
		if math.Abs(float64(h.Score-want[i].Score)) > 1e-5*exact {
			t.Fatalf("%q finds a score of %v at place %d, want %v", query, h.Score, i, want[i].Score)
		}
		if i > 0 && (h.Score > got[i-1].Score || h.Score == got[i-1].Score && h.ID <= got[i-1].ID) {
			t.Fatalf("%q finds %v after %v", query, h, got[i-1])
		}
	}
}

func TestScoresAreThoseOfTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t)
		x, w := New(o), newOracle(o)
		for range rapid.IntRange(0, 60).Draw(t, "changes") {
			id := rapid.Int64Range(1, 30).Draw(t, "id")
			if old, found := w.texts[id]; found {
				x.Remove(id, []byte(old))
				w.remove(id)
			}
			if rapid.IntRange(0, 3).Draw(t, "put") > 0 {
				w.put(id, drawText(t, "text"))
				x.Add(id, []byte(w.texts[id]))
			}
		}
		query := drawText(t, "query")
		var accept func(id int64) bool
		if rapid.Bool().Draw(t, "filtered") {
			accept = func(id int64) bool { return id%3 != 0 }
		}
		checkAgainst(t, x, w, query, rapid.SampledFrom([]int{0, 1, 3, math.MaxInt}).Draw(t, "k"), accept)
	})
}

// corpus returns n texts of words with Zipf's frequencies, of very different lengths.
func corpus(r *rand.Rand, n, longest, words int) []string {
	z := rand.NewZipf(r, 1.1, 1.5, uint64(words-1))
	texts := make([]string, n)
	for i := range texts {
		var b strings.Builder
		for range 1 + r.IntN(longest) {
			fmt.Fprintf(&b, "w%d ", z.Uint64())
		}
		texts[i] = b.String()
	}
	return texts
}

// queries returns queries of one to many words, frequent ones and rare ones, some twice.
func queries(r *rand.Rand, n, words int) []string {
	z := rand.NewZipf(r, 1.1, 1.5, uint64(words-1))
	all := make([]string, n)
	for i := range all {
		var b strings.Builder
		for range []int{1, 2, 2, 3, 3, 5, 40}[i%7] {
			w := z.Uint64()
			if r.IntN(2) == 0 {
				w = uint64(r.IntN(words))
			}
			fmt.Fprintf(&b, "w%d ", w)
		}
		all[i] = b.String()
	}
	return all
}

func TestLongPostingsScoreAsDefined(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x, w := New(standard), newOracle(standard)
	for id, text := range corpus(r, 3000, 40, 400) {
		w.put(int64(id), text)
		x.Add(int64(id), []byte(text))
	}
	for i, query := range queries(r, 21, 400) {
		checkAgainst(t, x, w, query, []int{1, 10, 100, math.MaxInt}[i%4], nil)
		checkAgainst(t, x, w, query, 10, func(id int64) bool { return id%10 == 3 })
	}
}

// sameAsFresh compares results, bit by bit, with those of an index that has only ever had texts.
func sameAsFresh(t *testing.T, x *Index, texts map[int64]string, queries []string) {
	t.Helper()
	fresh := New(x.o)
	for _, id := range slices.Sorted(maps.Keys(texts)) {
		fresh.Add(id, []byte(texts[id]))
	}
	sameAs(t, x, fresh, queries)
}

func sameAs(t *testing.T, x, fresh *Index, queries []string) {
	t.Helper()
	if x.Len() != fresh.Len() || x.words != fresh.words || x.dict.len() != fresh.dict.len() {
		t.Fatalf("%d documents of %d words, %d terms; a fresh index has %d of %d, %d",
			x.Len(), x.words, x.dict.len(), fresh.Len(), fresh.words, fresh.dict.len())
	}
	if most := 4*fresh.Bytes() + 1<<16; x.Bytes() > most {
		t.Errorf("the index takes %d bytes, want at most %d", x.Bytes(), most)
	}
	for i, query := range queries {
		k := []int{10, 1, 200, math.MaxInt}[i%4]
		got, want := x.Search([]byte(query), k, nil, nil), fresh.Search([]byte(query), k, nil, nil)
		if !slices.Equal(got, want) {
			t.Fatalf("%q finds %v, a fresh index %v", query, got, want)
		}
	}
}

func TestRanksAfterChangesAreThoseOfAFreshIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const documents = 2000
	x, texts := New(standard), map[int64]string{}
	pool := corpus(r, 4*documents, 30, 500)
	asked := queries(r, 84, 500)
	for i, text := range pool {
		id := r.Int64N(documents)
		if old, found := texts[id]; found {
			x.Remove(id, []byte(old))
			delete(texts, id)
		}
		// Lengths drift, so that the average is far from what it was when the first blocks were made.
		if r.IntN(5) > 0 {
			texts[id] = strings.Repeat(text, 1+3*i/len(pool))
			x.Add(id, []byte(texts[id]))
		}
		if i%1000 == 999 {
			sameAsFresh(t, x, texts, asked)
		}
	}
	for id, text := range texts {
		if id%50 != 0 {
			x.Remove(id, []byte(text))
			delete(texts, id)
		}
	}
	sameAsFresh(t, x, texts, asked)
	for id, text := range texts {
		x.Remove(id, []byte(text))
	}
	if x.Len() != 0 || x.Bytes() > 0 {
		t.Errorf("an index without documents has %d and takes %d bytes", x.Len(), x.Bytes())
	}
}

func TestABuiltIndexIsOneAddedTo(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	texts := corpus(r, 6000, 150, 1000) // more than two batches
	fresh := New(standard)
	for id, text := range texts {
		fresh.Add(int64(id), []byte(text))
	}
	asked := queries(r, 21, 1000)
	for _, workers := range []int{1, 2, 5} {
		x := New(standard)
		x.Add(0, []byte(texts[0]))
		x.Build(len(texts), workers, func(add func(id int64, text []byte)) {
			buf := make([]byte, 0, 1000)
			for id, text := range texts {
				buf = append(buf[:0], text...)
				add(int64(id), buf)
			}
		})
		sameAs(t, x, fresh, asked)
	}
}

// TestChangesUseMemoryAgain changes documents repeatedly: the index must not grow by what is deleted.
func TestChangesUseMemoryAgain(t *testing.T) {
	unique := strings.Repeat("unique", 20)
	x, r := New(standard), rand.New(rand.NewPCG(19, 20))
	texts := corpus(r, 2000, 60, 300)
	for i := range texts {
		texts[i] += fmt.Sprint(unique, i)
		x.Add(int64(i), []byte(texts[i]))
	}
	fresh := x.Bytes()
	for round := range 4 {
		for i, text := range texts {
			x.Remove(int64(i), []byte(text))
			texts[i] = fmt.Sprintf("%s%d", text[:strings.LastIndexByte(text, ' ')+1]+unique, round*len(texts)+i)
			x.Add(int64(i), []byte(texts[i]))
			if i%100 == 0 && x.Bytes() > 13*fresh/10 {
				t.Fatalf("after %d changes the index takes %d bytes, at first %d", round*len(texts)+i, x.Bytes(), fresh)
			}
		}
	}
	for i := range x.dict.terms {
		if e := &x.dict.terms[i]; e.df > 0 && x.held(e) > int(e.df)+max(minGone, int(e.df)/2) {
			t.Errorf("a term of %d documents has %d postings", e.df, x.held(e))
		}
	}
}

func TestBlocksOfEveryWidthScoreAsDefined(t *testing.T) {
	x, w := New(standard), newOracle(standard)
	put := func(id int64, text string) {
		w.put(id, text)
		x.Add(id, []byte(text))
	}
	// A term that is rare at first, and then in each document, up to more often than a byte counts.
	put(0, "often")
	for id := int64(1); id < 66_000; id++ {
		put(id, "other")
	}
	for id := int64(66_000); id < 66_600; id++ {
		put(id, strings.Repeat("often ", int(id%150)*2+1)+"once")
	}
	for _, query := range []string{"often", "once often", "other often once"} {
		checkAgainst(t, x, w, query, 500, nil)
		checkAgainst(t, x, w, query, 3, nil)
	}
}

// TestBoundsHoldWhenDocumentsBecomeLonger has the best document in a block that is made while all are short.
func TestBoundsHoldWhenDocumentsBecomeLonger(t *testing.T) {
	const best = 200
	x, w := New(standard), newOracle(standard)
	for id := int64(0); id < 3000; id++ {
		text := "word other"
		switch {
		case id == best:
			text = "word word"
		case id > 500:
			text = strings.Repeat("long ", 200)
		}
		w.put(id, text)
		x.Add(id, []byte(text))
	}
	checkAgainst(t, x, w, "word", 1, nil)
	if got := x.Search([]byte("word"), 1, nil, nil); got[0].ID != best {
		t.Errorf("document %d is best, want %d", got[0].ID, best)
	}
}

func TestTiesGoToTheLowerID(t *testing.T) {
	x := New(standard)
	for _, id := range rand.Perm(1000) {
		x.Add(int64(id), []byte("same words"))
	}
	for _, query := range []string{"same", "same words", "words same same"} {
		for i, h := range x.Search([]byte(query), 20, nil, nil) {
			if h.ID != int64(i) {
				t.Fatalf("%q finds document %d at place %d", query, h.ID, i)
			}
		}
	}
}

func TestWhatIsAppendedTo(t *testing.T) {
	x := New(standard)
	x.Add(1, []byte("a word"))
	before := []index.Hit{{ID: 9}}
	got := x.Search([]byte("word"), 5, nil, before)
	if len(got) != 2 || got[0].ID != 9 || got[1].ID != 1 {
		t.Errorf("search appends to %v and returns %v", before, got)
	}
	for _, query := range []string{"", "?!", "absent"} {
		if got := x.Search([]byte(query), 5, nil, nil); len(got) != 0 {
			t.Errorf("%q finds %v", query, got)
		}
	}
}
