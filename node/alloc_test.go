//go:build !race

package node

import "testing"

// The race detector has a sync.Pool forget things, so this holds without it only.
func TestAGetByIDAllocatesNextToNothing(t *testing.T) {
	r := byID(t)
	l := dial(t, r.url[len("http://"):], oneByID)
	l.ask(t)
	const most = 5
	if n := testing.AllocsPerRun(500, func() { l.ask(t) }); n > most {
		t.Errorf("a request allocates %.1f times, at most %d are meant to", n, most)
	}
}
