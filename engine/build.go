package engine

import (
	"context"
	"strings"

	"fenec/engine/derived"
	"fenec/engine/doc"
	"fenec/engine/index"
	"fenec/engine/query"
	"fenec/engine/query/syntax"
)

// view is a snapshot of a table: a derived.Documents whose bytes never change, so it is read without a lock.
type view struct {
	memory memory
	ids    *index.IDs
}

// view returns the table as of now; m is a snapshot of the memory. It needs the database's lock, shared or not.
func (t *table) view(m memory) view { return view{memory: m, ids: t.ids.Clone()} }

func (v *view) Len() int { return v.ids.Len() }

func (v *view) Get(id int64) doc.Document {
	ref, ok := v.ids.Get(id)
	if !ok {
		return nil
	}
	return v.memory.document(ref)
}

func (v *view) Ascend(from int64, fn func(doc.Document) bool) {
	v.ids.Ascend(from, func(_ int64, ref uint64) bool { return fn(v.memory.document(ref)) })
}

// beginBuild begins to build the index that s is about to declare beside the writes of others. It returns nil for any other
// statement, and if s will be refused or the index exists.
func (db *DB) beginBuild(s *statement) *derived.Build {
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
	return t.indexes.Build(strings.Join(create.On.Parts, "."), create.Index)
}

// build builds the index of b, which may be nil.
func (db *DB) build(env *query.Env, b *derived.Build) error {
	if b == nil || !db.snapshotFor(b) {
		return nil
	}
	env.Now = db.opts.Clock()
	return b.Run(env.Ctx, env.Now)
}

// snapshotFor gives b what it is built from. It returns false if the collection was dropped since the build began: its ids no
// longer match the memory.
func (db *DB) snapshotFor(b *derived.Build) bool {
	db.mu.RLock()
	defer db.mu.RUnlock()
	t := b.Documents().(*table)
	if db.numbers[t.number] != t {
		return false
	}
	v := t.view(db.memory.snapshot())
	b.Begin(&v)
	return true
}

// endBuild ends the recording of changes for b, which may be nil.
func (db *DB) endBuild(b *derived.Build) {
	if b == nil {
		return
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	b.End()
}

// rebuildGraphs rebuilds graphs with many vectors without a document, while the database runs.
func (db *DB) rebuildGraphs(ctx context.Context) error {
	db.mu.RLock()
	indexes := db.derived.ToRebuild()
	db.mu.RUnlock()
	for _, x := range indexes {
		if err := db.rebuild(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

// rebuild builds x again and replaces the old index, unless x was dropped meanwhile.
func (db *DB) rebuild(ctx context.Context, x *derived.Index) error {
	db.mu.Lock()
	b := x.Rebuild()
	db.mu.Unlock()
	defer db.endBuild(b)
	if b == nil || !db.snapshotFor(b) {
		return nil
	}
	if err := b.Run(ctx, db.opts.Clock()); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	x.Replace(b)
	return nil
}
