//go:build !race

package feed

import (
	"testing"

	"fenec/engine"
)

// The race detector makes sync.Pool drop items at random.
func TestAPutAllocatesNoMoreWithAFeed(t *testing.T) {
	put := func(feed engine.Feed) float64 {
		p := newPutter(t, t.TempDir()+"/t.fenec", feed)
		p.put(t, 5000) // caches the statement and begins a segment
		return testing.AllocsPerRun(1000, func() { p.put(t, 1) })
	}
	if without, with := put(nil), put(New(DefaultKeep)); with > without {
		t.Errorf("a put allocates %.1f times with a feed and %.1f without", with, without)
	}
}
