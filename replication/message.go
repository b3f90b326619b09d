package replication

import (
	"encoding/binary"
	"fmt"

	"fenec/engine"
)

// Limits of what a message holds.
const (
	maxText     = 255 // bytes of a name, a history or an id
	maxSentence = 1024
	maxAbove    = 64 // ids of nodes
	maxBranches = 256
)

// open is the payload of a kindOpen frame: the position from which a copy wants to be fed.
type open struct {
	tenant  string
	node    string // the id of the follower's node
	seq     uint64
	history string // empty if the copy holds nothing that it could go on from
	counts  bool   // an acknowledgement of this copy counts for --sync replica
}

func (m open) append(dst []byte) []byte {
	dst = appendText(dst, m.tenant)
	dst = appendText(dst, m.node)
	dst = binary.LittleEndian.AppendUint64(dst, m.seq)
	dst = appendText(dst, m.history)
	return append(dst, flag(m.counts))
}

func (m *open) decode(b []byte) error {
	r := reader{b: b}
	m.tenant, m.node, m.seq, m.history, m.counts = r.text(), r.text(), r.number(), r.text(), r.flag()
	return r.end("open")
}

// ack is the payload of a kindAck frame.
type ack struct {
	taken   uint64 // bytes of the stream's records that the follower has applied, or holds of one that is not whole yet
	applied uint64 // the last change that reads of the copy see
	synced  uint64 // the last change on its disk
	summed  bool   // sum is that of the copy at change applied of history
	sum     uint64
	history string // empty unless summed
}

func (m ack) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, m.taken)
	dst = binary.LittleEndian.AppendUint64(dst, m.applied)
	dst = binary.LittleEndian.AppendUint64(dst, m.synced)
	dst = append(dst, flag(m.summed))
	dst = binary.LittleEndian.AppendUint64(dst, m.sum)
	return appendText(dst, m.history)
}

func (m *ack) decode(b []byte) error {
	r := reader{b: b}
	m.taken, m.applied, m.synced, m.summed, m.sum, m.history = r.number(), r.number(), r.number(), r.flag(), r.number(), r.text()
	return r.end("ack")
}

// hello is the payload of a kindHello frame: how the primary begins a stream.
type hello struct {
	image    bool            // the copy cannot go on from its position and needs an image
	history  string          // of the primary
	durable  uint64          // the last change on the primary's disk
	above    []string        // ids of the primary and of the nodes that it follows in turn
	branches []engine.Branch // that the primary has passed through, if image
}

func (m hello) append(dst []byte) []byte {
	dst = append(dst, flag(m.image))
	dst = appendText(dst, m.history)
	dst = binary.LittleEndian.AppendUint64(dst, m.durable)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(m.above)))
	for _, id := range m.above {
		dst = appendText(dst, id)
	}
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(m.branches)))
	for _, b := range m.branches {
		dst = appendText(dst, b.History)
		dst = binary.LittleEndian.AppendUint64(dst, b.At)
	}
	return dst
}

func (m *hello) decode(b []byte) error {
	r := reader{b: b}
	m.image, m.history, m.durable = r.flag(), r.text(), r.number()
	for range r.count(maxAbove) {
		m.above = append(m.above, r.text())
	}
	for range r.count(maxBranches) {
		m.branches = append(m.branches, engine.Branch{History: r.text(), At: r.number()})
	}
	return r.end("hello")
}

// end is the payload of a kindEnd frame: why the primary ends a stream.
type end struct {
	status   int // of HTTP: see the statuses below
	sentence string
}

// Statuses of the end of a stream.
const (
	endAbsent   = 404 // the node has no such tenant
	endDiverged = 409 // the copies hold different content at the same change
	endGone     = 410 // what follows the copy's position is no longer kept
	endFailed   = 500 // the tenant cannot be read
	endLater    = 503 // open the stream again in a moment
	endRing     = 508 // the node follows the one that asks
)

func (m end) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(m.status))
	sentence := m.sentence[:min(len(m.sentence), maxSentence)]
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(sentence)))
	return append(dst, sentence...)
}

func (m *end) decode(b []byte) error {
	r := reader{b: b}
	m.status = int(r.short())
	m.sentence = string(r.take(r.count(maxSentence)))
	return r.end("end")
}

// recordHead is how many bytes a record has on the wire before its own: its kind and its length. The payload of a kindWrites frame is
// the last change on the primary's disk (u64), then a piece of the tenant's records, which follow each other without regard to
// frames. The room for the header of the log is left out.
const recordHead = 1 + 4

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// appendText appends a text of at most maxText bytes; longer ones are cut, and the other side will not find them.
func appendText(dst []byte, s string) []byte {
	s = s[:min(len(s), maxText)]
	return append(append(dst, byte(len(s))), s...)
}

// reader decodes a payload. After a fault everything is zero, and end returns the error.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.failed, r.b = true, nil
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) flag() bool {
	b := r.byte()
	r.failed = r.failed || b > 1
	return b == 1
}

func (r *reader) short() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) number() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) text() string { return string(r.take(int(r.byte()))) }

// count reads a number of elements, of which there are at most limit.
func (r *reader) count(limit int) int {
	n := int(r.short())
	if n > limit {
		r.failed, n = true, 0
	}
	return n
}

func (r *reader) end(what string) error {
	if r.failed || len(r.b) > 0 {
		return fmt.Errorf("%w: the payload of an %s message is malformed", errFrame, what)
	}
	return nil
}
