package engine

import (
	"context"
	"slices"

	"fenec/engine/query"
)

// worn is the share of a graph's vectors, one in so many, of which no document is left, past which a compact makes it anew:
// each of them takes memory, and time of the searches that walk by it.
const worn = 8

// renewGraphs makes worn graphs of vectors anew, beside the database.
func (db *DB) renewGraphs(ctx context.Context) error {
	for _, x := range db.wornGraphs() {
		if err := db.renew(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

func (db *DB) wornGraphs() (out []*derived) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	for _, t := range db.numbers {
		for _, x := range t.derived {
			if s, ok := x.there().(*graphIndex); ok && s.Tombstones()*worn > s.Nodes() {
				out = append(out, x)
			}
		}
	}
	return out
}

// renew builds the index of x anew and puts it in the place of what x has, unless x was dropped meanwhile.
func (db *DB) renew(ctx context.Context, x *derived) error {
	b := db.watchAgain(x)
	defer db.unwatch(b)
	if b == nil || !db.look(b) {
		return nil
	}
	if err := b.build(&query.Env{Ctx: ctx, Now: db.opts.Clock()}); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if slices.Contains(x.table.derived, x) {
		b.catchUp()
		x.state.Store(b.index.state.Load())
	}
	return nil
}

// watchAgain is for an index to be built that x is one of already; nil where x was dropped.
func (db *DB) watchAgain(x *derived) *building {
	db.mu.Lock()
	defer db.mu.Unlock()
	if !slices.Contains(x.table.derived, x) {
		return nil
	}
	return x.table.watch(x.table.newDerived(x.on, x.index))
}
