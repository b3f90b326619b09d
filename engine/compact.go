package engine

import (
	"context"
	"runtime/debug"
	"slices"
	"strconv"

	"fenec/engine/derived"
	"fenec/engine/fail"
	"fenec/engine/query"
	"fenec/engine/query/syntax"
	"fenec/engine/wal"
)

// compactStatement runs `compact` and `compact C`. A database is one file, so both rewrite it whole; `compact C` also
// checks that the collection exists.
func (db *DB) compactStatement(ctx context.Context, s *statement) (Result, error) {
	if err := db.planCompact(s); err != nil {
		return Result{}, err
	}
	before := db.log.Size()
	if err := db.Compact(ctx); err != nil {
		return Result{}, err
	}
	seq, history := db.Position()
	name := "the file"
	if c := s.tree.(*syntax.Compact).Collection; c != nil {
		name = c.Text
	}
	res := query.Result{Kind: query.Message, Message: compactMessage(name, before, db.log.Size())}
	return Result{Result: res, Wrote: true, Seq: seq, History: history}, nil
}

func (db *DB) planCompact(s *statement) error {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if err := db.writableLocked(); err != nil {
		return err
	}
	_, err := s.plan(&db.reader)
	return err
}

// Compact rewrites the file without what is dead in it: replaced and deleted documents, dropped collections and the values
// of dropped fields. Graphs of vectors lose most of the vectors that no document has any more. The counters stay. Reads
// and writes go on: the image is written from a view, then the blocks that landed meanwhile are added. Writers wait only
// for the last of those and the rename.
//
// The heap holds the old and the new memory until the new one replaces the old. If much memory is freed, it is returned
// to the system before Compact returns. Compactions of one database run one at a time. One stops soon after its context
// has ended or the database accepts no more writes because it closes, is frozen or its disk failed.
func (db *DB) Compact(ctx context.Context) error {
	_, err := db.compactIf(ctx, func() bool { return true })
	return err
}

// Compacted is the result of a compact: the bytes of the file right before the new one replaced it, and right after.
type Compacted struct{ Before, After int64 }

// CompactDue is Compact if a compact is still due once no other compaction runs. It returns the zero Compacted if
// none is.
func (db *DB) CompactDue(ctx context.Context) (Compacted, error) { return db.compactIf(ctx, db.Due) }

func (db *DB) compactIf(ctx context.Context, wanted func() bool) (Compacted, error) {
	done, err := db.compact(ctx, wanted)
	if done.Before-done.After >= leastDead {
		debug.FreeOSMemory()
	}
	return done, err
}

func (db *DB) compact(ctx context.Context, wanted func() bool) (done Compacted, err error) {
	if err := db.beginRewrite(); err != nil {
		return done, err
	}
	defer db.rewrites.Done()
	select {
	case db.turn <- struct{}{}:
	case <-ctx.Done():
		return done, fail.Stopped(ctx, "waiting for another compact to end")
	}
	defer func() { <-db.turn }()
	if !wanted() {
		return done, nil
	}
	rw, err := db.log.Rewrite()
	if err != nil {
		return done, err
	}
	defer rw.Abort() // does nothing after Commit
	if err := db.rebuildGraphs(ctx); err != nil {
		return done, err
	}
	c := &compaction{db: db, ctx: ctx, rewrite: rw}
	c.emit = func(record []byte) error { return c.append(wal.Image, record) }
	defer db.copying.Store(0)
	err = c.run()
	return c.sizes, err
}

// beginRewrite makes Close wait for a rewrite, so that nothing touches the side file once the database is closed.
func (db *DB) beginRewrite() error {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if err := db.storableLocked(); err != nil {
		return err
	}
	db.rewrites.Add(1)
	return nil
}

// compaction writes the new file and, in its imageWriter, the memory that will mirror it.
type compaction struct {
	imageWriter
	db      *DB
	ctx     context.Context
	rewrite *wal.Rewrite
	synced  int64  // bytes of the new file when it was last synced
	done    mark   // a place in the old memory: all before it is in the new
	seq     uint64 // the change that the new file is at
	term    uint64 // of the history that the new file is in
	blocked int    // segments of the new memory from this one on hold blocks, those before it the image
	imaged  int64  // bytes of the image that are documents
	landed  int64  // bytes of the blocks that landed during the compaction
	graphs  []derived.Graph
	sizes   Compacted
}

func (c *compaction) run() (err error) {
	h, tables := c.snapshot()
	if err := c.write(c.ctx, h, tables); err != nil {
		return err
	}
	c.blocked = len(c.memory.segments)
	for _, t := range c.tables {
		c.imaged += t.live
	}
	if feed := c.db.opts.Feed; feed != nil {
		feed.Rewriting(h.Seq)
		defer func() {
			if err != nil {
				feed.Abandoned()
			}
		}()
	}
	// Each round adds what landed during the one before, so that little is left for the last, which blocks writers.
	const rounds = 3
	for range rounds {
		if err := c.follow(); err != nil {
			return err
		}
	}
	if err := c.saveGraphs(); err != nil {
		return err
	}
	if err := c.rewrite.Sync(); err != nil {
		return err
	}
	return c.swap()
}

// append adds a record to the new file, unless the compaction has to stop. Records other than large blocks are at most
// about a MiB, so this is checked often. The file is synced while it grows, so that a sync never takes long.
func (c *compaction) append(kind wal.Kind, record []byte) error {
	if err := c.db.storable(); err != nil {
		return err
	}
	if err := fail.Stopped(c.ctx, "rewriting the file, %s bytes done", fail.Thousands(int(c.rewrite.Size()))); err != nil {
		return err
	}
	if err := c.rewrite.Append(kind, record); err != nil {
		return err
	}
	if kind == wal.Block {
		c.landed += int64(len(record))
	}
	c.db.copying.Add(int64(len(record)))
	if c.rewrite.Size()-c.synced < syncEvery {
		return nil
	}
	c.synced = c.rewrite.Size()
	return c.rewrite.Sync()
}

// saveGraphs adds the current graphs of vectors, after the blocks whose vectors they hold.
func (c *compaction) saveGraphs() error {
	c.db.mu.RLock()
	c.graphs = c.db.derived.Graphs(c.db.seq)
	c.db.mu.RUnlock()
	if err := c.follow(); err != nil {
		return err
	}
	for _, g := range c.graphs {
		if err := g.Records(func(record []byte) error { return c.append(wal.Derived, record) }); err != nil {
			return err
		}
	}
	return nil
}

// snapshot returns the state for the image. What is staged from then on is in memory after c.done.
func (c *compaction) snapshot() (head, []tableView) {
	c.db.mu.RLock()
	defer c.db.mu.RUnlock()
	c.done = c.db.memory.end()
	h, tables := c.db.stateLocked()
	c.seq, c.term = h.Seq, h.History.Term
	return h, tables
}

// follow adds the blocks staged since the last round.
func (c *compaction) follow() error {
	db := c.db
	db.mu.RLock()
	from, to := c.done, db.memory.end()
	segments := slices.Clone(db.memory.segments)
	forks := db.forksLocked(c.term)
	err := db.log.Err() // what is staged after the log has failed has no header and cannot be read
	db.mu.RUnlock()
	if err != nil {
		return err
	}
	for ; from.segment < len(segments) && from.segment <= to.segment; from = (mark{from.segment + 1, 0}) {
		if forks, err = c.blocks(segments[from.segment][from.offset:], forks); err != nil {
			return err
		}
	}
	c.done = to
	_, err = c.forks(forks)
	return err
}

// forks adds the forks at the change the new file is at, and returns the others.
func (c *compaction) forks(forks []fork) ([]fork, error) {
	for len(forks) > 0 && forks[0].at == c.seq {
		if err := c.append(wal.Fork, forks[0].record()); err != nil {
			return nil, err
		}
		c.term = forks[0].Term
		forks = forks[1:]
	}
	return forks, nil
}

// blocks adds the blocks whose records follow each other in data, and the forks before them. It returns the remaining
// forks.
func (c *compaction) blocks(data []byte, forks []fork) (left []fork, err error) {
	if len(data) == 0 {
		return forks, nil
	}
	own := slices.Clone(data)
	segment := c.memory.adopt(own)
	for at := 0; at < len(own); {
		if forks, err = c.forks(forks); err != nil {
			return nil, err
		}
		size := wal.RecordSize(own[at:])
		c.seq = Record(own[at:]).After()
		if err := c.append(wal.Block, own[at:at+size:at+size]); err != nil {
			return nil, err
		}
		from := at + recordHead
		if err := operations(own, from, at+size, func(o *operation) error { return c.apply(o, segment) }); err != nil {
			return nil, err
		}
		at += size
	}
	return forks, nil
}

// apply applies one change that landed during the compaction to the new memory.
func (c *compaction) apply(o *operation, segment int) error {
	switch o.Op {
	case opCreate:
		c.tables[o.Table] = new(imageTable)
	case opDrop:
		delete(c.tables, o.Table)
	case opPut:
		t := c.tables[o.Table]
		old, had := t.ids.Set(o.Doc.ID(), makeRef(segment, o.At))
		c.dead(o.Table, old, had)
		t.live += putSize(o.Table, o.Doc)
	case opDelete:
		t := c.tables[o.Table]
		old, had := t.ids.Delete(int64(o.N))
		c.dead(o.Table, old, had)
	}
	return nil
}

// dead subtracts the document at ref, if there was one, from the live bytes of the table with that number.
func (c *compaction) dead(number, ref uint64, had bool) {
	if had {
		c.tables[number].live -= putSize(number, c.memory.document(ref))
	}
}

// swap adds the last blocks, then replaces the old file with the new one and the old memory with the new one. Writers wait
// for the disk here; readers only while the memory is replaced.
func (c *compaction) swap() error {
	db := c.db
	db.writer.Lock()
	defer db.writer.Unlock()
	if err := c.follow(); err != nil {
		return err
	}
	db.mu.RLock()
	err := db.storableLocked()
	db.mu.RUnlock()
	if err != nil {
		return err
	}
	err = c.rewrite.Commit()
	db.mu.Lock()
	defer db.mu.Unlock()
	if err != nil {
		// If the new file has the name but the rename may not be durable, the log has failed and reports it only on the next
		// write.
		db.failed = db.log.Err()
		return err
	}
	db.landing.landed(db.last) // all that is staged is in the new file
	db.memory, db.replayed = c.memory, 0
	db.space.live = 0
	for number, t := range db.numbers {
		t.ids, t.live = &c.tables[number].ids, c.tables[number].live
		db.space.live += t.live
	}
	for _, g := range c.graphs {
		g.Saved()
	}
	c.sizes = Compacted{db.space.file, db.log.Size()}
	db.space.file = c.sizes.After
	// What died during the compaction is left for the next one: the bytes of the blocks less the growth of what is live.
	died := c.landed - (db.space.live - c.imaged)
	db.space.rest = max(0, db.deadLocked(db.space.file)-died)
	db.recheckDue()
	if db.opts.Feed != nil {
		db.opts.Feed.Rewritten(c.memory.segments[c.blocked:])
	}
	return nil
}

func compactMessage(name string, before, after int64) string {
	return name + " compacted: " + strconv.FormatInt(before, 10) + " bytes before, " + strconv.FormatInt(after, 10) + " after"
}
