package engine

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/index"
	"fenec/engine/query/syntax"
)

// view is a table as it stood at one moment. The bytes it names never change, so it is read without a lock.
type view struct {
	memory memory
	ids    *index.IDs
}

// view needs the database's lock, shared or not.
func (t *table) view() view {
	return view{memory: memory{segments: slices.Clone(t.memory.segments)}, ids: t.ids.Clone()}
}

func (v *view) get(id int64) doc.Document {
	ref, ok := v.ids.Get(id)
	if !ok {
		return nil
	}
	return v.memory.document(ref)
}

// building is an index made beside the database: from a view, unlocked, while the table's writes leave word of the
// ids they change; the statement that declares the index then only catches up with those.
type building struct {
	index   *derived
	view    view
	live    atomic.Bool // values are read from the table, no more from the view
	changed []int64     // guarded by the database's lock
}

// prepareIndex builds the index a `create index` statement is about to declare. It is nil for any other statement, and
// where the statement will be refused anyway.
func (db *DB) prepareIndex(ctx context.Context, s *statement) (*building, error) {
	create, ok := s.tree.(*syntax.CreateIndex)
	if !ok {
		return nil, nil
	}
	b := db.watch(create)
	if b == nil {
		return nil, nil
	}
	db.mu.RLock()
	b.view = b.index.table.view()
	db.mu.RUnlock()
	if err := b.build(ctx); err != nil {
		db.unwatch(b)
		return nil, err
	}
	return b, nil
}

// watch has the table of a declared index leave word of its changes.
func (db *DB) watch(create *syntax.CreateIndex) *building {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.tables[create.Collection.Text]
	on := strings.Join(create.On.Parts, ".")
	if t == nil || t.index(on) != nil || db.writableLocked() != nil {
		return nil
	}
	x := t.newDerived(on, create.Index)
	if x == nil {
		return nil
	}
	b := &building{index: x}
	t.watchers = append(t.watchers, b)
	return b
}

func (db *DB) unwatch(b *building) {
	if b == nil {
		return
	}
	db.mu.Lock()
	t := b.index.table
	t.watchers = slices.DeleteFunc(t.watchers, func(w *building) bool { return w == b })
	db.mu.Unlock()
}

// build fills the index from the view.
func (b *building) build(ctx context.Context) error {
	x := b.index
	s := x.empty(func(id int64) doc.Document {
		if b.live.Load() {
			return x.table.Get(id)
		}
		return b.view.get(id)
	})
	x.state.Store(s)
	n := 0
	var err error
	s.fill(b.view.ids.Len(), func(add func(v doc.Value, id int64)) {
		b.view.ids.Ascend(1, func(id int64, ref uint64) bool {
			if n++; n%4096 == 0 && ctx.Err() != nil {
				err = fail.New(fail.Canceled, "building the index on %s was stopped", x.on)
				return false
			}
			add(x.value(b.view.memory.document(ref)), id)
			return true
		})
	})
	if err == nil && x.kind == doc.IndexUnique {
		err = x.distinct(b.view.get, b.view.ids)
	}
	return err
}

// declares tells that b is the index of that declaration.
func (b *building) declares(t *table, on string, kind doc.IndexKind) bool {
	return b.index.table == t && b.index.on == on && b.index.kind == kind
}

// distinctChanges refuses where a document changed meanwhile shares a unique value; the view's were judged already.
func (b *building) distinctChanges() error {
	t := b.index.table
	for _, id := range b.changed {
		if t.Get(id) == nil {
			continue
		}
		if err := b.index.alone(t.Get, id); err != nil {
			return err
		}
	}
	return nil
}

// catchUp makes the index one of the table as it is now. It needs the exclusive lock.
func (b *building) catchUp() {
	s := b.index.state.Load()
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
