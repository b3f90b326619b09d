// Package index holds what is derived from a collection's documents to find them: where each id is ([IDs]), which documents
// hold a value ([Hash]), the order of the documents by a value ([Sorted]) and which have a weight at an index of a sparse vector
// ([Inverted]).
//
// All of them keep their entries in sorted pages that hold no pointers, under a flat directory: the garbage collector sees one
// object a page, an entry costs little more than its sixteen bytes, and a collection of ten documents costs a page that is
// just large enough for them.
//
// Nothing here starts a goroutine or takes a lock. Any number of goroutines may read as long as none writes; the database's
// lock sees to that. What is called back while an index is walked must not change it.
package index

// pageSize is the largest number of entries of a page.
const pageSize = 512

// smallest is the room of a first page; it doubles as it fills.
const smallest = 4

// mergeAt is the number of entries below which a page is put together with a neighbour that has room for it.
const mergeAt = pageSize / 4

// mergedSize is the largest page a merge makes, so that the next few insertions do not split it again.
const mergedSize = pageSize * 3 / 4

// filled is how full a bulk load makes its pages.
const filled = pageSize * 7 / 8

// room is the capacity for a page of n entries that is about to grow by one.
func room(n int) int { return min(max(2*n, smallest), pageSize) }

// lastNotAfter is the last place of ascending firsts whose value is not greater than key, 0 where all are greater.
// It has no branch that depends on the values, because a search of a directory would mispredict half of them.
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
