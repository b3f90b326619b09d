package fail

import "testing"

func TestThousandsAreSetApart(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1 000", 812_000: "812 000", 1_234_567: "1 234 567"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}
