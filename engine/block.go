package engine

import (
	"encoding/binary"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/wal"
)

// The payload of a record. An image's records hold only operations, the first of which is the head. A block's record
// begins with the change number after the block and the time it landed (epoch milliseconds), 8 bytes each. Each of its
// operations is one change.
const (
	opHead   = 1 // the counters an image begins with: see head
	opCreate = 2 // table number, schema: creates a collection
	opDrop   = 3 // table number
	opSchema = 4 // table number, schema: the new schema of a collection
	opPut    = 5 // table number, document
	opDelete = 6 // table number, id
	opNext   = 7 // table number, the next id to assign

	// maxTables bounds the table numbers.
	maxTables = 1 << 48

	blockHead  = 16
	recordHead = wal.HeaderSize + blockHead
)

// head is what an image holds of the database besides its documents.
type head struct {
	Seq     uint64
	Tables  uint64 // the last table number assigned
	History history
	Left    []branch // the histories that one forked from
}

func appendHead(dst []byte, h head) []byte {
	dst = append(dst, opHead)
	dst = binary.LittleEndian.AppendUint64(dst, h.Seq)
	dst = binary.LittleEndian.AppendUint64(dst, h.Tables)
	dst = appendHistory(dst, h.History)
	dst = binary.AppendUvarint(dst, uint64(len(h.Left)))
	for _, b := range h.Left {
		dst = appendHistory(dst, b.history)
		dst = binary.LittleEndian.AppendUint64(dst, b.at)
	}
	return dst
}

func appendSchema(dst []byte, op byte, number uint64, s *doc.Schema) []byte {
	dst = append(dst, op)
	dst = binary.AppendUvarint(dst, number)
	at := len(dst)
	dst = s.AppendBinary(append(dst, 0, 0, 0, 0))
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

func appendNumbers(dst []byte, op byte, number, n uint64) []byte {
	dst = append(dst, op)
	dst = binary.AppendUvarint(dst, number)
	return binary.AppendUvarint(dst, n)
}

// operation is one decoded operation of a record. Op determines which fields are set.
type operation struct {
	Op     byte
	Table  uint64
	N      uint64 // opDelete: the id; opNext: the next id
	Schema *doc.Schema
	Doc    doc.Document
	At     int // where in the data Doc begins
	Head   head
}

// operations calls fn with each operation of data[from:to], one at a time in the same struct. It fails with fail.Damaged
// on bytes that are no operation.
func operations(data []byte, from, to int, fn func(o *operation) error) error {
	var o operation
	for at := from; at < to; {
		next, err := o.decode(data[:to], at)
		if err != nil {
			return err
		}
		if err := fn(&o); err != nil {
			return err
		}
		at = next
	}
	return nil
}

// decode reads the operation at data[at:] and returns where the next begins.
func (o *operation) decode(data []byte, at int) (next int, err error) {
	o.Op = data[at]
	at++
	if o.Op == opHead {
		return o.decodeHead(data, at)
	}
	number, n := binary.Uvarint(data[at:])
	if n <= 0 {
		return 0, errCut(o.Op)
	}
	if number == 0 || number > maxTables {
		return 0, fail.New(fail.Damaged, "operation %d names collection number %d: expected 1 to %d", o.Op, number, uint64(maxTables))
	}
	o.Table = number
	at += n
	switch o.Op {
	case opPut:
		d, err := doc.DocumentAt(data[at:])
		if err != nil {
			return 0, fail.New(fail.Damaged, "a document cannot be read: %v", err)
		}
		if d.ID() < 1 {
			return 0, errID(d.ID())
		}
		o.Doc, o.At = d, at
		return at + len(d), nil
	case opDelete, opNext:
		if o.N, n = binary.Uvarint(data[at:]); n <= 0 {
			return 0, errCut(o.Op)
		}
		if id := int64(o.N); id < 0 || id == 0 && o.Op == opDelete {
			return 0, errID(id)
		}
		return at + n, nil
	case opDrop:
		return at, nil
	case opCreate, opSchema:
		if len(data)-at < 4 {
			return 0, errCut(o.Op)
		}
		size := int(binary.LittleEndian.Uint32(data[at:]))
		at += 4
		if size > len(data)-at {
			return 0, errCut(o.Op)
		}
		if o.Schema, err = doc.DecodeSchema(data[at : at+size]); err != nil {
			return 0, fail.New(fail.Damaged, "a schema cannot be read: %v", err)
		}
		return at + size, nil
	}
	return 0, fail.New(fail.Damaged, "operation %d is not known to this version", o.Op)
}

// decodeHead reads the head at data[at:] and returns where it ends.
func (o *operation) decodeHead(data []byte, at int) (next int, err error) {
	if len(data)-at < 2*8+historySize {
		return 0, errCut(o.Op)
	}
	o.Head = head{Seq: binary.LittleEndian.Uint64(data[at:]), Tables: binary.LittleEndian.Uint64(data[at+8:])}
	at += 2 * 8
	o.Head.History = decodeHistory(data[at:])
	at += historySize
	count, n := binary.Uvarint(data[at:])
	if at += n; n <= 0 || count > uint64(len(data)-at)/branchSize {
		return 0, errCut(o.Op)
	}
	for range count {
		b := branch{decodeHistory(data[at:]), binary.LittleEndian.Uint64(data[at+historySize:])}
		o.Head.Left = append(o.Head.Left, b)
		at += branchSize
	}
	return at, nil
}

func errCut(op byte) error { return fail.New(fail.Damaged, "operation %d is cut short", op) }

func errID(id int64) error { return fail.New(fail.Damaged, "invalid document id %d", id) }

// replay applies one record of the file that is being opened. It is called for each record in order. data, which holds
// the record, is the segment of the record before, perhaps longer by now, or the next segment.
func (db *DB) replay(kind wal.Kind, data []byte, from, to int) error {
	if kind == wal.Derived {
		if err := db.derived.Restore(data[from:to], db.seq); err != nil {
			db.opts.Log.Warn().Err(err).Msg("derived state in the file is unusable and is rebuilt from the documents")
		}
		return nil
	}
	if kind == wal.Fork {
		return db.replayFork(data[from:to])
	}
	last := len(db.memory.segments) - 1
	if last < 0 || &db.memory.segments[last][0] != &data[0] {
		last = db.memory.adopt(data)
	}
	db.memory.segments[last] = data
	db.replayed = to
	if kind == wal.Block {
		db.beginFeed()
	}
	before, version := db.seq, db.version
	if err := db.applyRecord(kind, data, from, to, last); err != nil {
		return err
	}
	if kind == wal.Block {
		db.feed(Landed{
			Before: before, After: db.seq, Segment: last, Memory: data[:to], Start: from - wal.HeaderSize,
			Schemas: db.version != version,
		})
	}
	return nil
}
