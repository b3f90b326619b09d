package engine

import (
	"encoding/binary"

	"fenec/engine/fail"
	"fenec/engine/wal"
)

// apply changes the state by one operation. It is the only code that does: a statement encodes its changes as operations
// first, and replay and Follow decode them.
//
// t is the collection that o names, or nil if it is unknown, and segment is the one that holds the bytes of o. Built
// indexes are updated. How to undo the operation is added to undo, unless that is nil. An operation that does not fit the
// state fails with fail.Damaged and changes nothing.
func (db *DB) apply(o *operation, t *table, segment int, undo *undoLog) error {
	switch {
	case o.Op == opHead:
		return db.applyHead(o.Head)
	case o.Op == opCreate:
		return db.applyCreate(o, undo)
	case t == nil:
		return fail.New(fail.Damaged, "operation %d names the unknown collection number %d", o.Op, o.Table)
	}
	switch o.Op {
	case opPut:
		id := o.Doc.ID()
		old, had := t.put(id, makeRef(segment, o.At))
		if undo == nil {
			t.take(id)
			break
		}
		if !had {
			old = noDocument
		}
		undo.changes = append(undo.changes, change{t, id, old})
		if !had && !t.servers {
			undo.rows++
		}
		if t.moves(id) {
			undo.next(t)
			t.take(id)
		}
	case opDelete:
		id := int64(o.N)
		if old, had := t.remove(id); had && undo != nil {
			undo.changes = append(undo.changes, change{t, id, old})
			if !t.servers {
				undo.rows--
			}
		}
	case opSchema:
		if o.Schema.Name != t.schema.Name {
			return fail.New(fail.Damaged, "collection %s gets the schema of %s", t.schema.Name, o.Schema.Name)
		}
		before := t.schema
		t.setSchema(o.Schema)
		db.version++
		undo.schema(func() {
			t.setSchema(before)
			db.version++
		})
	case opDrop:
		db.removeTable(t)
		undo.schema(func() { db.insertTable(t) })
		if undo != nil && !t.servers {
			undo.rows -= int64(t.Len())
		}
	case opNext:
		if undo != nil {
			undo.next(t)
		}
		t.next = int64(o.N)
	}
	return nil
}

func (db *DB) applyHead(h head) error {
	if db.history != (history{}) || h.Tables > maxTables {
		return fail.New(fail.Damaged, "the head of the image comes twice or counts %d collections", h.Tables)
	}
	db.seq, db.counted, db.left = h.Seq, h.Tables, h.Left
	db.setHistory(h.History)
	return nil
}

func (db *DB) applyCreate(o *operation, undo *undoLog) error {
	if db.numbers[o.Table] != nil || db.tables[o.Schema.Name] != nil {
		return fail.New(fail.Damaged, "collection %s begins twice", o.Schema.Name)
	}
	counted := db.counted
	t := db.addTable(o.Table, o.Schema)
	undo.schema(func() {
		db.removeTable(t)
		db.counted = counted
	})
	return nil
}

// applyRecord applies a record of a file or an image, data[from:to], which are bytes of segment. It undoes nothing after
// an error.
func (db *DB) applyRecord(kind wal.Kind, data []byte, from, to, segment int) error {
	if kind != wal.Block {
		_, err := db.applyAll(data, from, to, segment, nil)
		return err
	}
	if to-from < blockHead {
		return fail.New(fail.Damaged, "a block is cut short")
	}
	seq := binary.LittleEndian.Uint64(data[from:])
	changes, err := db.applyAll(data, from+blockHead, to, segment, nil)
	if err != nil {
		return err
	}
	if db.seq += changes; db.seq != seq {
		return errCount(seq, db.seq)
	}
	return nil
}

func errCount(says, counted uint64) error {
	return fail.New(fail.Damaged, "a block says it ends at change %d where the file counts %d", says, counted)
}

// applyAll applies the operations in data[from:to] and returns how many there are.
func (db *DB) applyAll(data []byte, from, to, segment int, undo *undoLog) (changes uint64, err error) {
	var t *table
	err = operations(data, from, to, func(o *operation) error {
		changes++
		if t == nil || t.number != o.Table {
			t = db.numbers[o.Table]
		}
		if err := db.apply(o, t, segment, undo); err != nil {
			return err
		}
		if o.Op == opDrop {
			t = nil
		}
		return nil
	})
	return changes, err
}
