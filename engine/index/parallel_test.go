package index

import (
	"sync"
	"testing"

	"fenec/engine/collation"
	"fenec/engine/doc"
)

func TestManyReadAtOnce(t *testing.T) {
	const n = 3000
	var ids IDs
	var hash Hash
	text := func(id int64) doc.Value { return doc.TextValue(longText(id % 100)) }
	sorted := NewSorted(collation.None, text)
	for id := int64(1); id <= n; id++ {
		ids.Set(2*id, uint64(id))
		hash.Add(doc.Hash(text(id)), id)
		sorted.Add(text(id), id)
	}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for id := int64(1); id <= n; id += 7 {
				if ref, ok := ids.Get(2 * id); !ok || ref != uint64(id) {
					t.Errorf("id %d is at %d %t", 2*id, ref, ok)
				}
				if got := hash.Count(doc.Hash(text(id))); got != n/100 {
					t.Errorf("%d documents share a hash, want %d", got, n/100)
				}
				at := Bound{Value: text(id), Inclusive: true}
				if got := sorted.Count(at, at); got != n/100 {
					t.Errorf("%d documents share a value, want %d", got, n/100)
				}
			}
		})
	}
	readers.Wait()
}

// longText returns a text; the first seven bytes are the same for all n.
func longText(n int64) []byte { return doc.AppendTimestamp(nil, n*86_400_000) }
