package index

// Hit is a document that a scored index found. Higher scores are better for text, dot products, cosines and sparse
// weights; lower scores are better for an L2 distance.
type Hit struct {
	ID    int64
	Score float32
}

// TopK keeps the best k of the hits that are pushed, of equal scores those with the lower id. The zero value keeps
// none: use [NewTopK].
type TopK struct {
	heap      []Hit // the worst on top
	k         int
	ascending bool
}

// NewTopK returns a TopK of the best k hits, k at least 0, that uses buf's memory first. ascending reports whether
// lower scores are better.
func NewTopK(k int, ascending bool, buf []Hit) TopK {
	return TopK{heap: buf[:0], k: k, ascending: ascending}
}

// Reset drops all hits and keeps the best k from now on, in the same memory.
func (t *TopK) Reset(k int, ascending bool) { *t = NewTopK(k, ascending, t.heap) }

// Better reports whether a comes before b.
func (t *TopK) Better(a, b Hit) bool {
	if a.Score != b.Score {
		return (a.Score < b.Score) == t.ascending
	}
	return a.ID < b.ID
}

// Len returns the number of hits kept.
func (t *TopK) Len() int { return len(t.heap) }

// Full reports whether a hit must be better than [TopK.Worst] to be kept.
func (t *TopK) Full() bool { return len(t.heap) >= t.k }

// Takes reports whether [TopK.Push] would keep h.
func (t *TopK) Takes(h Hit) bool {
	return len(t.heap) < t.k || t.k > 0 && t.Better(h, t.heap[0])
}

// Worst returns the hit that the next better one replaces. There must be one.
func (t *TopK) Worst() Hit { return t.heap[0] }

// Push keeps h if it is among the best so far, and reports whether it did.
func (t *TopK) Push(h Hit) bool {
	if len(t.heap) < t.k {
		t.heap = append(t.heap, h)
		t.up(len(t.heap) - 1)
		return true
	}
	if !t.Takes(h) {
		return false
	}
	t.heap[0] = h
	t.siftDown(len(t.heap))
	return true
}

// Append appends the hits to dst, best first, and empties t.
func (t *TopK) Append(dst []Hit) []Hit {
	for n := len(t.heap) - 1; n > 0; n-- {
		t.heap[0], t.heap[n] = t.heap[n], t.heap[0]
		t.siftDown(n)
	}
	dst = append(dst, t.heap...)
	t.heap = t.heap[:0]
	return dst
}

func (t *TopK) up(at int) {
	h := t.heap[at]
	for at > 0 {
		parent := (at - 1) / 2
		if !t.Better(t.heap[parent], h) {
			break
		}
		t.heap[at] = t.heap[parent]
		at = parent
	}
	t.heap[at] = h
}

// siftDown moves the top of the first n hits to its place in the heap.
func (t *TopK) siftDown(n int) {
	h := t.heap[0]
	at := 0
	for {
		child := 2*at + 1
		if child >= n {
			break
		}
		if child+1 < n && t.Better(t.heap[child], t.heap[child+1]) {
			child++
		}
		if !t.Better(h, t.heap[child]) {
			break
		}
		t.heap[at] = t.heap[child]
		at = child
	}
	t.heap[at] = h
}
