package query

import (
	"math"
	"slices"
	"testing"
)

func TestASetOfIDsAscends(t *testing.T) {
	for _, ids := range [][]int64{
		{},
		{7},
		{3, 1, 2, 64, 65, 128, 1},
		{1, math.MaxInt64, 5, math.MaxInt64 - 1, 5},
		{100, 100 + widest*2, 100},
	} {
		want := slices.Compact(slices.Sorted(slices.Values(ids)))
		if ascending(ids) != slices.Equal(ids, want) {
			t.Errorf("%v: ascending is %v", ids, ascending(ids))
		}
		var s idSet
		s.make(ids)
		if got := s.appendIDs([]int64{-7}); got[0] != -7 || !slices.Equal(got[1:], want) {
			t.Errorf("the set of %v is %v, want %v", ids, got[1:], want)
		}
		for _, id := range append(ids, 0, 4, 66, math.MaxInt64-2) {
			if s.has(id) != slices.Contains(ids, id) {
				t.Errorf("the set of %v has %d: %v", ids, id, s.has(id))
			}
		}
	}
	if ascending([]int64{1, 1}) {
		t.Error("a list with an id twice ascends")
	}
}
