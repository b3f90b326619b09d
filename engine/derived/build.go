package derived

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"fenec/engine/doc"
)

// Build builds an index beside writes: from a snapshot, without a lock, while the collection records the ids that change.
// Only those changes are left to be applied when the index is declared (Collection.Adopt), or replaces one that is built
// (Collection.Replace).
type Build struct {
	index    *Index
	snapshot Documents
	ttl      *doc.Field  // of the snapshot
	checked  time.Time   // when the unique values of the snapshot were compared; expired documents were left out
	live     atomic.Bool // values are read from the collection, no longer from the snapshot
	changed  []int64     // guarded by the lock
}

// Build begins to record the changes of the collection for an index that is to be declared. It returns nil if there is no such
// field or the index exists. End must be called. Build needs the exclusive lock.
func (c *Collection) Build(on string, declared doc.Index) *Build {
	if c.Index(on) != nil {
		return nil
	}
	x := c.newIndex(on, declared)
	if x == nil {
		return nil
	}
	return c.record(x)
}

// Rebuild is Build of an index that exists, to replace it. It returns nil if x was dropped.
func (x *Index) Rebuild() *Build {
	if !x.of.contains(x) {
		return nil
	}
	return x.of.record(x.of.newIndex(x.on, x.declared))
}

func (c *Collection) record(x *Index) *Build {
	b := &Build{index: x}
	c.builds = append(c.builds, b)
	return b
}

// End ends the recording of changes. It needs the exclusive lock.
func (b *Build) End() {
	c := b.index.of
	c.builds = slices.DeleteFunc(c.builds, func(other *Build) bool { return other == b })
	b.changed = nil // the index's lookup of values keeps b alive
}

// Documents returns those of the collection, as they were given to NewCollection.
func (b *Build) Documents() Documents { return b.index.of.docs }

// Begin sets what the index is built from: the documents as of now. Later changes to them must not show in the snapshot. Begin
// needs the lock, shared or not.
func (b *Build) Begin(snapshot Documents) { b.snapshot, b.ttl = snapshot, b.index.of.ttl }

// Run builds the index from the snapshot. A unique index is checked for values that documents which have not expired at now
// share. It must not be called under the lock.
func (b *Build) Run(ctx context.Context, now time.Time) error {
	x := b.index
	s := x.empty(func(id int64) doc.Document {
		if b.live.Load() {
			return x.of.docs.Get(id)
		}
		return b.snapshot.Get(id)
	})
	x.state.Store(&s)
	n, of := 0, b.snapshot.Len()
	var err error
	s.fill(of, func(add func(v doc.Value, id int64)) {
		b.snapshot.Ascend(1, func(d doc.Document) bool {
			if n++; n%checkEvery == 0 {
				err = x.stopped(ctx, n, of, documentsRead)
			}
			if err == nil {
				add(x.value(d), d.ID())
			}
			return err == nil
		})
	})
	if g, ok := s.(*graph); ok && err == nil {
		err = g.linkAll(func(linked, of int) error { return x.stopped(ctx, linked, of, "vectors linked") })
	}
	if err == nil && x.declared.Kind == doc.IndexUnique {
		b.checked = now
		err = x.distinct(ctx, b.snapshot, b.ttl, now)
	}
	return err
}

// Adopt makes the index of b one of the collection, before the schema that declares it is set, and returns true. It returns
// false and does nothing if that index is not the one that would be declared: the schema has changed since. It needs the
// exclusive lock.
func (c *Collection) Adopt(b *Build, on string, declared doc.Index) bool {
	x := c.newIndex(on, declared)
	if b.index.of != c || x == nil || !b.index.same(x) {
		return false
	}
	b.catchUp()
	c.indexes = append(c.indexes, b.index)
	return true
}

// Replace replaces x, which b rebuilds, unless x was dropped meanwhile. It needs the exclusive lock.
func (x *Index) Replace(b *Build) {
	if x.of.contains(x) {
		b.catchUp()
		x.state.Store(b.index.state.Load())
	}
}

// catchUp applies the recorded changes to the index. It needs the exclusive lock.
func (b *Build) catchUp() {
	s := b.index.ifBuilt()
	slices.Sort(b.changed)
	b.changed = slices.Compact(b.changed)
	for _, id := range b.changed {
		if d := b.snapshot.Get(id); d != nil {
			s.remove(b.index.value(d), id)
		}
	}
	b.live.Store(true)
	for _, id := range b.changed {
		if d := b.index.of.docs.Get(id); d != nil {
			s.add(b.index.value(d), id)
		}
	}
	b.snapshot = nil
}
