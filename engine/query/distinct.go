package query

import (
	"bytes"
	"hash/maphash"

	"fenec/engine/doc"
)

// distinctTally counts the distinct values of a column that are not null, in an open-addressed table of the values of all
// groups. A value refers to the bytes of the first document that holds it.
type distinctTally struct {
	column *column
	plain  bool // of the column
	counts []int64
	table  []distinctSlot // a power of two of them, at most half in use
	used   int
	grown  *bool // set when the table grows, so that its size is counted
}

type distinctSlot struct {
	hash  uint64 // of group and value
	group int32  // counted from 1; 0 if the slot is free
	value doc.Raw
}

func newDistinctTally(c *column, grown *bool) *distinctTally {
	return &distinctTally{column: c, plain: c.plain(), table: make([]distinctSlot, firstSlots), grown: grown}
}

func (t *distinctTally) bytes() int64 { return bytesOf(t.counts) + bytesOf(t.table) }

func (t *distinctTally) open() { t.counts = append(t.counts, 0) }

func (t *distinctTally) add(group int, d doc.Document) {
	value := t.column.raw(d)
	if value.IsNull() {
		return
	}
	hash := t.hash(group, value)
	mask := uint64(len(t.table) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		slot := &t.table[i]
		if slot.group == 0 {
			*slot = distinctSlot{hash, int32(group) + 1, value}
			break
		}
		if slot.hash == hash && int(slot.group) == group+1 && t.equal(slot.value, value) {
			return
		}
	}
	t.counts[group]++
	if t.used++; 2*t.used >= len(t.table) {
		t.grow()
	}
}

// hash mixes the hash of a value with its group, so that a value which all groups hold does not fill one long run of
// slots. The seed is random, so that values cannot be chosen to collide.
func (t *distinctTally) hash(group int, value doc.Raw) uint64 {
	if !t.plain {
		return maphash.Comparable(groupSeed, [2]uint64{uint64(group), doc.Hash(value.Value())})
	}
	return maphash.Bytes(groupSeed, value) ^ maphash.Comparable(groupSeed, group)
}

func (t *distinctTally) equal(a, b doc.Raw) bool {
	return bytes.Equal(a, b) || !t.plain && doc.Equal(a.Value(), b.Value())
}

// grow doubles the table.
func (t *distinctTally) grow() {
	old := t.table
	*t.grown = true
	t.table = make([]distinctSlot, 2*len(old))
	mask := uint64(len(t.table) - 1)
	for _, slot := range old {
		if slot.group == 0 {
			continue
		}
		i := slot.hash & mask
		for t.table[i].group != 0 {
			i = (i + 1) & mask
		}
		t.table[i] = slot
	}
}

func (t *distinctTally) value(group int) (doc.Value, bool) {
	return doc.IntValue(t.counts[group]), true
}
