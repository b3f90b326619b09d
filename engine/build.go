package engine

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"fenec/engine/doc"
	"fenec/engine/index"
	"fenec/engine/query"
	"fenec/engine/query/syntax"
)

// view is a snapshot of a table. Its bytes never change, so it is read without a lock.
type view struct {
	memory memory
	ids    *index.IDs
}

// view returns the table as of now; m is a snapshot of the memory. It needs the database's lock, shared or not.
func (t *table) view(m memory) view { return view{memory: m, ids: t.ids.Clone()} }

func (v *view) get(id int64) doc.Document {
	ref, ok := v.ids.Get(id)
	if !ok {
		return nil
	}
	return v.memory.document(ref)
}

// building is an index that is built while the database runs: from a view, without a lock, while writes to the table
// record the ids they change. The statement that declares the index then only applies those changes.
type building struct {
	index   *derived
	view    view
	ttl     *doc.Field  // of the view
	now     time.Time   // when its documents were checked; the expired ones were left out
	live    atomic.Bool // values are read from the table, no longer from the view
	changed []int64     // guarded by the database's lock
}

// watch starts to record the changes of the table on which s is about to declare an index. It returns nil for any other
// statement, and if s will be refused or the index exists.
func (db *DB) watch(s *statement) *building {
	create, ok := s.tree.(*syntax.CreateIndex)
	if !ok {
		return nil
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if _, err := s.plan(&db.reader); err != nil || db.writableLocked() != nil {
		return nil
	}
	t := db.tables[create.Collection.Text]
	on := strings.Join(create.On.Parts, ".")
	if t.index(on) != nil {
		return nil
	}
	return t.watch(t.newDerived(on, create.Index))
}

// watch starts to record the changes of t for x, which is to be built. It needs the exclusive lock.
func (t *table) watch(x *derived) *building {
	b := &building{index: x}
	t.watchers = append(t.watchers, b)
	return b
}

// prepare builds the index b, which may be nil.
func (db *DB) prepare(env *query.Env, b *building) error {
	if b == nil || !db.snapshotFor(b) {
		return nil
	}
	env.Now = db.opts.Clock()
	return b.build(env)
}

// snapshotFor takes the view that b is built from. It returns false if the collection was dropped since the watch began: its ids
// no longer match the memory.
func (db *DB) snapshotFor(b *building) bool {
	db.mu.RLock()
	defer db.mu.RUnlock()
	t := b.index.table
	if db.numbers[t.number] != t {
		return false
	}
	b.view, b.ttl = t.view(db.memory.snapshot()), t.ttl
	return true
}

func (db *DB) unwatch(b *building) {
	if b == nil {
		return
	}
	db.mu.Lock()
	t := b.index.table
	t.watchers = slices.DeleteFunc(t.watchers, func(w *building) bool { return w == b })
	b.changed = nil // the index's lookup of values keeps b alive
	db.mu.Unlock()
}

// build fills the index from the view.
func (b *building) build(env *query.Env) error {
	x := b.index
	s := x.empty(func(id int64) doc.Document {
		if b.live.Load() {
			return x.table.Get(id)
		}
		return b.view.get(id)
	})
	x.state.Store(&s)
	n, of := 0, b.view.ids.Len()
	ctx := env.Ctx // so that env does not escape to the closure
	stopped := func() error { return x.stopped(ctx, n, of, documentsRead) }
	var err error
	s.fill(of, func(add func(v doc.Value, id int64)) {
		b.view.ids.Ascend(1, func(id int64, ref uint64) bool {
			if n++; n%checkEvery == 0 {
				err = stopped()
			}
			if err == nil {
				add(x.value(b.view.memory.document(ref)), id)
			}
			return err == nil
		})
	})
	if g, ok := s.(*graphIndex); ok && err == nil {
		err = g.linkAll(func(linked, of int) error { return x.stopped(ctx, linked, of, "vectors linked") })
	}
	if err == nil && x.index.Kind == doc.IndexUnique {
		b.now = env.Now
		err = x.distinct(ctx, unexpired(b.view.get, b.ttl, b.now), b.view.ids)
	}
	return err
}

// checkEvery is how many documents are read between two checks of a context.
const checkEvery = 4096

// documentsRead names the first phase of building an index, for the message of a timeout.
const documentsRead = "documents read"

// stopped returns why the building of x, of which n of so many are done, has to stop, or nil. It takes the database's
// lock.
func (x *derived) stopped(ctx context.Context, n, of int, done string) error {
	if err := x.table.db.Writable(); err != nil {
		return err
	}
	return x.late(ctx, n, of, done)
}

// late is stopped that checks only the context.
func (x *derived) late(ctx context.Context, n, of int, done string) error {
	return query.Stopped(ctx, "building the index %s on %s of %s, %s of %s %s",
		x.index.Kind, x.on, x.collection, query.Thousands(min(n, of)), query.Thousands(of), done)
}

// declares reports whether b is the index of that declaration.
func (b *building) declares(t *table, on string, declared doc.Index) bool {
	x := t.newDerived(on, declared)
	return b.index.table == t && x != nil && b.index.same(x)
}

// distinctChanges fails if a document that changed during the build shares a unique value. The view's documents have been
// checked already.
func (b *building) distinctChanges(now time.Time) error {
	get := b.index.table.liveAt(now)
	for _, id := range b.changed {
		if err := b.index.checkUnique(get, id); err != nil {
			return err
		}
	}
	return nil
}

// catchUp applies the recorded changes to the index. It needs the exclusive lock.
func (b *building) catchUp() {
	s := b.index.ifBuilt()
	slices.Sort(b.changed)
	b.changed = slices.Compact(b.changed)
	for _, id := range b.changed {
		if d := b.view.get(id); d != nil {
			s.remove(b.index.value(d), id)
		}
	}
	b.live.Store(true)
	for _, id := range b.changed {
		if d := b.index.table.Get(id); d != nil {
			s.add(b.index.value(d), id)
		}
	}
	b.view = view{}
}
