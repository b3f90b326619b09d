package engine

import (
	"math"
	"slices"

	"fenec/engine/doc"
	"fenec/engine/index"
)

// table is one collection: the refs of its documents, the next id and the indexes. The database's lock guards it.
type table struct {
	db     *DB
	memory *memory // of db
	number uint64  // names it in the file
	schema *doc.Schema
	ttl    *doc.Field // of the schema; nil if it has none
	ids    *index.IDs
	next   int64 // the id assigned next; 0 once they are used up
	live   int64 // bytes of the operations that put the current documents
	// servers is set for an internal collection.
	servers bool

	derived  []*derived
	watchers []*building // indexes that are being built while writes go on
}

// addTable adds an empty collection to the database.
func (db *DB) addTable(number uint64, s *doc.Schema) *table {
	t := &table{db: db, memory: &db.memory, number: number, schema: s, ids: new(index.IDs), next: 1, servers: isServers(s.Name)}
	db.counted = max(db.counted, number)
	t.setSchema(s)
	db.insertTable(t)
	return t
}

func (db *DB) insertTable(t *table) {
	db.tables[t.schema.Name] = t
	db.numbers[t.number] = t
	db.space.live += t.live
	if !isServers(t.schema.Name) {
		at, _ := slices.BinarySearch(db.names, t.schema.Name)
		db.names = slices.Insert(db.names, at, t.schema.Name)
	}
	db.version++
	db.tx.asked = nil
}

func (db *DB) removeTable(t *table) {
	delete(db.tables, t.schema.Name)
	delete(db.numbers, t.number)
	db.space.live -= t.live
	if at, ok := slices.BinarySearch(db.names, t.schema.Name); ok {
		db.names = slices.Delete(db.names, at, at+1)
	}
	db.version++
	db.tx.asked = nil
}

// countLive adds the bytes of the operation that put d to the live bytes, or subtracts them if sign is -1.
func (t *table) countLive(d doc.Document, sign int64) {
	n := sign * putSize(t.number, d)
	t.live += n
	t.db.space.live += n
}

// moves reports whether a document with that id moves the counter of ids.
func (t *table) moves(id int64) bool { return t.next != 0 && id >= t.next }

// take moves the counter past id.
func (t *table) take(id int64) {
	switch {
	case !t.moves(id):
	case id == math.MaxInt64:
		t.next = 0
	default:
		t.next = id + 1
	}
}

// Schema, Len, Get and Ascend implement query.Table, with the indexes of kinds.go.

func (t *table) Schema() *doc.Schema { return t.schema }

func (t *table) Len() int { return t.ids.Len() }

func (t *table) Get(id int64) doc.Document {
	ref, ok := t.ids.Get(id)
	if !ok {
		return nil
	}
	return t.memory.document(ref)
}

func (t *table) Ascend(from int64, fn func(doc.Document) bool) {
	segments := t.memory.segments
	t.ids.AscendRefs(from, func(refs []uint64) bool {
		for _, ref := range refs {
			if !fn(doc.At(segments[ref>>refShift], ref&refMask)) {
				return false
			}
		}
		return true
	})
}

// put makes the document at ref the one of its id and returns the ref it replaces. The built indexes are updated.
func (t *table) put(id int64, ref uint64) (old uint64, had bool) {
	d := t.memory.document(ref)
	t.countLive(d, 1)
	t.noteChange(id)
	if !t.indexed() {
		if old, had = t.ids.Set(id, ref); had {
			t.countLive(t.memory.document(old), -1)
		}
		return old, had
	}
	var before doc.Document
	if old, had = t.ids.Get(id); had {
		before = t.memory.document(old)
		t.countLive(before, -1)
	}
	if t.ttl != nil {
		t.moveEnd(before, d)
	}
	// An index that looks up a value while it changes must find the document it holds: the old one until all its entries
	// are removed, the new one from then on.
	for _, x := range t.derived {
		if s := x.ifBuilt(); s != nil && had && !sameValue(x.value(before), x.value(d)) {
			s.remove(x.value(before), id)
		}
	}
	t.ids.Set(id, ref)
	for _, x := range t.derived {
		if s := x.ifBuilt(); s != nil && (!had || !sameValue(x.value(before), x.value(d))) {
			s.add(x.value(d), id)
		}
	}
	return old, had
}

// indexed reports whether an index of t is built.
func (t *table) indexed() bool {
	for _, x := range t.derived {
		if x.ifBuilt() != nil {
			return true
		}
	}
	return false
}

// sameValue reports whether an index need not change.
func sameValue(a, b doc.Value) bool {
	return a.Kind == b.Kind && (a.Kind == doc.Null || doc.Equal(a, b))
}

// remove removes the document of id and updates the indexes.
func (t *table) remove(id int64) (old uint64, had bool) {
	old, had = t.ids.Get(id)
	if !had {
		return 0, false
	}
	d := t.memory.document(old)
	t.noteChange(id)
	if t.ttl != nil {
		t.moveEnd(d, nil)
	}
	for _, x := range t.derived {
		if s := x.ifBuilt(); s != nil {
			s.remove(x.value(d), id)
		}
	}
	t.ids.Delete(id)
	t.countLive(d, -1)
	return old, true
}

// moveEnd notifies the text indexes that a document of a table with a ttl is added, removed or replaced: their statistics
// leave out expired documents. before or after is nil if there is none.
func (t *table) moveEnd(before, after doc.Document) {
	for _, x := range t.derived {
		s, ok := x.ifBuilt().(textIndex)
		if !ok {
			continue
		}
		if end, text, ok := x.end(before); ok {
			s.RemoveEnd(end, text)
		}
		if end, text, ok := x.end(after); ok {
			s.AddEnd(end, text)
		}
	}
}

// end returns the expiry time and the text of d, if d is not nil and has both.
func (x *derived) end(d doc.Document) (end int64, text []byte, ok bool) {
	if d == nil {
		return 0, nil, false
	}
	if end, ok = d.Field(x.table.ttl.Slot).Timestamp(); ok {
		text, ok = d.Field(x.slot).Text()
	}
	return end, text, ok
}

// noteChange records a changed id for the indexes that are being built.
func (t *table) noteChange(id int64) {
	for _, w := range t.watchers {
		w.changed = append(w.changed, id)
	}
}

// Approximate bytes in the heap of a table, a field and an index that is not built.
const (
	tableBytes   = 320
	fieldBytes   = 176
	derivedBytes = 208
)

// bytes returns what the table takes in addition to its documents.
func (t *table) bytes() int64 {
	n := t.ids.Bytes() + tableBytes + int64(len(t.schema.Fields))*fieldBytes + int64(len(t.derived))*derivedBytes
	for _, x := range t.derived {
		if s := x.ifBuilt(); s != nil {
			n += s.bytes()
		} else {
			n += x.kept.bytes()
		}
	}
	return n
}
