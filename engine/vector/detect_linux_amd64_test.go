package vector

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheKernelsAreTheBestTheProcessorHas compares what is detected with what Linux reports about the processor.
func TestTheKernelsAreTheBestTheProcessorHas(t *testing.T) {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	flags := strings.Fields(regexp.MustCompile(`(?m)^flags\s*:.*$`).FindString(string(info)))
	has := func(names ...string) bool {
		for _, name := range names {
			if !slices.Contains(flags, name) {
				return false
			}
		}
		return true
	}
	want := generic
	if has("avx2", "fma", "bmi2") {
		want = avx2
		if has("avx512f", "avx512bw", "avx512dq", "avx512vl") {
			want = avx512
		}
	}
	if best != want {
		t.Errorf("the kernels are of kind %d, the processor's %d", best, want)
	}
}
