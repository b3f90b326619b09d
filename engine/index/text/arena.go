package text

import (
	"math/bits"
	"unsafe"
)

// arena allocates and frees small pieces of memory within a few large pages without pointers. A piece is identified by
// its ref, which counts units from the start of the first page; its user knows its size. Freed room is reused for
// pieces of its class. The garbage collector frees it only with the arena.
type arena struct {
	pages [][]uint64 // pageUnits long, except the first, which grows to that, and pieces that need more
	used  int        // units of the last page
	free  []uint32   // by class, one more than the ref of free room, which holds the next one
}

const (
	unit      = 8       // bytes
	pageUnits = 1 << 15 // 256 KiB
	firstPage = 32      // units of a first page; it doubles
)

// classOf returns the class of a size in bytes and the units of its room. Up to eight units each number of units has
// its own class; above there are four classes to a power of two.
func classOf(size int) (class, units int) {
	n := (size + unit - 1) / unit
	if n <= 8 {
		return n, n
	}
	shift := bits.Len(uint(n-1)) - 3
	steps := (n-1)>>shift + 1 // 5 to 8
	return 4*shift + steps, steps << shift
}

// room returns the units that a piece of n bytes takes: a piece grows without moving while that does not change.
func room(size int) int {
	_, units := classOf(size)
	return units
}

// alloc returns room for size bytes, at least one. Its content is undefined.
func (a *arena) alloc(size int) uint32 {
	class, n := classOf(size)
	if class < len(a.free) && a.free[class] != 0 {
		ref := a.free[class] - 1
		a.free[class] = uint32(a.pages[ref/pageUnits][ref%pageUnits])
		return ref
	}
	last := len(a.pages) - 1
	if last >= 0 && a.used+n <= len(a.pages[last]) {
		a.used += n
		return uint32(last*pageUnits + a.used - n)
	}
	switch {
	case last == 0 && a.used+n <= pageUnits:
		grown := make([]uint64, min(max(2*len(a.pages[0]), a.used+n), pageUnits))
		copy(grown, a.pages[0])
		a.pages[0] = grown
	case last < 0 && n <= pageUnits:
		a.pages = append(a.pages, make([]uint64, max(firstPage, n)))
		last, a.used = 0, 0
	case n <= pageUnits:
		a.pages = append(a.pages, make([]uint64, pageUnits))
		last, a.used = last+1, 0
	default:
		return a.allocLarge(n)
	}
	a.used += n
	return uint32(last*pageUnits + a.used - n)
}

// allocLarge returns room that is longer than a page: one slice, which takes the numbers of as many pages as it is
// long.
func (a *arena) allocLarge(n int) uint32 {
	ref := len(a.pages) * pageUnits
	spanned := (n + pageUnits - 1) / pageUnits
	a.pages = append(a.pages, make([]uint64, n))
	a.pages = append(a.pages, make([][]uint64, spanned-1)...)
	a.pages = append(a.pages, make([]uint64, pageUnits))
	a.used = 0
	return uint32(ref)
}

// release frees the room of a piece.
func (a *arena) release(ref uint32, size int) {
	class, _ := classOf(size)
	for len(a.free) <= class {
		a.free = append(a.free, 0)
	}
	a.pages[ref/pageUnits][ref%pageUnits] = uint64(a.free[class])
	a.free[class] = ref + 1
}

// at returns a piece of memory. It is valid until the next alloc.
func (a *arena) at(ref uint32, size int) []byte {
	page, from := a.pages[ref/pageUnits], int(ref%pageUnits)
	room := page[from : from+(size+unit-1)/unit]
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(room))), size)
}

// numbers returns the memory that begins at a unit, or at a multiple of T's size after one, as numbers.
func numbers[T uint16 | uint32](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

// bytes returns the memory held in bytes.
func (a *arena) bytes() int64 {
	n := int64(cap(a.pages))*24 + int64(cap(a.free))*4
	for _, page := range a.pages {
		n += int64(len(page)) * unit
	}
	return n
}
