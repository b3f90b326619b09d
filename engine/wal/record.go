package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Kind is the kind of a record. A file with a kind that this version does not know is refused.
type Kind uint8

const (
	// Image is a part of the image that a file begins with.
	Image Kind = 1
	// Block is one block of writes, which lands whole or not at all.
	Block Kind = 2
	// Derived is a part of what follows from the images and blocks. It is stored only so that it need not be rebuilt:
	// without it the file means the same.
	Derived Kind = 3
	// Fork names the history that the changes after it belong to. It is no change itself.
	Fork Kind = 4
	// mark is written by the log itself and has no payload: everything before it was on disk when it was written. A
	// file that ends with one was closed in order.
	mark Kind = 5
)

// String returns the kind's name.
func (k Kind) String() string {
	switch k {
	case Image:
		return "image"
	case Block:
		return "block"
	case Derived:
		return "derived"
	case Fork:
		return "fork"
	case mark:
		return "mark"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// lastKind is the last kind that may ever be assigned.
const lastKind = 15

func (k Kind) known() bool { return k >= Image && k <= mark }

// staged reports whether records of the kind are staged by the log's user.
func (k Kind) staged() bool { return k.known() && k != mark }

// HeaderSize is the room in bytes that a caller leaves at the start of each record for the log to fill.
const HeaderSize = 16

// MaxPayload is the largest payload of one record in bytes. The caller refuses larger blocks before it stages them.
const MaxPayload = 1<<32 - 1

// Record is a record that a file is created with.
type Record struct {
	Kind Kind
	Data []byte // HeaderSize bytes of room, then the payload
}

// A record's header, little-endian:
//
//	0   length of the payload, 4 bytes
//	4   kind, 1 byte
//	5   distance from what was known to be on disk to the record when the record was staged, 3 bytes (see behind)
//	8   checksum of the payload
//	12  checksum of the 12 bytes before
//
// Both checksums are CRC-32C, combined with the file's salt and the record's offset (see mask): the bytes of a record
// are a record in one place of one file only. So a scan that looks for records after damage, at any offset, is not misled
// by a document that holds a copy of one. The header's own checksum keeps that scan linear: a payload is read only if its
// header is whole.
type header struct {
	length uint32
	kind   Kind
	behind uint32
	body   uint32
}

// behindUnit is the unit of a header's distance in bytes; behindMax is the largest distance it can hold.
const (
	behindUnit = 16
	behindMax  = 1<<24 - 1
)

// unknown is the end of what is on disk if no record says it.
const unknown = -1

// behind returns the distance field of a record at off in a file that is known to be on disk up to synced: one more
// than the units between, rounded up, or 0 if synced is unknown or too far.
func behind(off, synced int64) uint32 {
	if synced < 0 {
		return 0
	}
	if n := 1 + (off-synced+behindUnit-1)/behindUnit; n <= behindMax {
		return uint32(n)
	}
	return 0
}

// synced returns the offset up to which, at least, the file was on disk when the record at off was staged, or unknown.
func (h header) synced(off int64) int64 {
	if h.behind == 0 {
		return unknown
	}
	return max(0, off-int64(h.behind-1)*behindUnit)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Update(0, castagnoli, b) }

// mask returns what the checksums of a record at off are combined with. It differs for any two offsets of a file below
// 4 GiB, and nearly always for larger ones.
func mask(salt uint32, off int64) uint32 {
	return salt ^ uint32(off) ^ uint32(off>>32)*0x9E3779B1
}

// seal fills the header of rec, whose payload has the checksum body, for offset off of a file that is known to be on
// disk up to synced.
func seal(rec []byte, kind Kind, body, salt uint32, off, synced int64) {
	m := mask(salt, off)
	binary.LittleEndian.PutUint32(rec, uint32(len(rec)-HeaderSize))
	binary.LittleEndian.PutUint32(rec[4:], uint32(kind)|behind(off, synced)<<8)
	binary.LittleEndian.PutUint32(rec[8:], body^m)
	binary.LittleEndian.PutUint32(rec[12:], checksum(rec[:12])^m)
}

// RecordSize returns the length in bytes, header and payload, of the staged record that b begins with.
func RecordSize(b []byte) int { return HeaderSize + int(binary.LittleEndian.Uint32(b)) }

// parseHeader reads the header at the start of b, which is at offset off. A run of zeros is never a header: no kind is
// zero.
func parseHeader(b []byte, salt uint32, off int64) (h header, ok bool) {
	if len(b) < HeaderSize {
		return header{}, false
	}
	m := mask(salt, off)
	h = header{
		length: binary.LittleEndian.Uint32(b),
		kind:   Kind(b[4]),
		behind: binary.LittleEndian.Uint32(b[4:]) >> 8,
		body:   binary.LittleEndian.Uint32(b[8:]) ^ m,
	}
	return h, h.kind != 0 && binary.LittleEndian.Uint32(b[12:]) == checksum(b[:12])^m
}

// end returns the offset after the record.
func (h header) end(off int64) int64 { return off + HeaderSize + int64(h.length) }

// skippable reports whether the record at off, whose header is whole, ends within a file of that size and can be skipped
// without losing anything.
func (h header) skippable(off int64, size int) bool {
	return h.kind == Derived && h.end(off) <= int64(size)
}

// recordAt reads the record at off of a whole file. ok is false if its header or payload is damaged or cut short; whole
// reports whether the header is intact.
func recordAt(data []byte, salt uint32, off int64) (h header, whole, ok bool) {
	h, whole = parseHeader(data[off:], salt, off)
	if !whole || h.end(off) > int64(len(data)) {
		return h, whole, false
	}
	return h, true, checksum(data[off+HeaderSize:h.end(off)]) == h.body
}

// nextRecord returns the offset of the first whole record at any offset from off on, or -1 if there is none. It reads
// the kind and the length first, which rule out nearly every offset at the cost of two loads.
func nextRecord(data []byte, salt uint32, off int64) int64 {
	size := int64(len(data))
	for ; off+HeaderSize <= size; off++ {
		kind := data[off+4]
		length := int64(binary.LittleEndian.Uint32(data[off:]))
		if kind == 0 || kind > lastKind || off+HeaderSize+length > size {
			continue
		}
		if _, _, ok := recordAt(data, salt, off); ok {
			return off
		}
	}
	return -1
}
