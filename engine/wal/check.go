package wal

import (
	"encoding/binary"
	"os"

	"fenec/internal/vfs"
)

// Report is what Check found in a file.
type Report struct {
	Size    int64 // of the file, in bytes
	Records int   // whole ones, without marks
	Damage  []Damage
	// Torn is the number of bytes at the end that hold records which did not all reach the disk. Open would cut them
	// off.
	Torn int64
}

// Damage is a stretch of the file that holds no readable record.
type Damage struct {
	Offset, Length int64
	Err            error // what is wrong there, of kind fail.Damaged
}

// Check reads a file as Open does but goes on after damage, and changes nothing. visit is called in order of offset:
// with the kind and payload of each whole record, or with err for a stretch of damage. The payload is then the damaged
// bytes, and the kind is 0, or Derived for a record that Open skips. Check fails if the file cannot be read or its
// header cannot be recovered.
//
// A damaged header does not hide the records: its salt follows from the first record's checksums.
func Check(fs vfs.FS, path string, visit func(offset int64, kind Kind, payload []byte, err error)) (Report, error) {
	f, err := fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return Report{}, storageError("opened", err)
	}
	defer f.Close()
	data, err := readAll(f)
	if err != nil {
		return Report{}, storageError("read", err)
	}
	c := checker{data: data, visit: visit, report: Report{Size: int64(len(data))}}
	var bad error
	c.header, bad = parseFileHeader(data)
	short := c.header.base > c.report.Size // and the header is whole
	if bad != nil && !short {
		salt, ok := recoverSalt(data)
		if !ok {
			return c.report, bad
		}
		c.header = fileHeader{salt: salt}
		c.damaged(0, fileHeaderSize, 0, bad)
	}
	c.run()
	if short {
		c.damaged(c.report.Size, c.report.Size, 0, bad)
	}
	return c.report, nil
}

type checker struct {
	data   []byte
	header fileHeader
	visit  func(offset int64, kind Kind, payload []byte, err error)
	report Report
}

func (c *checker) damaged(off, end int64, kind Kind, err error) {
	c.report.Damage = append(c.report.Damage, Damage{Offset: off, Length: end - off, Err: err})
	c.visit(off, kind, c.data[off:end], err)
}

func (c *checker) run() {
	size := int64(len(c.data))
	for off := int64(fileHeaderSize); off < size; {
		h, whole, ok := recordAt(c.data, c.header.salt, off)
		switch {
		case ok:
			if err := checkKind(h, off); err != nil {
				c.damaged(off, h.end(off), 0, err)
			} else {
				if h.kind != mark {
					c.report.Records++
					c.visit(off, h.kind, c.data[off+HeaderSize:h.end(off)], nil)
				}
			}
			off = h.end(off)
		default:
			err := classifyDamage(c.data, c.header, off, whole)
			if err == nil {
				c.report.Torn = size - off
				return
			}
			if whole && h.skippable(off, len(c.data)) {
				c.damaged(off, h.end(off), Derived, err)
				off = h.end(off)
				continue
			}
			next := nextRecord(c.data, c.header.salt, off+1)
			if next < 0 {
				next = size
			}
			c.damaged(off, next, 0, err)
			off = next
		}
	}
}

// recoverSalt derives a file's salt from its first record: it is the salt that makes the header's checksum right, if
// the payload's checksum is right with it too.
func recoverSalt(data []byte) (uint32, bool) {
	if len(data) < fileHeaderSize+HeaderSize {
		return 0, false
	}
	first := data[fileHeaderSize:]
	salt := binary.LittleEndian.Uint32(first[12:]) ^ checksum(first[:12]) ^ mask(0, fileHeaderSize)
	_, _, ok := recordAt(data, salt, fileHeaderSize)
	return salt, ok
}
