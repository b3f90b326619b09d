// Package index holds what is derived from a collection's documents to find them: the place of each id ([IDs]), which
// documents have a value ([Hash]), the order of the documents by a value ([Sorted]) and which have a weight at an index
// of a sparse vector ([Inverted]).
//
// All of them keep their entries in sorted pages without pointers, under a flat directory: the garbage collector sees
// one object a page, an entry costs little more than its sixteen bytes, and a collection of ten documents costs one
// page that is just large enough for them.
//
// Nothing here starts a goroutine or takes a lock. Any number of goroutines may read while none writes, which the
// database's lock ensures. A callback must not change the index it is called from.
package index

// pageSize is the largest number of entries of a page.
const pageSize = 512

// smallest is the capacity of a first page; it doubles as it fills.
const smallest = 4

// mergeAt is the number of entries below which a page is merged with a neighbour that has room for it.
const mergeAt = pageSize / 4

// mergedSize is the largest page that a merge makes, so that the next few insertions do not split it again.
const mergedSize = pageSize * 3 / 4

// filled is how full a bulk load makes its pages.
const filled = pageSize * 7 / 8

// room returns the capacity for a page of n entries that is about to grow by one.
func room(n int) int { return min(max(2*n, smallest), pageSize) }

// lastNotAfter returns the last place of ascending firsts whose value is not greater than key, 0 if all are greater. It
// has no branch that depends on the values, because a search of a directory would mispredict half of them.
func lastNotAfter[T int64 | uint64](firsts []T, key T) int {
	base := 0
	for n := len(firsts); n > 1; {
		half := n >> 1
		if firsts[base+half] <= key {
			base += half
		}
		n -= half
	}
	return base
}
