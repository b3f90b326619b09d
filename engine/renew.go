package engine

import (
	"context"
	"slices"

	"fenec/engine/query"
)

// renewShare sets the share of a graph's vectors, one in so many, without a document past which a compact rebuilds the
// graph: each of them takes memory, and time of the searches that pass it.
const renewShare = 8

// renewGraphs rebuilds graphs with many vectors without a document, while the database runs.
func (db *DB) renewGraphs(ctx context.Context) error {
	for _, x := range db.graphsToRenew() {
		if err := db.renew(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

func (db *DB) graphsToRenew() (out []*derived) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	for _, t := range db.numbers {
		for _, x := range t.derived {
			if s, ok := x.ifBuilt().(*graphIndex); ok && s.Tombstones()*renewShare > s.Nodes() {
				out = append(out, x)
			}
		}
	}
	return out
}

// renew rebuilds the index of x and replaces the old one, unless x was dropped meanwhile.
func (db *DB) renew(ctx context.Context, x *derived) error {
	b := db.watchAgain(x)
	defer db.unwatch(b)
	if b == nil || !db.snapshotFor(b) {
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

// watchAgain is watch for rebuilding x, which is built already. It returns nil if x was dropped.
func (db *DB) watchAgain(x *derived) *building {
	db.mu.Lock()
	defer db.mu.Unlock()
	if !slices.Contains(x.table.derived, x) {
		return nil
	}
	return x.table.watch(x.table.newDerived(x.on, x.index))
}
