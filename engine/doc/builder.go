package doc

import (
	"encoding/binary"

	"fenec/engine/fail"
)

// Builder assembles a document slot by slot, in any order. It is reusable: once its buffers have grown it allocates
// nothing.
type Builder struct {
	values []byte // encoded, in the order they were set
	places []span // of each slot in values; an empty span is null
}

// Reset begins a document with the given number of slots, all null.
func (b *Builder) Reset(slots int) {
	b.values = b.values[:0]
	if cap(b.places) < slots {
		b.places = make([]span, slots)
		return
	}
	b.places = b.places[:slots]
	clear(b.places)
}

// Set converts v to type t and stores it in a slot. what names the slot's field in the error. On an error the slot
// keeps its value.
func (b *Builder) Set(slot int, t Type, v Value, what string) error {
	if v.Kind == Null {
		b.places[slot] = span{}
		return nil
	}
	start := len(b.values)
	values, err := t.Append(b.values, v, what)
	if err != nil {
		return err
	}
	if values[start] == tagNull { // Untyped text of a json field may spell it
		b.places[slot] = span{}
		return nil
	}
	if len(values) > MaxDocument {
		return tooLarge()
	}
	b.values = values
	b.places[slot] = span{start, len(values)}
	return nil
}

// SetRaw stores an encoded value of the slot's own type in a slot.
func (b *Builder) SetRaw(slot int, r Raw) {
	if r.IsNull() {
		b.places[slot] = span{}
		return
	}
	start := len(b.values)
	b.values = append(b.values, r...)
	b.places[slot] = span{start, len(b.values)}
}

// Copy copies the values of all slots of an older version of the document to the same slots.
func (b *Builder) Copy(d Document) {
	slots := min(d.Slots(), len(b.places))
	for slot := range slots {
		b.SetRaw(slot, d.Field(slot))
	}
}

// Clear sets the given slots to null.
func (b *Builder) Clear(slots []int) {
	for _, slot := range slots {
		if slot < len(b.places) {
			b.places[slot] = span{}
		}
	}
}

// Field returns the value of a slot so far, nil if it is null. It is valid until the next Set.
func (b *Builder) Field(slot int) Raw {
	p := b.places[slot]
	if p.start == p.end {
		return nil
	}
	return Raw(b.values[p.start:p.end:p.end])
}

// Size returns the length of the document in bytes.
func (b *Builder) Size() int {
	n := 0
	for i := range b.places {
		n += b.places[i].end - b.places[i].start
	}
	size := n + tableAt + 2*(len(b.places)+1)
	if size > narrowLimit {
		size += 2 * (len(b.places) + 1)
	}
	return size
}

// Check fails if the document is larger than MaxDocument.
func (b *Builder) Check() error {
	if b.Size() > MaxDocument {
		return tooLarge()
	}
	return nil
}

func tooLarge() error {
	return fail.New(fail.TooLarge, "a document holds %d MiB at most", MaxDocument>>20)
}

// AppendTo appends the document, with its id, to dst. The builder keeps its values.
func (b *Builder) AppendTo(dst []byte, id int64) []byte {
	size, at := b.Size(), len(dst)
	width := 2
	word := uint32(size)
	if size > narrowLimit {
		width = 4
		word |= wideBit
	}
	offset := tableAt + width*(len(b.places)+1)
	dst = growTo(dst, at+size)
	d := dst[at:]
	binary.LittleEndian.PutUint32(d, word)
	binary.LittleEndian.PutUint64(d[lengthSize:], uint64(id))
	table := d[tableAt:offset]
	putOffset(table, width, offset)
	for _, p := range b.places {
		table = table[width:]
		offset += copy(d[offset:], b.values[p.start:p.end])
		putOffset(table, width, offset)
	}
	return dst
}

func putOffset(table []byte, width, offset int) {
	if width == 2 {
		binary.LittleEndian.PutUint16(table, uint16(offset))
		return
	}
	binary.LittleEndian.PutUint32(table, uint32(offset))
}

// growTo returns dst with length n. The caller overwrites the new part.
func growTo(dst []byte, n int) []byte {
	if n <= cap(dst) {
		return dst[:n]
	}
	return append(dst, make([]byte, n-len(dst))...)
}
