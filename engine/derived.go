package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"fenec/engine/collation"
	"fenec/engine/doc"
)

// derived is one index of a table. It is built by the first statement that needs it and updated by every write after that.
type derived struct {
	table      *table
	collection string // the table's name
	on         string // what the schema calls the field or path, which a rename changes
	index      doc.Index
	slot       int
	vector     doc.Type            // of the field; used if it holds vectors
	collate    collation.Collation // of the field
	path       []string            // within the field, for an index on a path

	mu    sync.Mutex // held while it is built
	kept  keptGraphs // the graphs in the file to build it from
	state atomic.Pointer[builtIndex]
}

// builtIndex is an index that is built, of one of the kinds in kinds.go. It is changed under the database's exclusive lock,
// or by the goroutine that builds it before others can find it.
type builtIndex interface {
	// fill fills an empty index with about n documents; each calls add for every one of them.
	fill(n int, each func(add func(v doc.Value, id int64)))
	add(v doc.Value, id int64)
	// remove removes a document with the value it was added with.
	remove(v doc.Value, id int64)
	bytes() int64
}

// newDerived returns an unbuilt index of t on a field or path, or nil if t has no such field.
func (t *table) newDerived(on string, declared doc.Index) *derived {
	name, rest, isPath := strings.Cut(on, ".")
	f := t.schema.Field(name)
	if f == nil {
		return nil
	}
	x := &derived{table: t, collection: t.schema.Name, on: on, index: declared, slot: f.Slot, vector: f.Type, collate: f.Collate}
	if isPath {
		x.path = strings.Split(rest, ".")
	}
	return x
}

// setSchema makes s the schema of t and t.derived the indexes that it declares. Indexes that stay remain built.
func (t *table) setSchema(s *doc.Schema) {
	was := t.ttl
	t.schema, t.ttl = s, s.TTL()
	if was != nil && (t.ttl == nil || t.ttl.Slot != was.Slot) {
		t.forgetEnds()
	}
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

// forgetEnds resets the expiry times in the text indexes, after the ttl field was dropped or changed.
func (t *table) forgetEnds() {
	for _, x := range t.derived {
		if s, ok := x.ifBuilt().(textIndex); ok {
			s.ForgetEnds()
		}
	}
}

// like returns the index of t that holds what x would, or nil.
func (t *table) like(x *derived) *derived {
	for _, had := range t.derived {
		if had.same(x) {
			return had
		}
	}
	return nil
}

// same reports whether x and y hold the same value of each document, whatever the field is called. The type of a field
// never changes, and its slot is never reused.
func (x *derived) same(y *derived) bool {
	return x.index == y.index && x.slot == y.slot && slices.Equal(x.path, y.path)
}

// built returns the index on a field or path and builds it if needed. It returns nil if none is declared.
func (t *table) built(on string) builtIndex {
	if x := t.index(on); x != nil {
		return x.built()
	}
	return nil
}

// Ready implements query.Table.
func (t *table) Ready(ctx context.Context, on string) error {
	if x := t.index(on); x != nil {
		return x.ready(ctx)
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

// value returns what the index holds of d.
func (x *derived) value(d doc.Document) doc.Value {
	raw := d.Field(x.slot)
	if x.path != nil {
		raw = raw.Path(x.path)
	}
	return raw.Value()
}

// ifBuilt returns the index if it is built, and nil if no statement has needed it yet.
func (x *derived) ifBuilt() builtIndex {
	if s := x.state.Load(); s != nil {
		return *s
	}
	return nil
}

// built returns the index and builds it if needed.
func (x *derived) built() builtIndex {
	if err := x.ready(context.Background()); err != nil {
		panic(err) // that context never ends
	}
	return x.ifBuilt()
}

// ready builds the index if it is not built, unless ctx ends. If several readers need it, one builds it and the others
// wait. The caller holds the database's lock, shared or not.
func (x *derived) ready(ctx context.Context) error {
	if x.ifBuilt() != nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ifBuilt() != nil {
		return nil
	}
	s, err := x.build(ctx)
	if err != nil {
		return err
	}
	x.state.Store(&s)
	if x.index.Kind == doc.IndexHNSW {
		x.table.db.linker.want() // it can find the graph only now
	}
	return nil
}

// build builds the index from the current documents, using the graph in the file if it is usable.
func (x *derived) build(ctx context.Context) (builtIndex, error) {
	n, of := 0, x.table.Len()
	err := x.late(ctx, n, of, documentsRead) // it may have waited long for another goroutine that built it
	if err != nil {
		return nil, err
	}
	if s := x.restore(); s != nil {
		return s, nil
	}
	s := x.empty(x.table.Get)
	s.fill(of, func(add func(v doc.Value, id int64)) {
		x.table.Ascend(1, func(d doc.Document) bool {
			if n++; n%checkEvery == 0 {
				err = x.late(ctx, n, of, documentsRead)
			}
			if err == nil {
				add(x.value(d), d.ID())
			}
			return err == nil
		})
	})
	return s, err
}
