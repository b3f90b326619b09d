package derived

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"fenec/engine/collation"
	"fenec/engine/doc"
	"fenec/engine/fail"
)

// Index is one index of a collection.
type Index struct {
	of       *Collection
	on       string // what the schema calls the field or path, which a rename changes
	declared doc.Index
	slot     int
	vector   doc.Type            // of the field; used if it holds vectors
	collate  collation.Collation // of the field
	path     []string            // within the field, for an index on a path

	mu    sync.Mutex // held while it is built
	kept  keptGraphs // the graphs in the file to build it from
	state atomic.Pointer[builtIndex]
}

// builtIndex is an index that is built, of one of the kinds in kinds.go. It is changed under the exclusive lock, or by the
// goroutine that builds it before others can find it.
type builtIndex interface {
	// fill fills an empty index with about n documents; each calls add for every one of them.
	fill(n int, each func(add func(v doc.Value, id int64)))
	add(v doc.Value, id int64)
	// remove removes a document with the value it was added with.
	remove(v doc.Value, id int64)
	bytes() int64
}

// On returns the field or path that the index is on.
func (x *Index) On() string { return x.on }

// Kind returns the declared kind of the index.
func (x *Index) Kind() doc.IndexKind { return x.declared.Kind }

// Built reports whether the index is built.
func (x *Index) Built() bool { return x.ifBuilt() != nil }

// same reports whether x and y hold the same value of each document, whatever the field is called. The type of a field
// never changes, and its slot is never reused.
func (x *Index) same(y *Index) bool {
	return x.declared == y.declared && x.slot == y.slot && slices.Equal(x.path, y.path)
}

// value returns what the index holds of d.
func (x *Index) value(d doc.Document) doc.Value {
	raw := d.Field(x.slot)
	if x.path != nil {
		raw = raw.Path(x.path)
	}
	return raw.Value()
}

// end returns the expiry time and the text of d, if d is not nil and has both.
func (x *Index) end(d doc.Document) (end int64, text []byte, ok bool) {
	if d == nil {
		return 0, nil, false
	}
	if end, ok = d.Field(x.of.ttl.Slot).Timestamp(); ok {
		text, ok = d.Field(x.slot).Text()
	}
	return end, text, ok
}

// ifBuilt returns the index if it is built, and nil if no statement has needed it yet.
func (x *Index) ifBuilt() builtIndex {
	if s := x.state.Load(); s != nil {
		return *s
	}
	return nil
}

// built returns the index and builds it if needed.
func (x *Index) built() builtIndex {
	if err := x.Ready(context.Background()); err != nil {
		panic(err) // that context never ends
	}
	return x.ifBuilt()
}

// Ready builds the index if it is not built, unless ctx ends. If several readers need it, one builds it and the others
// wait. It needs the lock, shared or not.
func (x *Index) Ready(ctx context.Context) error {
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
	if x.declared.Kind == doc.IndexHNSW {
		x.of.database.linker.want() // it can find the graph only now
	}
	return nil
}

// build builds the index from the current documents, using the graph in the file if it is usable.
func (x *Index) build(ctx context.Context) (builtIndex, error) {
	n, of := 0, x.of.docs.Len()
	err := x.late(ctx, n, of, documentsRead) // it may have waited long for another goroutine that built it
	if err != nil {
		return nil, err
	}
	if s := x.restore(); s != nil {
		return s, nil
	}
	s := x.empty(x.of.docs.Get)
	s.fill(of, func(add func(v doc.Value, id int64)) {
		x.of.docs.Ascend(1, func(d doc.Document) bool {
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

// checkEvery is how many documents are read between two checks of a context.
const checkEvery = 4096

// documentsRead names the first phase of building an index, for the message of a timeout.
const documentsRead = "documents read"

// stopped returns why the building of x, of which n of so many are done, has to stop, or nil. It must not be called under
// the lock.
func (x *Index) stopped(ctx context.Context, n, of int, done string) error {
	if err := x.of.database.opts.Host.Writable(); err != nil {
		return err
	}
	return x.late(ctx, n, of, done)
}

// late is stopped that checks only the context.
func (x *Index) late(ctx context.Context, n, of int, done string) error {
	return fail.Stopped(ctx, "building the index %s on %s of %s, %s of %s %s",
		x.declared.Kind, x.on, x.of.name, fail.Thousands(min(n, of)), fail.Thousands(of), done)
}
