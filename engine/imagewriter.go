package engine

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/index"
	"fenec/engine/wal"
)

// imageRecord is the approximate size of the records of an image, in bytes.
const imageRecord = 1 << 20

// imageWriter encodes a state as the records of an image, and builds the memory that mirrors them.
type imageWriter struct {
	emit   func(record []byte) error // owns record
	memory memory
	tables map[uint64]*imageTable // by number
	record []byte                 // the record being filled
	build  doc.Builder
}

// imageTable holds the refs of a table's documents in the new memory, and the size of the operations that put them.
type imageTable struct {
	ids  index.IDs
	live int64
}

// tableView is a snapshot of a table for an image.
type tableView struct {
	number uint64
	schema *doc.Schema
	next   int64
	view   view
}

// stateLocked returns the state for an image as of now. It needs the lock, shared or not.
func (db *DB) stateLocked() (head, []tableView) {
	m := db.memory.snapshot()
	tables := make([]tableView, 0, len(db.tables))
	for _, name := range slices.Sorted(maps.Keys(db.tables)) {
		t := db.tables[name]
		tables = append(tables, tableView{t.number, t.schema, t.next, t.view(m)})
	}
	return head{Seq: db.seq, Tables: db.counted, History: db.history, Left: db.left}, tables
}

func (w *imageWriter) write(ctx context.Context, h head, tables []tableView) error {
	w.tables = map[uint64]*imageTable{}
	w.begin()
	w.record = appendHead(w.record, h)
	for _, t := range tables {
		w.record = appendSchema(w.record, opCreate, t.number, t.schema)
		w.record = appendNumbers(w.record, opNext, t.number, uint64(t.next))
		if err := w.documents(ctx, t); err != nil {
			return err
		}
	}
	return w.end()
}

func (w *imageWriter) documents(ctx context.Context, t tableView) (err error) {
	to := new(imageTable)
	w.tables[t.number] = to
	dropped := t.schema.Dropped()
	n := 0
	t.view.ids.Ascend(1, func(id int64, ref uint64) bool {
		if len(w.record) >= imageRecord {
			if err = w.end(); err != nil {
				return false
			}
			w.begin()
		}
		if n++; n%checkEvery == 0 {
			err = fail.Stopped(ctx, "rewriting the file, %s of %s documents of %s done",
				fail.Thousands(n), fail.Thousands(t.view.ids.Len()), t.schema.Name)
			if err != nil {
				return false
			}
		}
		w.record = append(w.record, opPut)
		w.record = binary.AppendUvarint(w.record, t.number)
		at := len(w.record)
		w.document(t.view.memory.document(ref), dropped)
		to.ids.Set(id, makeRef(len(w.memory.segments), at))
		to.live += putSize(t.number, w.record[at:])
		return true
	})
	return err
}

// document adds d to the record, without the values in the slots of dropped fields.
func (w *imageWriter) document(d doc.Document, dropped []int) {
	if !slices.ContainsFunc(dropped, func(slot int) bool { return d.Field(slot) != nil }) {
		w.record = append(w.record, d...)
		return
	}
	w.build.Reset(d.Slots())
	w.build.Copy(d)
	w.build.Clear(dropped)
	w.record = w.build.AppendTo(w.record, d.ID())
}

func (w *imageWriter) begin() { w.record = append(w.record[:0], make([]byte, wal.HeaderSize)...) }

// end emits the record and makes a copy of it a segment of the memory, where its documents' refs already point. The spare
// capacity of the record itself would be kept alive as long as the segment without being counted.
func (w *imageWriter) end() error {
	record := slices.Clone(w.record)
	w.memory.adopt(record)
	return w.emit(record)
}
