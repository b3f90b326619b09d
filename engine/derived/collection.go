package derived

import (
	"context"
	"slices"
	"strings"

	"fenec/engine/doc"
	"fenec/engine/index"
	"fenec/engine/index/hnsw"
	"fenec/engine/index/text"
)

// Collection is the indexes of one collection. Unless a method says otherwise, it needs the lock, shared or not.
type Collection struct {
	database *Database
	number   uint64 // names the collection in the file
	name     string
	docs     Documents
	schema   *doc.Schema
	ttl      *doc.Field // of schema; nil if it has none
	indexes  []*Index
	builds   []*Build // that record the changes
}

// NewCollection returns the indexes that a schema declares on docs. They are part of d once inserted.
func (d *Database) NewCollection(number uint64, s *doc.Schema, docs Documents) *Collection {
	c := &Collection{database: d, number: number, name: s.Name, docs: docs}
	c.SetSchema(s)
	return c
}

// SetSchema makes the indexes those that s declares. Indexes that stay remain built. It needs the exclusive lock.
func (c *Collection) SetSchema(s *doc.Schema) {
	was := c.ttl
	c.schema, c.ttl = s, s.TTL()
	if was != nil && (c.ttl == nil || c.ttl.Slot != was.Slot) {
		c.forgetEnds()
	}
	var declared []*Index
	declare := func(on string, index doc.Index) {
		x := c.newIndex(on, index)
		if x == nil {
			return
		}
		if had := c.like(x); had != nil {
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
	c.indexes = declared
}

// newIndex returns an unbuilt index on a field or path, or nil if the schema has no such field.
func (c *Collection) newIndex(on string, declared doc.Index) *Index {
	name, rest, isPath := strings.Cut(on, ".")
	f := c.schema.Field(name)
	if f == nil {
		return nil
	}
	x := &Index{of: c, on: on, declared: declared, slot: f.Slot, vector: f.Type, collate: f.Collate}
	if isPath {
		x.path = strings.Split(rest, ".")
	}
	return x
}

// like returns the index that holds what x would, or nil.
func (c *Collection) like(x *Index) *Index {
	for _, had := range c.indexes {
		if had.same(x) {
			return had
		}
	}
	return nil
}

// forgetEnds resets the expiry times in the text indexes, after the ttl field was dropped or changed.
func (c *Collection) forgetEnds() {
	for _, x := range c.indexes {
		if s, ok := x.ifBuilt().(textIndex); ok {
			s.ForgetEnds()
		}
	}
}

// Indexes returns the indexes, built or not. The slice is not to be changed.
func (c *Collection) Indexes() []*Index { return c.indexes }

// Index returns the index on a field or path, or nil if none is declared.
func (c *Collection) Index(on string) *Index {
	for _, x := range c.indexes {
		if x.on == on {
			return x
		}
	}
	return nil
}

// Changed records a changed id for the indexes that are being built beside writes. It is called for each document that is put
// or removed. It needs the exclusive lock.
func (c *Collection) Changed(id int64) {
	for _, b := range c.builds {
		b.changed = append(b.changed, id)
	}
}

// AnyBuilt reports whether an index is built. If none is, Remove and Add do nothing.
func (c *Collection) AnyBuilt() bool {
	for _, x := range c.indexes {
		if x.ifBuilt() != nil {
			return true
		}
	}
	return false
}

// Remove removes the document of an id from the built indexes, before it changes from before to after, either of which is
// nil if there is no such document. It needs the exclusive lock.
//
// An index that looks up a value while it changes must find the document it holds. So Remove is called while Documents
// still returns before, and Add once it returns after.
func (c *Collection) Remove(id int64, before, after doc.Document) {
	if c.ttl != nil {
		c.moveEnd(before, after)
	}
	if before == nil {
		return
	}
	for _, x := range c.indexes {
		s := x.ifBuilt()
		if s == nil {
			continue
		}
		if v := x.value(before); after == nil || !sameValue(v, x.value(after)) {
			s.remove(v, id)
		}
	}
}

// Add adds the document of an id to the built indexes, after it has changed from before, which may be nil, to after. It needs
// the exclusive lock.
func (c *Collection) Add(id int64, before, after doc.Document) {
	for _, x := range c.indexes {
		s := x.ifBuilt()
		if s == nil {
			continue
		}
		if v := x.value(after); before == nil || !sameValue(x.value(before), v) {
			s.add(v, id)
		}
	}
}

// sameValue reports whether an index need not change.
func sameValue(a, b doc.Value) bool {
	return a.Kind == b.Kind && (a.Kind == doc.Null || doc.Equal(a, b))
}

// moveEnd notifies the text indexes that a document of a collection with a ttl is added, removed or replaced: their
// statistics leave out expired documents. before or after is nil if there is none.
func (c *Collection) moveEnd(before, after doc.Document) {
	for _, x := range c.indexes {
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

// Ready, Hash, Sorted, Vectors, Text and Inverted are those of a query.Table. They build the index if it is not built, and
// may be called by several readers at a time.

// Ready builds the index on a field or path, if one is declared, unless ctx ends.
func (c *Collection) Ready(ctx context.Context, on string) error {
	if x := c.Index(on); x != nil {
		return x.Ready(ctx)
	}
	return nil
}

// built returns the index on a field or path and builds it if needed. It returns nil if none is declared.
func (c *Collection) built(on string) builtIndex {
	if x := c.Index(on); x != nil {
		return x.built()
	}
	return nil
}

// Hash returns the hash or unique index on a field or path, or nil.
func (c *Collection) Hash(on string) *index.Hash {
	if s, ok := c.built(on).(*hashIndex); ok {
		return &s.Hash
	}
	return nil
}

// Sorted returns the sorted or ttl index on a field or path, or nil.
func (c *Collection) Sorted(on string) *index.Sorted {
	if s, ok := c.built(on).(sortedIndex); ok {
		return s.Sorted
	}
	return nil
}

// Vectors returns the vector index on a field, or nil.
func (c *Collection) Vectors(on string) *hnsw.Graph {
	if s, ok := c.built(on).(*graph); ok {
		return s.Graph
	}
	return nil
}

// Text returns the text index on a field, or nil.
func (c *Collection) Text(on string) *text.Index {
	if s, ok := c.built(on).(textIndex); ok {
		return s.Index
	}
	return nil
}

// Inverted returns the inverted index on a field, or nil.
func (c *Collection) Inverted(on string) *index.Inverted {
	if s, ok := c.built(on).(*invertedIndex); ok {
		return &s.Inverted
	}
	return nil
}

// Approximate bytes in the heap of a Collection without indexes, with its entry in Database, and of an Index that is not
// built.
const (
	collectionBytes = 136
	indexBytes      = 192
)

// Bytes returns how much memory the indexes take.
func (c *Collection) Bytes() int64 {
	n := int64(collectionBytes + len(c.indexes)*indexBytes)
	for _, x := range c.indexes {
		if s := x.ifBuilt(); s != nil {
			n += s.bytes()
		} else {
			n += x.kept.bytes()
		}
	}
	return n
}

// Filed returns about how many bytes the latest graphs of the collection take in the file.
func (c *Collection) Filed() (n int64) {
	for _, x := range c.indexes {
		n += x.kept.filed.Load()
	}
	return n
}

// Waiting returns how many vectors are not linked in the graphs.
func (c *Collection) Waiting() (n int) {
	for _, x := range c.indexes {
		if s, ok := x.ifBuilt().(*graph); ok {
			n += s.waiting()
		}
	}
	return n
}

// contains reports whether x is an index of the collection and was not dropped.
func (c *Collection) contains(x *Index) bool { return slices.Contains(c.indexes, x) }
