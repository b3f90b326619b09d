package boottime

import (
	"testing"
	"time"
)

func TestTheClockAdvancesAsTheMonotonicOne(t *testing.T) {
	outer := time.Now()
	a := Now()
	inner := time.Now()
	for time.Since(inner) < 2*time.Millisecond {
	}
	least := time.Since(inner)
	b := Now()
	most := time.Since(outer)
	const granularity = time.Millisecond
	if a <= 0 || b-a < least-granularity || b-a > most+granularity {
		t.Errorf("it advanced by %s, want from %s to %s", b-a, least, most)
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		Now()
	}
}
