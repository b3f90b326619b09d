package index

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestTopKIsTheHeadOfTheSortedHits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOf(rapid.Float32Range(-3, 3)).Draw(t, "scores")
		k := rapid.IntRange(0, 12).Draw(t, "k")
		ascending := rapid.Bool().Draw(t, "ascending")
		top := NewTopK(k, ascending, make([]Hit, 0, 4))
		want := make([]Hit, 0, len(scores))
		for i, s := range scores {
			if i%3 == 0 {
				s = float32(int(s)) // ties
			}
			h := Hit{ID: int64((i * 7) % 101), Score: s}
			top.Push(h)
			want = append(want, h)
		}
		slices.SortFunc(want, func(a, b Hit) int {
			order := cmp.Compare(b.Score, a.Score)
			if ascending {
				order = -order
			}
			return cmp.Or(order, cmp.Compare(a.ID, b.ID))
		})
		want = want[:min(k, len(want))]
		if got := top.Append(nil); !slices.Equal(got, want) {
			t.Fatalf("top %d ascending=%v is %v, want %v", k, ascending, got, want)
		}
	})
}
