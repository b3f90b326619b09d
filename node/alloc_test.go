//go:build !race

package node

import "testing"

// TestAGetByIDAllocatesAtMostFiveTimes runs without the race detector only, which drops items of a sync.Pool.
func TestAGetByIDAllocatesAtMostFiveTimes(t *testing.T) {
	r := byID(t)
	l := dial(t, r.url[len("http://"):], oneByID)
	l.ask(t)
	const most = 5
	if n := testing.AllocsPerRun(500, func() { l.ask(t) }); n > most {
		t.Errorf("got %.1f allocations a request, want at most %d", n, most)
	}
}
