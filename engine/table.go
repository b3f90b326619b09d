package engine

import (
	"context"
	"math"
	"slices"

	"fenec/engine/derived"
	"fenec/engine/doc"
	"fenec/engine/index"
	"fenec/engine/index/hnsw"
	"fenec/engine/index/text"
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

	sum        *tableSum // nil until it is first asked for
	schemaHash uint64    // 0 until it is first asked for

	indexes *derived.Collection
}

// addTable adds an empty collection to the database.
func (db *DB) addTable(number uint64, s *doc.Schema) *table {
	t := &table{
		db: db, memory: &db.memory, number: number, schema: s, ttl: s.TTL(), ids: new(index.IDs), next: 1, servers: isServers(s.Name),
	}
	t.indexes = db.derived.NewCollection(number, s, t)
	db.counted = max(db.counted, number)
	db.insertTable(t)
	return t
}

func (db *DB) insertTable(t *table) {
	db.tables[t.schema.Name] = t
	db.numbers[t.number] = t
	db.derived.Insert(t.indexes)
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
	db.derived.Delete(t.indexes)
	db.space.live -= t.live
	if at, ok := slices.BinarySearch(db.names, t.schema.Name); ok {
		db.names = slices.Delete(db.names, at, at+1)
	}
	db.version++
	db.tx.asked = nil
}

// countLive adds the bytes of the operation that put d to the live bytes, or subtracts them if sign is -1, and counts d in the
// sum.
func (t *table) countLive(d doc.Document, sign int64) {
	n := sign * putSize(t.number, d)
	t.live += n
	t.db.space.live += n
	if t.sum != nil {
		t.countSum(d, sign)
	}
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

// Schema to Inverted implement query.Table, and Len, Get and Ascend also derived.Documents.

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

func (t *table) Ready(ctx context.Context, on string) error { return t.indexes.Ready(ctx, on) }

func (t *table) Hash(on string) *index.Hash { return t.indexes.Hash(on) }

func (t *table) Sorted(on string) *index.Sorted { return t.indexes.Sorted(on) }

func (t *table) Vectors(on string) *hnsw.Graph { return t.indexes.Vectors(on) }

func (t *table) Text(on string) *text.Index { return t.indexes.Text(on) }

func (t *table) Inverted(on string) *index.Inverted { return t.indexes.Inverted(on) }

// put makes the document at ref the one of its id and returns the ref it replaces. The built indexes are updated.
func (t *table) put(id int64, ref uint64) (old uint64, had bool) {
	d := t.memory.document(ref)
	t.countLive(d, 1)
	t.indexes.Changed(id)
	if !t.indexes.AnyBuilt() {
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
	t.indexes.Remove(id, before, d)
	t.ids.Set(id, ref)
	t.indexes.Add(id, before, d)
	return old, had
}

// remove removes the document of id and updates the indexes.
func (t *table) remove(id int64) (old uint64, had bool) {
	old, had = t.ids.Get(id)
	if !had {
		return 0, false
	}
	d := t.memory.document(old)
	t.indexes.Changed(id)
	t.indexes.Remove(id, d, nil)
	t.ids.Delete(id)
	t.countLive(d, -1)
	return old, true
}

// setSchema makes s the schema of t and of its indexes.
func (t *table) setSchema(s *doc.Schema) {
	if !slices.Equal(t.schema.Dropped(), s.Dropped()) {
		t.forgetSum()
	}
	t.schema, t.ttl, t.schemaHash = s, s.TTL(), 0
	t.indexes.SetSchema(s)
}

// Approximate bytes in the heap of a table and a field.
const (
	tableBytes = 272
	fieldBytes = 176
)

// bytes returns what the table takes in addition to its documents.
func (t *table) bytes() int64 {
	return t.ids.Bytes() + tableBytes + int64(len(t.schema.Fields))*fieldBytes + t.indexes.Bytes()
}
