package engine

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"fenec/engine/doc"
	"fenec/engine/index"
)

// table is one collection: where its documents are, the next id, and the indexes built so far. The database's lock
// guards it.
type table struct {
	memory *memory
	number uint64 // names it in the file
	schema *doc.Schema
	ttl    *doc.Field // of the schema; nil where it has none
	ids    *index.IDs
	next   int64 // the id handed out next; 0 once they are used up
	live   int64 // bytes of its documents, dead ones not counted

	derived  []*derived
	watchers []*building // indexes being built beside the database
}

// addTable makes an empty collection part of the database.
func (db *DB) addTable(number uint64, s *doc.Schema) *table {
	t := &table{memory: &db.memory, number: number, schema: s, ids: new(index.IDs), next: 1}
	db.counted = max(db.counted, number)
	t.follow(s)
	db.insertTable(t)
	return t
}

func (db *DB) insertTable(t *table) {
	db.tables[t.schema.Name] = t
	db.numbers[t.number] = t
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
	if at, ok := slices.BinarySearch(db.names, t.schema.Name); ok {
		db.names = slices.Delete(db.names, at, at+1)
	}
	db.version++
	db.tx.asked = nil
}

// load is a document of the file, before there are indexes.
func (t *table) load(d doc.Document, ref uint64) {
	id := d.ID()
	if old, had := t.ids.Set(id, ref); had {
		t.live -= int64(len(t.memory.document(old)))
	}
	t.live += int64(len(d))
	t.take(id)
}

func (t *table) unload(id int64) {
	if old, had := t.ids.Delete(id); had {
		t.live -= int64(len(t.memory.document(old)))
	}
}

// take moves the counter past id.
func (t *table) take(id int64) {
	switch {
	case t.next == 0 || id < t.next:
	case id == math.MaxInt64:
		t.next = 0
	default:
		t.next = id + 1
	}
}

// Schema, Len, Get, Ascend, Hash and Sorted are query.Table.

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

func (t *table) Hash(on string) *index.Hash {
	if x := t.index(on); x != nil {
		return x.built().hash
	}
	return nil
}

func (t *table) Sorted(on string) *index.Sorted {
	if x := t.index(on); x != nil {
		return x.built().sorted
	}
	return nil
}

func (t *table) index(on string) *derived {
	for _, x := range t.derived {
		if x.on == on {
			return x
		}
	}
	return nil
}

// derived is one index of a table: nothing until a statement needs it, kept by every write from then on.
type derived struct {
	table      *table
	collection string // the table's name
	on         string // what the schema calls the field or path, which a rename changes
	index      doc.Index
	slot       int
	path       []string // within the field, for an index on a path

	mu    sync.Mutex // held while it is built
	state atomic.Pointer[derivedState]
}

// derivedState is a built index: one of the two.
type derivedState struct {
	hash   *index.Hash
	sorted *index.Sorted
}

// newDerived is an unbuilt index of t on a field or path, nil where t has no such field.
func (t *table) newDerived(on string, declared doc.Index) *derived {
	name, rest, isPath := strings.Cut(on, ".")
	f := t.schema.Field(name)
	if f == nil {
		return nil
	}
	x := &derived{table: t, collection: t.schema.Name, on: on, index: declared, slot: f.Slot}
	if isPath {
		x.path = strings.Split(rest, ".")
	}
	return x
}

// follow makes s the schema of t and t.derived what it declares, keeping what is built of the indexes that stay.
func (t *table) follow(s *doc.Schema) {
	t.schema, t.ttl = s, s.TTL()
	var declared []*derived
	declare := func(on string, index doc.Index) {
		x := t.newDerived(on, index)
		if x == nil {
			return
		}
		if had := t.like(x); had != nil {
			had.on = on
			x = had
		}
		declared = append(declared, x)
	}
	for _, f := range s.Fields {
		if f.Index.Kind != 0 {
			declare(f.Name, f.Index)
		}
	}
	for _, p := range s.Paths {
		declare(p.Path, doc.Index{Kind: p.Index})
	}
	t.derived = declared
}

// like is the index of t that holds what x would; nil where there is none.
func (t *table) like(x *derived) *derived {
	for _, had := range t.derived {
		if had.same(x) {
			return had
		}
	}
	return nil
}

// same tells that x and y hold the same of each document, whatever it is called.
func (x *derived) same(y *derived) bool {
	return x.index == y.index && x.slot == y.slot && slices.Equal(x.path, y.path)
}

// value is what the index holds of d.
func (x *derived) value(d doc.Document) doc.Value {
	raw := d.Field(x.slot)
	if x.path != nil {
		raw = raw.Path(x.path)
	}
	return raw.Value()
}

// built is the index, built now where it was not. Readers that need it together wait for one of them to build it;
// the caller holds the database's lock, shared or not.
func (x *derived) built() *derivedState {
	if s := x.state.Load(); s != nil {
		return s
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.state.Load()
	if s == nil {
		s = x.build()
		x.state.Store(s)
	}
	return s
}

func (x *derived) build() *derivedState {
	s := x.empty(x.table.Get)
	s.fill(x.table.Len(), func(add func(v doc.Value, id int64)) {
		x.table.Ascend(1, func(d doc.Document) bool {
			add(x.value(d), d.ID())
			return true
		})
	})
	return s
}

// empty is the index of no document yet; get finds those it will hold.
func (x *derived) empty(get func(id int64) doc.Document) *derivedState {
	if !x.index.Kind.Ordered() {
		return &derivedState{hash: new(index.Hash)}
	}
	return &derivedState{sorted: index.NewSorted(func(id int64) doc.Value { return x.value(get(id)) })}
}

// fill builds an empty index in one go of about n documents, for each of which each calls add.
func (s *derivedState) fill(n int, each func(add func(v doc.Value, id int64))) {
	if s.sorted != nil {
		s.sorted.Build(n, each)
		return
	}
	s.hash.Build(n, func(add func(h uint64, id int64)) {
		each(func(v doc.Value, id int64) {
			if v.Kind != doc.Null {
				add(doc.Hash(v), id)
			}
		})
	})
}

// add and remove leave nulls out of a hash: no lookup asks for one.
func (s *derivedState) add(v doc.Value, id int64) {
	switch {
	case s.sorted != nil:
		s.sorted.Add(v, id)
	case v.Kind != doc.Null:
		s.hash.Add(doc.Hash(v), id)
	}
}

func (s *derivedState) remove(v doc.Value, id int64) {
	switch {
	case s.sorted != nil:
		s.sorted.Remove(v, id)
	case v.Kind != doc.Null:
		s.hash.Remove(doc.Hash(v), id)
	}
}

func (s *derivedState) bytes() int64 {
	if s.sorted != nil {
		return s.sorted.Bytes()
	}
	return s.hash.Bytes()
}

// put makes the document at ref the one of its id and returns the ref it replaces. The built indexes follow.
func (t *table) put(id int64, ref uint64) (old uint64, had bool) {
	old, had = t.ids.Get(id)
	d := t.memory.document(ref)
	var before doc.Document
	if had {
		before = t.memory.document(old)
		t.live -= int64(len(before))
	}
	t.live += int64(len(d))
	t.tell(id)
	if len(t.derived) == 0 {
		t.ids.Set(id, ref)
		return old, had
	}
	// An index that is asked for a value while it changes must find the document it holds: the old one until every
	// entry of it is out, the new one from then on.
	for _, x := range t.derived {
		if s := x.state.Load(); s != nil && had && !sameValue(x.value(before), x.value(d)) {
			s.remove(x.value(before), id)
		}
	}
	t.ids.Set(id, ref)
	for _, x := range t.derived {
		if s := x.state.Load(); s != nil && (!had || !sameValue(x.value(before), x.value(d))) {
			s.add(x.value(d), id)
		}
	}
	return old, had
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
	for _, x := range t.derived {
		if s := x.state.Load(); s != nil {
			s.remove(x.value(d), id)
		}
	}
	t.ids.Delete(id)
	t.live -= int64(len(d))
	return old, true
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
	fieldBytes   = 56
	derivedBytes = 96
)

// bytes is what the table holds beside its documents.
func (t *table) bytes() int64 {
	n := t.ids.Bytes() + tableBytes + int64(len(t.schema.Fields))*fieldBytes + int64(len(t.derived))*derivedBytes
	for _, x := range t.derived {
		if s := x.state.Load(); s != nil {
			n += s.bytes()
		}
	}
	return n
}
