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

// derived is one index of a table: nothing until a statement needs it, kept by every write from then on.
type derived struct {
	table      *table
	collection string // the table's name
	on         string // what the schema calls the field or path, which a rename changes
	index      doc.Index
	slot       int
	vector     doc.Type            // of the field; looked at where it holds vectors
	collate    collation.Collation // of the field
	path       []string            // within the field, for an index on a path

	mu    sync.Mutex // held while it is built
	kept  keptGraphs // what the file has to build it of
	state atomic.Pointer[builtIndex]
}

// builtIndex is an index that is there, of one of the kinds in kinds.go. It is changed under the database's exclusive
// lock, or by whoever builds it before others can find it.
type builtIndex interface {
	// fill makes an empty index that of about n documents, for each of which each calls add.
	fill(n int, each func(add func(v doc.Value, id int64)))
	add(v doc.Value, id int64)
	// remove takes out a document with the value it was added with.
	remove(v doc.Value, id int64)
	bytes() int64
}

// newDerived is an unbuilt index of t on a field or path, nil where t has no such field.
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

// follow makes s the schema of t and t.derived what it declares, keeping what is built of the indexes that stay.
func (t *table) follow(s *doc.Schema) {
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

// forgetEnds tells the text indexes that no document has an end, or each another one.
func (t *table) forgetEnds() {
	for _, x := range t.derived {
		if s, ok := x.there().(textIndex); ok {
			s.ForgetEnds()
		}
	}
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

// same tells that x and y hold the same of each document, whatever it is called. What a field holds never changes, nor
// is its slot ever another's.
func (x *derived) same(y *derived) bool {
	return x.index == y.index && x.slot == y.slot && slices.Equal(x.path, y.path)
}

// built is the index on a field or path, built now where it was not; nil where none is declared.
func (t *table) built(on string) builtIndex {
	if x := t.index(on); x != nil {
		return x.built()
	}
	return nil
}

// Ready is query.Table.
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

// value is what the index holds of d.
func (x *derived) value(d doc.Document) doc.Value {
	raw := d.Field(x.slot)
	if x.path != nil {
		raw = raw.Path(x.path)
	}
	return raw.Value()
}

// there is the index where it is built, and nil where no statement has needed it yet.
func (x *derived) there() builtIndex {
	if s := x.state.Load(); s != nil {
		return *s
	}
	return nil
}

// built is the index, built now where it was not.
func (x *derived) built() builtIndex {
	if err := x.ready(context.Background()); err != nil {
		panic(err) // that context has no end
	}
	return x.there()
}

// ready builds the index where it was not, unless ctx ends. Readers that need it together wait for one of them to build
// it; the caller holds the database's lock, shared or not.
func (x *derived) ready(ctx context.Context) error {
	if x.there() != nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.there() != nil {
		return nil
	}
	s, err := x.build(ctx)
	if err != nil {
		return err
	}
	x.state.Store(&s)
	if x.index.Kind == doc.IndexHNSW {
		x.table.db.linker.want() // which finds the graph only now
	}
	return nil
}

// build makes the index of the documents as they are, of what the file keeps of it where that is of use.
func (x *derived) build(ctx context.Context) (builtIndex, error) {
	n, of := 0, x.table.Len()
	err := x.late(ctx, n, of, documentsRead) // perhaps it waited long for others who built it
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
