package replication

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A frame is `length u32, kind u8, stream u32, payload, CRC-32C u32`, little endian. The length counts the bytes after it, and
// the checksum covers kind, stream and payload. A stream is the number that the follower gave a tenant on this connection; 0
// is the connection itself.
const (
	frameLength = 4
	frameHead   = 1 + 4
	frameTail   = 4
	// maxPayload bounds the payload of a frame that is accepted. Longer data is sent in pieces of at most maxPiece.
	maxPayload = 1 << 20
	maxPiece   = 256 << 10
)

// kind is what a frame says.
type kind uint8

const (
	kindOpen   kind = iota + 1 // follower: feed me a tenant from a position
	kindAck                    // follower: how far a copy has come
	kindClose                  // follower: feed it no more
	kindHello                  // primary: how a stream begins
	kindWrites                 // primary: a piece of the records of a tenant
	kindEnd                    // primary: a stream has ended, and why
	kindAlive                  // both: nothing else to send
	kinds
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// beginFrame appends the head of a frame. The caller appends the payload and calls endFrame with the offset at which the frame
// begins.
func beginFrame(dst []byte, k kind, stream uint32) []byte {
	dst = append(dst, 0, 0, 0, 0, byte(k))
	return binary.LittleEndian.AppendUint32(dst, stream)
}

// endFrame completes the frame that begins at dst[at:].
func endFrame(dst []byte, at int) []byte {
	body := dst[at+frameLength:]
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(body)+frameTail))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(body, castagnoli))
}

// frame is a frame that has arrived.
type frame struct {
	kind    kind
	stream  uint32
	payload []byte // valid until the next frame is read
}

// errFrame is the error of bytes that are no frame. The connection ends with it.
var errFrame = errors.New("damaged frame")

// frameReader reads frames one after the other.
type frameReader struct {
	r   io.Reader
	buf []byte
}

// next reads one frame. A frame that is cut short is io.ErrUnexpectedEOF, and one that is damaged is errFrame.
func (f *frameReader) next() (frame, error) {
	var head [frameLength]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return frame{}, err
	}
	n := int(binary.LittleEndian.Uint32(head[:]))
	if n < frameHead+frameTail || n > frameHead+maxPayload+frameTail {
		return frame{}, fmt.Errorf("%w: a length of %d bytes, expected %d to %d", errFrame, n, frameHead+frameTail, frameHead+maxPayload+frameTail)
	}
	if cap(f.buf) < n {
		f.buf = make([]byte, max(n, 4096))
	}
	b := f.buf[:n]
	if _, err := io.ReadFull(f.r, b); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return frame{}, err
	}
	body := b[:n-frameTail]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[n-frameTail:]) {
		return frame{}, fmt.Errorf("%w: its checksum does not match its bytes", errFrame)
	}
	k := kind(body[0])
	if k == 0 || k >= kinds {
		return frame{}, fmt.Errorf("%w: kind %d is unknown", errFrame, k)
	}
	return frame{k, binary.LittleEndian.Uint32(body[1:]), body[frameHead:]}, nil
}
