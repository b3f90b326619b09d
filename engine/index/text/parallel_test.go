package text

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"fenec/engine/index"
)

func TestManySearchAtOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	x := New(standard)
	for id, text := range corpus(r, 3000, 40, 300) {
		x.Add(int64(id), []byte(text))
	}
	asked := queries(r, 28, 300)
	var alone [][]index.Hit
	for _, query := range asked {
		alone = append(alone, x.Search([]byte(query), 20, nil, nil))
	}
	var searchers sync.WaitGroup
	for from := range 4 {
		searchers.Go(func() {
			for i := range asked {
				i = (i + 7*from) % len(asked)
				if got := x.Search([]byte(asked[i]), 20, nil, nil); !slices.Equal(got, alone[i]) {
					t.Errorf("%q beside others finds %v, alone %v", asked[i], got, alone[i])
				}
			}
		})
	}
	searchers.Wait()
}

func TestManyTermsAreFewObjects(t *testing.T) {
	var before, after runtime.MemStats
	for range 3 { // pools keep their items through two collections
		runtime.GC()
	}
	runtime.ReadMemStats(&before)
	x := New(standard)
	r := rand.New(rand.NewPCG(15, 16))
	for id, text := range corpus(r, 5000, 40, 100_000) {
		x.Add(int64(id), []byte(text))
	}
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&after)
	objects := int64(after.HeapObjects) - int64(before.HeapObjects)
	if objects > 1000 {
		t.Errorf("%d terms are %d objects on the heap", x.dict.len(), objects)
	}
	held := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	if got := x.Bytes(); got < held*8/10 || got > held*12/10 {
		t.Errorf("the index says it holds %d bytes, the heap grew by %d", got, held)
	}
}
