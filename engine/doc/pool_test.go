//go:build !race

package doc

import "testing"

// Under the race detector a sync.Pool drops items at random, so this test runs only without it.
func TestReadingJSONAllocatesNothing(t *testing.T) {
	dst := make([]byte, 0, 1024)
	for _, s := range []string{noteJSON, `{"unsorted":{"b":1,"a":"x\n"},"decimal":1e400,"long":"\u00e9"}`} {
		text := []byte(s)
		if n := testing.AllocsPerRun(100, func() {
			if _, err := ParseJSON(dst, text); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", s, n)
		}
	}
}
