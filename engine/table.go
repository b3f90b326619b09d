package engine

import (
	"math"
	"slices"

	"fenec/engine/doc"
	"fenec/engine/index"
)

// table is one collection: where its documents are, the next id, and the indexes built so far. The database's lock
// guards it.
type table struct {
	db     *DB
	memory *memory // of db
	number uint64  // names it in the file
	schema *doc.Schema
	ttl    *doc.Field // of the schema; nil where it has none
	ids    *index.IDs
	next   int64 // the id handed out next; 0 once they are used up
	live   int64 // bytes of the operations that put the documents there are
	// servers is set for a collection of the server's own.
	servers bool

	derived  []*derived
	watchers []*building // indexes being built beside the database
}

// addTable makes an empty collection part of the database.
func (db *DB) addTable(number uint64, s *doc.Schema) *table {
	t := &table{db: db, memory: &db.memory, number: number, schema: s, ids: new(index.IDs), next: 1, servers: isServers(s.Name)}
	db.counted = max(db.counted, number)
	t.follow(s)
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

// lives counts the operation that put d among what is live, or with sign -1 out of it.
func (t *table) lives(d doc.Document, sign int64) {
	n := sign * putSize(t.number, d)
	t.live += n
	t.db.space.live += n
}

// moves reports whether a document of that id moves the counter.
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

// Schema, Len, Get and Ascend are query.Table, with the indexes of kinds.go.

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

// put makes the document at ref the one of its id and returns the ref it replaces. The built indexes follow.
func (t *table) put(id int64, ref uint64) (old uint64, had bool) {
	d := t.memory.document(ref)
	t.lives(d, 1)
	t.tell(id)
	if !t.indexed() {
		if old, had = t.ids.Set(id, ref); had {
			t.lives(t.memory.document(old), -1)
		}
		return old, had
	}
	var before doc.Document
	if old, had = t.ids.Get(id); had {
		before = t.memory.document(old)
		t.lives(before, -1)
	}
	if t.ttl != nil {
		t.moveEnd(before, d)
	}
	// An index that is asked for a value while it changes must find the document it holds: the old one until every
	// entry of it is out, the new one from then on.
	for _, x := range t.derived {
		if s := x.there(); s != nil && had && !sameValue(x.value(before), x.value(d)) {
			s.remove(x.value(before), id)
		}
	}
	t.ids.Set(id, ref)
	for _, x := range t.derived {
		if s := x.there(); s != nil && (!had || !sameValue(x.value(before), x.value(d))) {
			s.add(x.value(d), id)
		}
	}
	return old, had
}

// indexed reports whether an index of t is built.
func (t *table) indexed() bool {
	for _, x := range t.derived {
		if x.there() != nil {
			return true
		}
	}
	return false
}

// sameValue tells that an index need not move.
func sameValue(a, b doc.Value) bool {
	return a.Kind == b.Kind && (a.Kind == doc.Null || doc.Equal(a, b))
}

// remove takes the document of id out, and the indexes follow.
func (t *table) remove(id int64) (old uint64, had bool) {
	old, had = t.ids.Get(id)
	if !had {
		return 0, false
	}
	d := t.memory.document(old)
	t.tell(id)
	if t.ttl != nil {
		t.moveEnd(d, nil)
	}
	for _, x := range t.derived {
		if s := x.there(); s != nil {
			s.remove(x.value(d), id)
		}
	}
	t.ids.Delete(id)
	t.lives(d, -1)
	return old, true
}

// moveEnd tells the text indexes, whose statistics leave out what has ended, that a document of a table with a ttl comes, goes
// or is another now; the one that is not there is nil.
func (t *table) moveEnd(before, after doc.Document) {
	for _, x := range t.derived {
		s, ok := x.there().(textIndex)
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

// end is the time and the text of a document that has both, d being nil for none.
func (x *derived) end(d doc.Document) (end int64, text []byte, ok bool) {
	if d == nil {
		return 0, nil, false
	}
	if end, ok = d.Field(x.table.ttl.Slot).Timestamp(); ok {
		text, ok = d.Field(x.slot).Text()
	}
	return end, text, ok
}

// tell leaves word of a change for the indexes being built.
func (t *table) tell(id int64) {
	for _, w := range t.watchers {
		w.changed = append(w.changed, id)
	}
}

// What a table, a field and an index not built yet take in the heap, about, in bytes.
const (
	tableBytes   = 320
	fieldBytes   = 176
	derivedBytes = 208
)

// bytes is what the table holds beside its documents.
func (t *table) bytes() int64 {
	n := t.ids.Bytes() + tableBytes + int64(len(t.schema.Fields))*fieldBytes + int64(len(t.derived))*derivedBytes
	for _, x := range t.derived {
		if s := x.there(); s != nil {
			n += s.bytes()
		} else {
			n += x.kept.bytes()
		}
	}
	return n
}
