package query

import (
	"bytes"
	"hash/maphash"

	"fenec/engine/doc"
	"fenec/engine/fail"
)

// grouping sorts a run's rows into groups: an open-addressed table from the hash of a key to the group, and a
// tally for each aggregate with a slot for each group. Nothing is allocated for a row, only for a group.
type grouping struct {
	plan    *groupPlan
	plain   bool        // keys are equal exactly if their encoded bytes are
	table   []groupSlot // a power of two of them, at most half in use
	groups  int
	raws    []doc.Raw   // the groups' keys if plain, in the order they were found; bytes of documents
	keys    []doc.Value // the same if not plain
	tallies []tally
	grown   bool // the table has grown since the memory of the groups was counted
}

type groupSlot struct {
	hash  uint64
	group int32 // counted from 1; 0 if the slot is free
}

const firstSlots = 64

// groupSeed is random, so that keys cannot be chosen to share a hash.
var groupSeed = maphash.MakeSeed()

func newGrouping(g *groupPlan) *grouping {
	s := &grouping{plan: g, tallies: make([]tally, len(g.aggregates))}
	for i := range g.aggregates {
		s.tallies[i] = g.aggregates[i].tally(&s.grown)
	}
	if g.key == nil {
		s.keys = append(s.keys, doc.Value{})
		s.open()
		return s
	}
	s.table = make([]groupSlot, firstSlots)
	s.plain = g.key.plain()
	return s
}

// plain reports whether the column's values are equal exactly if their encoded bytes are.
func (c *column) plain() bool {
	switch c.typ.Kind {
	case doc.TypeBool, doc.TypeInt, doc.TypeTimestamp, doc.TypeText, doc.TypeBytes:
		return !c.id && c.keys == nil
	}
	return false
}

// add adds the frame's row. It returns false once the run has an error.
func (s *grouping) add(f *frame) bool {
	group := 0
	if s.plain {
		group = s.groupOfRaw(f.doc.Field(s.plan.key.slot))
	} else if s.plan.key != nil {
		group = s.groupOf(s.plan.key.value(f.doc))
	}
	for _, t := range s.tallies {
		t.add(group, f.doc)
	}
	if s.grown {
		s.grown = false
		return f.fits()
	}
	return true
}

// bytes returns how many bytes the groups take.
func (s *grouping) bytes() int64 {
	n := bytesOf(s.table) + bytesOf(s.raws) + bytesOf(s.keys)
	for _, t := range s.tallies {
		n += t.bytes()
	}
	return n
}

// groupOfRaw returns the group of a plain key. It adds a group if the key is new.
func (s *grouping) groupOfRaw(key doc.Raw) int {
	h := maphash.Bytes(groupSeed, key)
	mask := uint64(len(s.table) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		slot := &s.table[i]
		if slot.group == 0 {
			s.raws = append(s.raws, key)
			return s.enter(slot, h)
		}
		if slot.hash == h && bytes.Equal(key, s.raws[slot.group-1]) {
			return int(slot.group - 1)
		}
	}
}

// groupOf is groupOfRaw for keys of which equal ones may have different bytes.
func (s *grouping) groupOf(key doc.Value) int {
	h := doc.Hash(key)
	mask := uint64(len(s.table) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		slot := &s.table[i]
		if slot.group == 0 {
			s.keys = append(s.keys, key)
			return s.enter(slot, h)
		}
		if slot.hash == h && doc.Equal(key, s.keys[slot.group-1]) {
			return int(slot.group - 1)
		}
	}
}

// enter puts a new group into a free slot.
func (s *grouping) enter(slot *groupSlot, hash uint64) int {
	s.open()
	*slot = groupSlot{hash: hash, group: int32(s.groups)}
	if 2*s.groups >= len(s.table) {
		s.grow()
	}
	return s.groups - 1
}

// open makes room for one more group.
func (s *grouping) open() {
	s.groups++
	for _, t := range s.tallies {
		t.open()
	}
}

// grow doubles the table.
func (s *grouping) grow() {
	old := s.table
	s.grown = true
	s.table = make([]groupSlot, 2*len(old))
	mask := uint64(len(s.table) - 1)
	for _, slot := range old {
		if slot.group == 0 {
			continue
		}
		i := slot.hash & mask
		for s.table[i].group != 0 {
			i = (i + 1) & mask
		}
		s.table[i] = slot
	}
}

func (s *grouping) key(group int) doc.Value {
	if s.plain {
		return s.raws[group].Value()
	}
	return s.keys[group]
}

// cells returns the values of all groups.
func (s *grouping) cells() ([][]doc.Value, error) {
	width := 1 + len(s.tallies)
	all := make([]doc.Value, s.groups*width)
	rows := make([][]doc.Value, s.groups)
	for i := range s.groups {
		cells := all[i*width : (i+1)*width : (i+1)*width]
		cells[0] = s.key(i)
		for j, t := range s.tallies {
			v, fits := t.value(i)
			if !fits {
				a := &s.plan.aggregates[j]
				return nil, errorAt(fail.Invalid, a.pos, "%s does not fit %s", a.text, misfits[kindOf(a.typ())])
			}
			cells[1+j] = v
		}
		rows[i] = cells
	}
	return rows, nil
}

// misfits names the types that an aggregate's value can be too large for.
var misfits = map[doc.Kind]string{doc.Int: "an int of 64 bits", doc.Float: "a float"}
