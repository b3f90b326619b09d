package hnsw

// table finds nodes by the hashes of their vectors: open addressing with linear probing. A node's home slot is proportional to
// its hash, so that the table may have any size.
type table struct {
	slots []uint32 // a node plus 1, or 0 for none
	n     int
}

const smallestTable = 8

func (t *table) bytes() int64 { return int64(cap(t.slots)) * 4 }

func (t *table) home(h uint32) int { return int(uint64(h) * uint64(len(t.slots)) >> 32) }

func (t *table) next(at int) int {
	if at++; at == len(t.slots) {
		return 0
	}
	return at
}

// each calls fn with each node whose hash is h until fn returns false.
func (t *table) each(hashes []uint32, h uint32, fn func(node uint32) bool) {
	if t.n == 0 {
		return
	}
	for at := t.home(h); t.slots[at] != 0; at = t.next(at) {
		if node := t.slots[at] - 1; hashes[node] == h && !fn(node) {
			return
		}
	}
}

// add adds a node that is not in the table.
func (t *table) add(hashes []uint32, node uint32) {
	if 8*(t.n+1) > 7*len(t.slots) {
		t.resize(hashes, max(len(t.slots)*3/2, smallestTable))
	}
	t.put(hashes, node)
	t.n++
}

func (t *table) put(hashes []uint32, node uint32) {
	at := t.home(hashes[node])
	for t.slots[at] != 0 {
		at = t.next(at)
	}
	t.slots[at] = node + 1
}

// resize changes the size of the table, which must have room for its nodes.
func (t *table) resize(hashes []uint32, size int) {
	old := t.slots
	t.slots = make([]uint32, size)
	for _, s := range old {
		if s != 0 {
			t.put(hashes, s-1)
		}
	}
}

// reserve makes room for n more nodes.
func (t *table) reserve(hashes []uint32, n int) {
	if size := (t.n+n)*8/7 + smallestTable; size > len(t.slots) {
		t.resize(hashes, size)
	}
}

// remove removes a node that is in the table, and moves those after it that could not be found from their homes any more.
func (t *table) remove(hashes []uint32, node uint32) {
	gap := t.home(hashes[node])
	for t.slots[gap] != node+1 {
		gap = t.next(gap)
	}
	for at := t.next(gap); t.slots[at] != 0; at = t.next(at) {
		home := t.home(hashes[t.slots[at]-1])
		if t.between(home, gap, at) {
			t.slots[gap] = t.slots[at]
			gap = at
		}
	}
	t.slots[gap] = 0
	t.n--
}

// between reports whether gap is on the way from home to at.
func (t *table) between(home, gap, at int) bool {
	n := len(t.slots)
	return (gap-home+n)%n < (at-home+n)%n
}
