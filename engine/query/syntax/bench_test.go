package syntax

import (
	"fmt"
	"strings"
	"testing"
)

// longPut is a put of n documents of five fields.
func longPut(n int) string {
	var b strings.Builder
	b.WriteString("put notes [")
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, `{id: %d, title: "note number %d", year: 2024, score: 2.5, tags: ['a', 'b']}`, i+1, i)
	}
	return b.String() + "]"
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"by id", "get c where id = $1"},
		{"page", "get notes where year >= 2020 and lang = 'en' order year desc limit 20 offset 40 select id, title"},
		{"put of one", longPut(1)},
		{"put of 1000", longPut(1000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(c.text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestParsingAllocatesLittle(t *testing.T) {
	for _, c := range []struct {
		name, text string
		most       float64
	}{
		{"a get by id", "get c where id = $1", 7},
		{"a document of five fields, in a put of many", longPut(1000), 3.3 * 1000},
	} {
		got := testing.AllocsPerRun(100, func() {
			if _, err := Parse(c.text); err != nil {
				t.Fatal(err)
			}
		})
		if got > c.most {
			t.Errorf("%s takes %v allocations, want at most %v", c.name, got, c.most)
		}
	}
}
