//go:build !race

package index

import "testing"

// Under the race detector a sync.Pool drops items at random, so this test runs only without it.
func TestSearchTakesNoMemory(t *testing.T) {
	x, query := spread(3000)
	dst := x.Search(query, 10, nil, nil)
	if n := testing.AllocsPerRun(50, func() { dst = x.Search(query, 10, nil, dst[:0]) }); n > 0.5 {
		t.Errorf("a search takes %v allocations, want none", n)
	}
}
