package wal

import (
	"encoding/binary"
	"io"

	"fenec/engine/fail"
)

// A file's header, little-endian:
//
//	0   "FENEC", then a zero byte
//	6   format version, 2 bytes
//	8   length of the file when it got its name, 8 bytes
//	16  salt, 4 bytes
//	20  CRC-32C of the 20 bytes before
//
// A file is filled and synced under another name before it gets its own, so what the third field covers was on disk
// whole: damage there is never a write cut short by a crash.
const (
	magic          = "FENEC\x00"
	version        = 1
	fileHeaderSize = 24
)

// FileHeaderSize is the length of a file's header in bytes. The first record follows it.
const FileHeaderSize = fileHeaderSize

type fileHeader struct {
	base int64 // length of the file when it got its name
	salt uint32
}

func (h fileHeader) encode() []byte {
	b := make([]byte, fileHeaderSize)
	copy(b, magic)
	binary.LittleEndian.PutUint16(b[6:], version)
	binary.LittleEndian.PutUint64(b[8:], uint64(h.base))
	binary.LittleEndian.PutUint32(b[16:], h.salt)
	binary.LittleEndian.PutUint32(b[20:], checksum(b[:20]))
	return b
}

// parseFileHeader decodes and checks the header of a whole file.
func parseFileHeader(data []byte) (fileHeader, error) {
	h, err := decodeFileHeader(data)
	if err != nil {
		return h, err
	}
	return h, h.covers(int64(len(data)))
}

// covers fails if size, the length of the file in bytes, is less than the length it got its name with.
func (h fileHeader) covers(size int64) error {
	if h.base < fileHeaderSize || h.base > size {
		return fail.New(fail.Damaged, "the file is cut short at offset %d: it had %d bytes when it was made", size, h.base)
	}
	return nil
}

// decodeFileHeader decodes the header at the start of data.
func decodeFileHeader(data []byte) (fileHeader, error) {
	switch {
	case len(data) == 0:
		return fileHeader{}, fail.New(fail.Damaged, "the file is empty: damaged at offset 0")
	case len(data) < fileHeaderSize:
		return fileHeader{}, fail.New(fail.Damaged,
			"the file is cut short at offset %d: its header has %d bytes", len(data), fileHeaderSize)
	case string(data[:len(magic)]) != magic:
		return fileHeader{}, fail.New(fail.Damaged, "the file is not a fenec database: expected FENEC at offset 0")
	}
	if v := binary.LittleEndian.Uint16(data[6:]); v != version {
		return fileHeader{}, fail.New(fail.Damaged,
			"the file has format version %d at offset 6, and this fenec reads version %d", v, version)
	}
	if binary.LittleEndian.Uint32(data[20:]) != checksum(data[:20]) {
		return fileHeader{}, fail.New(fail.Damaged, "the file's header is damaged at offset 8: its checksum does not match")
	}
	return fileHeader{
		base: int64(binary.LittleEndian.Uint64(data[8:])),
		salt: binary.LittleEndian.Uint32(data[16:]),
	}, nil
}

// newSalt draws the salt of a new file.
func newSalt(rand io.Reader) (uint32, error) {
	var b [4]byte
	if _, err := io.ReadFull(rand, b[:]); err != nil {
		return 0, fail.New(fail.Storage, "cannot read random bytes for a new file: %w", err)
	}
	return binary.LittleEndian.Uint32(b[:]), nil
}
