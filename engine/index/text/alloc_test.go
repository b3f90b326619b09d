//go:build !race

package text

import (
	"math/rand/v2"
	"testing"

	"fenec/engine/index"
)

// TestASearchAllocatesNothing runs without the race detector, under which a sync.Pool drops items at random.
func TestASearchAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	x := New(standard)
	for id, text := range corpus(r, 3000, 40, 300) {
		x.Add(int64(id), []byte(text))
	}
	dst := make([]index.Hit, 0, 100)
	for _, query := range []string{"w1", "w1 w2", "w9 w40 w200", "Ünïcödé 東京 w3"} {
		text := []byte(query)
		if n := testing.AllocsPerRun(100, func() { dst = x.Search(text, 100, nil, dst[:0]) }); n >= 1 {
			t.Errorf("a search for %q allocates %v times", query, n)
		}
	}
}
