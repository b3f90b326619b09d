package replication

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"fenec/engine"
	"fenec/engine/wal"
)

// FuzzFrames: whatever comes, a reader returns frames that are as they were written, or an error, and takes memory for what came.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{})
	f.Add(endFrame(beginFrame(nil, kindAlive, 0), 0))
	f.Add(endFrame(append(beginFrame(nil, kindWrites, 7), "a piece of records"...), 0))
	f.Add([]byte{255, 255, 15, 0, 1})
	f.Add(append(endFrame(beginFrame(nil, kindAlive, 0), 0)[:9], 1, 2, 3, 4)) // another checksum
	f.Fuzz(func(t *testing.T, b []byte) {
		r := frameReader{r: bytes.NewReader(b)}
		at := 0
		for {
			one, err := r.next()
			if err != nil {
				if !errors.Is(err, errFrame) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("an error of neither a damaged nor a cut frame: %v", err)
				}
				if errors.Is(err, io.EOF) && at != len(b) {
					t.Fatalf("the end at byte %d of %d", at, len(b))
				}
				return
			}
			again := endFrame(append(beginFrame(nil, one.kind, one.stream), one.payload...), 0)
			if !bytes.Equal(again, b[at:at+len(again)]) {
				t.Fatalf("%x was read as a frame that is written as %x", b[at:at+len(again)], again)
			}
			at += len(again)
		}
	})
}

// message is one that is encoded and decoded.
type message interface {
	append(dst []byte) []byte
}

// FuzzMessages: a payload that is decoded is the encoding of what was decoded, for each message.
func FuzzMessages(f *testing.F) {
	f.Add(uint8(kindOpen), open{tenant: "t", node: "n", seq: 1, history: "1-00", counts: true}.append(nil))
	f.Add(uint8(kindAck), ack{taken: 1, applied: 3, synced: 2, summed: true, sum: 9, history: "1-00"}.append(nil))
	f.Add(uint8(kindHello), hello{image: true, history: "1-00", durable: 4, above: []string{"a"}, branches: []engine.Branch{{History: "1-00", At: 3}}}.append(nil))
	f.Add(uint8(kindEnd), end{endGone, "gone"}.append(nil))
	f.Add(uint8(kindEnd), append(end{endGone, "gone"}.append(nil), 0)) // with more after it
	f.Fuzz(func(t *testing.T, k uint8, b []byte) {
		var m message
		var err error
		switch kind(k) {
		case kindOpen:
			var one open
			err, m = one.decode(b), &one
		case kindAck:
			var one ack
			err, m = one.decode(b), &one
		case kindHello:
			var one hello
			err, m = one.decode(b), &one
		case kindEnd:
			var one end
			err, m = one.decode(b), &one
		default:
			return
		}
		if err != nil {
			if !errors.Is(err, errFrame) {
				t.Fatalf("the error is %v, want one of a damaged frame", err)
			}
			return
		}
		if again := m.append(nil); !bytes.Equal(again, b) {
			t.Fatalf("%x was decoded as %+v, which is encoded as %x", b, m, again)
		}
	})
}

// FuzzGathering: records that were cut into pieces anywhere are the same records, and of bytes that are no records nothing is
// allocated ahead.
func FuzzGathering(f *testing.F) {
	var p pieces
	p.add(recordBlock, []byte("a block"))
	p.add(recordFork, []byte("a fork"))
	b, _ := p.take(nil, 1<<20)
	f.Add(b, uint8(3))
	f.Add(b, uint8(200))
	f.Add([]byte{1, 255, 255, 255, 63, 0}, uint8(1))
	f.Add([]byte{9, 0, 0, 0, 0}, uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, size uint8) {
		gather := func(size int) (records []wal.Record, used int, err error) {
			var g gathering
			for rest := b; len(rest) > 0 && err == nil; {
				n := min(max(size, 1), len(rest))
				err = g.add(rest[:n], func(r wal.Record, bytes int) {
					records = append(records, r)
					used += bytes
				})
				rest = rest[n:]
				if cap(g.record) > 2*len(b)+64 {
					t.Fatalf("%d bytes are held of %d that came", cap(g.record), len(b))
				}
			}
			if err == nil && used+g.partial() != len(b) {
				t.Fatalf("%d bytes of records and %d of one that is not whole, of %d", used, g.partial(), len(b))
			}
			return records, used, err
		}
		whole, _, err := gather(len(b))
		cut, _, errCut := gather(int(size))
		if (err == nil) != (errCut == nil) || !reflect.DeepEqual(whole, cut) {
			t.Fatalf("whole: %v, %v; in pieces of %d: %v, %v", whole, err, size, cut, errCut)
		}
		if err != nil {
			return
		}
		var p pieces
		n := 0
		for _, r := range whole {
			k := recordBlock
			if r.Kind == wal.Fork {
				k = recordFork
			}
			p.add(k, r.Data[wal.HeaderSize:])
			n += recordHead + len(r.Data) - wal.HeaderSize
		}
		var again []byte
		for !p.empty() {
			again, _ = p.take(again, max(int(size), 1))
		}
		if !bytes.Equal(again, b[:n]) {
			t.Fatalf("the records are written as %x, and were read of %x", again, b[:n])
		}
	})
}

// TestALongTextIsCut: what is sent of a name can be read.
func TestALongTextIsCut(t *testing.T) {
	var m open
	if err := m.decode(open{tenant: string(make([]byte, 300))}.append(nil)); err != nil || len(m.tenant) != maxText {
		t.Errorf("%d bytes, %v", len(m.tenant), err)
	}
	var e end
	if err := e.decode(end{500, string(make([]byte, 3000))}.append(nil)); err != nil || len(e.sentence) != maxSentence {
		t.Errorf("%d bytes, %v", len(e.sentence), err)
	}
}
