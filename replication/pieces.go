package replication

import (
	"encoding/binary"
	"fmt"

	"fenec/engine/fail"
	"fenec/engine/wal"
)

// pieces are encoded records on their way into frames. They refer to the bytes of the records, which never change, and do not copy
// them: a record may have a GiB.
type pieces struct {
	parts [][]byte
	next  int    // the first part that is not sent
	heads []byte // of records, which parts refer to
}

// add appends a record.
func (p *pieces) add(kind byte, payload []byte) {
	at := len(p.heads)
	p.heads = binary.LittleEndian.AppendUint32(append(p.heads, kind), uint32(len(payload)))
	p.parts = append(p.parts, p.heads[at:], payload)
}

func (p *pieces) empty() bool { return p.next == len(p.parts) }

// take appends up to n bytes to dst and returns how many there were.
func (p *pieces) take(dst []byte, n int) (out []byte, taken int) {
	for taken < n && p.next < len(p.parts) {
		part := p.parts[p.next]
		m := min(len(part), n-taken)
		dst = append(dst, part[:m]...)
		taken += m
		if p.parts[p.next] = part[m:]; m == len(part) {
			p.parts[p.next] = nil
			p.next++
		}
	}
	if p.empty() {
		p.parts, p.next, p.heads = p.parts[:0], 0, p.heads[:0]
		if cap(p.parts) > keepParts {
			p.parts, p.heads = nil, nil
		}
	}
	return dst, taken
}

// keepParts is how many parts a stream keeps room for between two reads.
const keepParts = 64

// gathering puts pieces together to records again.
type gathering struct {
	head   [recordHead]byte
	have   int    // bytes of head
	record []byte // room for the header of the log, then the payload as far as it has arrived
	left   int    // bytes of the payload that are missing
}

// maxRecord is the largest payload of a record that is accepted: what the engine writes has at most a GiB and its head.
const maxRecord = 1<<30 + 1<<10

// add takes the next bytes and calls whole with each record that is complete.
func (g *gathering) add(b []byte, whole func(r wal.Record, size int)) error {
	for len(b) > 0 {
		if g.have < recordHead {
			n := copy(g.head[g.have:], b)
			g.have, b = g.have+n, b[n:]
			if g.have < recordHead {
				return nil
			}
			if g.left = int(binary.LittleEndian.Uint32(g.head[1:])); g.left > maxRecord {
				return fmt.Errorf("%w: a record of %d bytes", errFrame, g.left)
			}
			g.record = make([]byte, wal.HeaderSize, wal.HeaderSize+min(g.left, len(b)))
		}
		n := min(g.left, len(b))
		g.record = append(g.record, b[:n]...)
		g.left, b = g.left-n, b[n:]
		if g.left > 0 {
			return nil
		}
		r, err := followRecord(g.head[0], g.record)
		if err != nil {
			return fmt.Errorf("%w: %w", errFrame, err)
		}
		whole(r, recordHead+len(g.record)-wal.HeaderSize)
		g.have, g.record = 0, nil
	}
	return nil
}

// partial returns how many bytes it holds of a record that is not whole.
func (g *gathering) partial() int {
	if g.have < recordHead {
		return g.have
	}
	return g.have + len(g.record) - wal.HeaderSize
}

// Kinds of records on the wire.
const (
	recordBlock byte = 1
	recordFork  byte = 2
)

// followRecord returns a record of the wire for engine.DB.Follow. data begins with wal.HeaderSize bytes of room.
func followRecord(kind byte, data []byte) (wal.Record, error) {
	switch kind {
	case recordBlock:
		return wal.Record{Kind: wal.Block, Data: data}, nil
	case recordFork:
		return wal.Record{Kind: wal.Fork, Data: data}, nil
	}
	return wal.Record{}, fail.New(fail.Damaged, "a record of kind %d: expected a block or a fork", kind)
}
