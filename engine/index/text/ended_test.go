package text

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"fenec/engine/index"

	"pgregory.net/rapid"
)

// mortal is an index and its documents, some of which have an end.
type mortal struct {
	x    *Index
	docs map[int64]mortalText
}

type mortalText struct {
	text string
	end  int64 // never for none
}

const never = math.MaxInt64

func (m *mortal) put(id int64, d mortalText) {
	m.remove(id)
	m.docs[id] = d
	m.x.Add(id, []byte(d.text))
	m.setEnd(id, d.end)
}

func (m *mortal) setEnd(id, end int64) {
	d := m.docs[id]
	d.end = end
	m.docs[id] = d
	if end != never {
		m.x.AddEnd(end, []byte(d.text))
	}
}

// moveEnd changes only a document's end.
func (m *mortal) moveEnd(id, end int64) {
	d, found := m.docs[id]
	if !found {
		return
	}
	if d.end != never {
		m.x.RemoveEnd(d.end, []byte(d.text))
	}
	m.setEnd(id, end)
}

func (m *mortal) remove(id int64) {
	d, found := m.docs[id]
	if !found {
		return
	}
	if d.end != never {
		m.x.RemoveEnd(d.end, []byte(d.text))
	}
	m.x.Remove(id, []byte(d.text))
	delete(m.docs, id)
}

// at returns the documents that have ended at a time.
func (m *mortal) at(now int64) Ended {
	return Ended{Until: now, Between: func(after, until int64, fn func(text []byte)) bool {
		for _, d := range m.docs {
			if d.end > after && d.end <= until {
				fn([]byte(d.text))
			}
		}
		return true
	}}
}

func (m *mortal) search(t rapid.TB, now int64, query string, k int) []index.Hit {
	t.Helper()
	hits, ok := m.x.SearchWithout(m.at(now), []byte(query), k, func(id int64) bool { return m.docs[id].end > now }, nil)
	if !ok {
		t.Fatalf("a search at %d does not know what has ended", now)
	}
	return hits
}

// fresh returns an index of the documents that have not ended.
func (m *mortal) fresh(now int64) *Index {
	x := New(m.x.o)
	for _, id := range slices.Sorted(maps.Keys(m.docs)) {
		if d := m.docs[id]; d.end > now {
			x.Add(id, []byte(d.text))
		}
	}
	return x
}

func TestScoresAreThoseOfAnIndexWithoutWhatHasEnded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &mortal{x: New(drawOptions(t)), docs: map[int64]mortalText{}}
		id, end := rapid.Int64Range(1, 20), rapid.OneOf(rapid.Int64Range(0, 9), rapid.Just[int64](never))
		t.Repeat(map[string]func(*rapid.T){
			"put":      func(t *rapid.T) { m.put(id.Draw(t, "id"), mortalText{drawText(t, "text"), end.Draw(t, "end")}) },
			"remove":   func(t *rapid.T) { m.remove(id.Draw(t, "id")) },
			"move end": func(t *rapid.T) { m.moveEnd(id.Draw(t, "id"), end.Draw(t, "end")) },
			"stop": func(t *rapid.T) {
				e := m.at(rapid.Int64Range(0, 9).Draw(t, "now"))
				between := e.Between
				e.Between = func(after, until int64, fn func(text []byte)) bool { between(after, until, fn); return false }
				if hits, ok := m.x.SearchWithout(e, []byte("fox"), 5, nil, nil); ok && e.Until != m.x.ended.until {
					t.Fatalf("a search that does not know all that has ended finds %v", hits)
				}
			},
			"forget": func(*rapid.T) { m.x.ForgetEnds() },
			"": func(t *rapid.T) {
				now := rapid.Int64Range(-1, 10).Draw(t, "now")
				query, k := drawText(t, "query"), rapid.SampledFrom([]int{1, 3, math.MaxInt}).Draw(t, "k")
				got, want := m.search(t, now, query, k), m.fresh(now).Search([]byte(query), k, nil, nil)
				if !slices.Equal(got, want) {
					t.Fatalf("at %d %q finds %v, an index without what has ended %v", now, query, got, want)
				}
			},
		})
	})
}

// TestAClockThatMovesLeavesTheRanksOfAFreshIndex is TestRanksAfterChangesAreThoseOfAFreshIndex with documents that end, a clock
// that goes forward and sometimes back, and blocks of postings that were made before.
func TestAClockThatMovesLeavesTheRanksOfAFreshIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	const documents = 2000
	m := &mortal{x: New(standard), docs: map[int64]mortalText{}}
	pool := corpus(r, 3*documents, 30, 500)
	asked := queries(r, 84, 500)
	now := int64(0)
	for i, text := range pool {
		id, end := r.Int64N(documents), int64(never)
		if r.IntN(2) == 0 {
			end = now + r.Int64N(1000) - 100
		}
		switch r.IntN(6) {
		case 0:
			m.remove(id)
		case 1:
			m.moveEnd(id, end)
		default:
			m.put(id, mortalText{text, end})
		}
		if now++; i%700 == 0 {
			now = max(0, now-100)
		}
		if i%50 == 0 {
			m.search(t, now-r.Int64N(3), asked[i/50%len(asked)], 10)
		}
		if i%1000 != 999 {
			continue
		}
		fresh := m.fresh(now)
		if ended := m.x.Len() - fresh.Len(); ended < 100 {
			t.Fatalf("%d documents have ended, want hundreds", ended)
		}
		for i, query := range asked {
			k := []int{10, 1, 200, math.MaxInt}[i%4]
			got, want := m.search(t, now, query, k), fresh.Search([]byte(query), k, nil, nil)
			if !slices.Equal(got, want) {
				t.Fatalf("%q finds %v, an index without what has ended %v", query, got, want)
			}
		}
	}
	now = never - 1
	if hits := m.search(t, -1, "w0", 1); len(hits) != 1 {
		t.Errorf("before all ends %v is found", hits)
	}
	if got, all := m.x.ended.live, m.x.Len(); got != 0 || all == 0 || m.x.ended.bytes() != 0 {
		t.Errorf("of %d documents %d are counted as ended before all ends, in %d bytes", all, got, m.x.ended.bytes())
	}
}

// TestSearchesAtDifferentTimes runs them concurrently, each with the statistics of its own time.
func TestSearchesAtDifferentTimes(t *testing.T) {
	m := &mortal{x: New(standard), docs: map[int64]mortalText{}}
	for id := range int64(300) {
		m.put(id+1, mortalText{fmt.Sprintf("common word%d", id%7), id / 10})
	}
	var want [30][]index.Hit
	for now := range want {
		want[now] = m.fresh(int64(now)).Search([]byte("common word3"), 20, nil, nil)
	}
	done := make(chan string)
	for worker := range 4 {
		go func() {
			for i := range 300 {
				now := int64((i*7 + worker*11) % len(want))
				got, _ := m.x.SearchWithout(m.at(now), []byte("common word3"), 20, func(id int64) bool { return m.docs[id].end > now }, nil)
				if !slices.Equal(got, want[now]) {
					done <- fmt.Sprintf("at %d it finds %v, want %v", now, got, want[now])
					return
				}
			}
			done <- ""
		}()
	}
	for range 4 {
		if failed := <-done; failed != "" {
			t.Error(failed)
		}
	}
}
