package doc

import (
	"encoding/binary"

	"fenec/engine/fail"
)

// MaxDocument is the largest size of a document in bytes.
const MaxDocument = 64 << 20

// A document's header is 4 bytes of length, whose top bit says that its offsets take four bytes instead of two, 8 bytes
// of id, then one offset more than there are slots. A slot's value lies between its offset and the next; a null takes
// no bytes. So the first offset is also the end of the table, and with it gives the number of slots.
const (
	lengthSize   = 4
	idSize       = 8
	tableAt      = lengthSize + idSize
	wideBit      = 1 << 31
	narrowLimit  = 1<<16 - 1 // the largest document whose offsets take two bytes
	smallestSize = tableAt + 2
)

// MaxSlots is the largest number of slots of a collection, and so of fields that it can ever have had.
const MaxSlots = 1 << 16

// Document is one encoded document. Its length comes first, so that consecutive documents can be walked.
type Document []byte

// ID returns the document's id.
func (d Document) ID() int64 { return int64(binary.LittleEndian.Uint64(d[lengthSize:])) }

// Slots returns the number of slots the document was written with.
func (d Document) Slots() int {
	if d.wide() {
		return (int(binary.LittleEndian.Uint32(d[tableAt:])) - tableAt - 4) / 4
	}
	return (int(binary.LittleEndian.Uint16(d[tableAt:])) - tableAt - 2) / 2
}

func (d Document) wide() bool { return d[lengthSize-1]&0x80 != 0 }

// Field returns the value in a slot, nil if it is null or the document is older than the slot.
func (d Document) Field(slot int) Raw {
	if d.wide() {
		return d.wideField(slot)
	}
	at := uint(tableAt + 2*slot)
	if at+2 >= uint(binary.LittleEndian.Uint16(d[tableAt:])) {
		return nil
	}
	pair := binary.LittleEndian.Uint32(d[at:])
	start, end := pair&0xffff, pair>>16
	if start == end {
		return nil
	}
	return Raw(d[start:end:end])
}

func (d Document) wideField(slot int) Raw {
	at := uint(tableAt + 4*slot)
	if at+4 >= uint(binary.LittleEndian.Uint32(d[tableAt:])) {
		return nil
	}
	start, end := binary.LittleEndian.Uint32(d[at:]), binary.LittleEndian.Uint32(d[at+4:])
	if start == end {
		return nil
	}
	return Raw(d[start:end:end])
}

// DocumentAt returns the document at the start of b, which may continue after it. Its length and its table are checked,
// so that Field stays within it whatever b holds. Validate checks the values.
func DocumentAt(b []byte) (Document, error) {
	if len(b) < smallestSize {
		return nil, fail.New(fail.Damaged, "a document is cut short: expected at least %d bytes, got %d", smallestSize, len(b))
	}
	word := binary.LittleEndian.Uint32(b)
	n := word &^ wideBit
	if n < smallestSize || uint64(n) > uint64(len(b)) || n > MaxDocument {
		return nil, fail.New(fail.Damaged, "a document has length %d: expected %d to %d", n, smallestSize, min(len(b), MaxDocument))
	}
	d := Document(b[:n:n])
	if !d.tableOK(word&wideBit != 0) {
		return nil, fail.New(fail.Damaged, "the offsets of document %d are not within it", d.ID())
	}
	return d, nil
}

// At returns the document at offset off of b, which Builder wrote: nothing is checked.
func At(b []byte, off uint64) Document {
	n := uint64(binary.LittleEndian.Uint32(b[off:]) &^ wideBit)
	return Document(b[off : off+n : off+n])
}

// tableOK reports whether the offsets are ascending and end at the document's end.
func (d Document) tableOK(wide bool) bool {
	if wide {
		return d.wideTableOK()
	}
	first := int(binary.LittleEndian.Uint16(d[tableAt:]))
	if first < tableAt+2 || first > len(d) || first%2 != 0 {
		return false
	}
	last := uint16(first)
	for table := d[tableAt+2 : first]; len(table) >= 2; table = table[2:] {
		next := binary.LittleEndian.Uint16(table)
		if next < last {
			return false
		}
		last = next
	}
	return int(last) == len(d)
}

func (d Document) wideTableOK() bool {
	if len(d) < tableAt+4 {
		return false
	}
	first := int(binary.LittleEndian.Uint32(d[tableAt:]))
	if first < tableAt+4 || first > len(d) || first%4 != 0 {
		return false
	}
	last := uint32(first)
	for table := d[tableAt+4 : first]; len(table) >= 4; table = table[4:] {
		next := binary.LittleEndian.Uint32(table)
		if next < last {
			return false
		}
		last = next
	}
	return int(last) == len(d)
}

// Validate reports whether every value of a document that DocumentAt returned is whole and encoded as Append would, for
// bytes from outside.
func Validate(d Document) error {
	for slot := range d.Slots() {
		r := d.Field(slot)
		if r == nil {
			continue
		}
		if r[0] == tagNull || !wholeValue(r) {
			return fail.New(fail.Damaged, "document %d has broken bytes in slot %d", d.ID(), slot)
		}
	}
	return nil
}
