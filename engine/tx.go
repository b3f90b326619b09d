package engine

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"fenec/engine/derived"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query"
	"fenec/engine/wal"
)

// maxBlock is the largest block, in bytes of its record.
const maxBlock = 1 << 30

// smallBlock is the most changes of a block whose buffers are kept for the next block.
const smallBlock = 64

// checkEvery is how many documents are read or changed between two checks of a context.
const checkEvery = 4096

// tx is the open block: a query.Writer that changes the memory at once, writes each change into the open segment as the
// record it will be on disk, and records how to undo it. Each database has one, used under the exclusive lock.
type tx struct {
	*reader

	segment, start int
	now            time.Time
	changes        uint64
	version        uint64 // of the schemas, before the block
	undo           *undoLog
	memory         blockMemory
	asked          *table // the table last looked up by name

	op      operation      // the one being applied
	built   *derived.Build // the index the statement declares, built before the block began
	touched []touch        // documents that the running statement has put, for the checks of unique indexes
}

type touch struct {
	table *table
	id    int64
}

// begin starts a block as of now, whose memory is counted in account, which may be nil. built is the index that its
// statement declares, if it was built before the block.
func (x *tx) begin(now time.Time, account *query.Account, built *derived.Build) {
	x.now = now
	x.segment, x.start = x.db.memory.open()
	x.changes = 0
	x.version = x.db.version
	x.undo = x.db.landing.empty()
	x.built = built
	x.memory.begin(account, x.db.memory.segments[x.segment])
	var room [recordHead]byte
	x.append(room[:])
}

// record returns the block's record so far.
func (x *tx) record() []byte { return x.db.memory.segments[x.segment][x.start:] }

func (x *tx) append(b []byte) {
	s := &x.db.memory.segments[x.segment]
	*s = append(*s, b...)
}

// end is called after begin, whatever happens. It undoes a block that has not landed because it was refused, has no changes
// or panicked, and drops all references to it. It returns how many bytes the account still counts for the block.
func (x *tx) end() (held int64) {
	if x.undo != nil {
		x.rollback()
	}
	x.built, x.op.Schema, x.op.Doc = nil, nil, nil
	x.forgetTouched()
	return x.memory.end()
}

func (x *tx) rollback() {
	x.undo.run()
	x.db.memory.cut(x.segment, x.start)
	x.db.seq -= x.changes
	x.changes = 0
	x.db.landing.recycle(x.undo)
	x.undo = nil
}

// land closes the block and stages its record, which fixes its place in the file. A block without changes has no record
// and ticket 0.
func (x *tx) land() wal.Ticket {
	db := x.db
	if x.changes == 0 {
		return 0
	}
	rec := x.record()
	binary.LittleEndian.PutUint64(rec[wal.HeaderSize:], db.seq)
	binary.LittleEndian.PutUint64(rec[wal.HeaderSize+8:], uint64(x.now.UnixMilli()))
	db.watches.notify(x)
	if x.undo.fork != nil {
		db.log.Stage(wal.Fork, fork{db.history, db.seq - x.changes}.record())
	}
	db.last = db.log.Stage(wal.Block, rec)
	db.space.file += int64(len(rec))
	db.landing.add(block{ticket: db.last, undo: x.undo, changes: x.changes})
	x.undo = nil
	db.feed(Landed{
		Before: db.seq - x.changes, After: db.seq, Ticket: db.last,
		Segment: x.segment, Start: x.start, Memory: db.memory.segments[x.segment], Schemas: db.version != x.version,
	})
	db.checkDue()
	return db.last
}

// enterHistory begins the history that this open of the file writes, unless an earlier block has.
func (x *tx) enterHistory() {
	if !x.db.ours {
		x.undo.fork = x.db.forkLocked(x.db.own)
	}
}

// apply applies x.op to t as the next change of the block. The block already ends with the bytes of x.op.
func (x *tx) apply(t *table) error {
	x.enterHistory()
	x.changes++
	x.db.seq++
	return x.db.apply(&x.op, t, x.segment, x.undo)
}

// fits fails if n more bytes would make the block larger than maxBlock, or if it takes more memory than it may.
func (x *tx) fits(n int) error {
	size := len(x.record()) + n
	if size > maxBlock {
		return fail.New(fail.TooLarge, "the statement writes more than %d bytes at once", maxBlock)
	}
	if size > x.memory.recount {
		return x.memory.count(x)
	}
	return nil
}

// table returns the collection of that name, or nil. It caches the latest, as a statement looks up the same one for each
// document.
func (x *tx) table(name string) *table {
	if x.asked == nil || x.asked.schema.Name != name {
		x.asked = x.db.tables[name]
	}
	return x.asked
}

// Table implements query.Reader.
func (x *tx) Table(name string) query.Table {
	if t := x.table(name); t != nil && !isServers(name) {
		return t
	}
	return nil
}

// NextID assigns the next id. It returns 0 if none are left.
func (x *tx) NextID(name string) int64 {
	t := x.table(name)
	id := t.next
	if id != 0 {
		x.undo.next(t)
		t.take(id)
	}
	return id
}

// TakeID moves the counter past an id that a document came with.
func (x *tx) TakeID(name string, id int64) {
	t := x.table(name)
	if t.next != 0 && id >= t.next {
		x.undo.next(t)
		t.take(id)
	}
}

// Put stores a copy of d under its id.
func (x *tx) Put(name string, d doc.Document) error {
	if err := x.fits(len(d) + binary.MaxVarintLen64 + 1); err != nil {
		return err
	}
	t := x.table(name)
	s := &x.db.memory.segments[x.segment]
	*s = append(*s, opPut)
	*s = binary.AppendUvarint(*s, t.number)
	at := len(*s)
	*s = append(*s, d...)
	x.op.Op, x.op.Doc, x.op.At = opPut, d, at
	if err := x.apply(t); err != nil {
		return err
	}
	if len(t.indexes.Indexes()) > 0 {
		x.touched = append(x.touched, touch{t, d.ID()})
	}
	return nil
}

// Delete deletes the document of id, if it exists.
func (x *tx) Delete(name string, id int64) error {
	if err := x.fits(2*binary.MaxVarintLen64 + 1); err != nil {
		return err
	}
	t := x.table(name)
	if _, found := t.ids.Get(id); !found {
		return nil
	}
	s := &x.db.memory.segments[x.segment]
	*s = appendNumbers(*s, opDelete, t.number, uint64(id))
	x.op.Op, x.op.N = opDelete, uint64(id)
	return x.apply(t)
}

// EndStatement checks the unique values of what the statement wrote.
func (x *tx) EndStatement(ctx context.Context) error {
	for n, w := range x.touched {
		if n%checkEvery == checkEvery-1 {
			err := fail.Stopped(ctx, "checking the unique values written to %s, %s of %s rows done",
				w.table.schema.Name, fail.Thousands(n), fail.Thousands(len(x.touched)))
			if err != nil {
				return err
			}
		}
		if err := x.checkUnique(ctx, w.table, w.id); err != nil {
			return err
		}
	}
	x.forgetTouched()
	return nil
}

// forgetTouched clears touched, so that it keeps no table alive, and frees the slice if most statements need less.
func (x *tx) forgetTouched() {
	if cap(x.touched) > smallBlock {
		x.touched = nil
		return
	}
	clear(x.touched)
	x.touched = x.touched[:0]
}

// checkUnique fails if the document of id in t holds a unique value of another one.
func (x *tx) checkUnique(ctx context.Context, t *table, id int64) error {
	for _, u := range t.indexes.Indexes() {
		if u.Kind() != doc.IndexUnique {
			continue
		}
		if err := u.Ready(ctx); err != nil {
			return err
		}
		if err := x.checkUniqueIn(t, u, id); err != nil {
			return err
		}
	}
	return nil
}

// checkUniqueIn fails if the document of id in t shares its value in u with another one and neither has expired. If one has,
// it is deleted, the other one first: setting the clock back would make both visible.
func (x *tx) checkUniqueIn(t *table, u *derived.Index, id int64) error {
	for d := t.Get(id); d != nil; d = t.Get(id) {
		other := u.Holder(t.Get, d)
		if other == 0 {
			return nil
		}
		over := other
		if alive := t.liveAt(x.now); alive(other) != nil {
			if alive(id) != nil {
				return u.Taken(d, other)
			}
			over = id
		}
		if err := x.Delete(t.schema.Name, over); err != nil {
			return err
		}
	}
	return nil
}

// CreateCollection begins a collection.
func (x *tx) CreateCollection(s *doc.Schema) error {
	if x.db.tables[s.Name] != nil {
		return fail.New(fail.Conflict, "collection %s exists already", s.Name)
	}
	counted := x.db.counted
	if counted == maxTables {
		return fail.New(fail.TooLarge, "no more collections can be made in this database: it has had %d", counted)
	}
	x.op.Op, x.op.Table, x.op.Schema = opCreate, counted+1, s.Clone()
	x.append(appendSchema(nil, opCreate, x.op.Table, x.op.Schema))
	return x.apply(nil)
}

// DropCollection ends a collection and every document in it.
func (x *tx) DropCollection(name string) error {
	t := x.table(name)
	x.append(binary.AppendUvarint([]byte{opDrop}, t.number))
	x.op.Op = opDrop
	return x.apply(t)
}

// CreateIndex declares an index on a field or path. It fails if documents already share a unique value. Expired documents
// are deleted for a unique index, as setting the clock back would make them visible and they could share a value.
func (x *tx) CreateIndex(ctx context.Context, name, on string, declared doc.Index) error {
	t := x.table(name)
	s := t.schema.Clone()
	if f := s.Field(on); f != nil {
		f.Index = declared
	} else {
		s.Paths = append(s.Paths, doc.PathIndex{Path: on, Index: declared.Kind})
	}
	built := x.built
	if built != nil && !t.indexes.Adopt(built, on, declared) {
		built = nil
	}
	if err := x.setSchema(t, s); err != nil {
		return err
	}
	if declared.Kind != doc.IndexUnique {
		return nil
	}
	if err := x.dropExpired(ctx, t); err != nil {
		return err
	}
	if built != nil {
		return built.Distinct(ctx, x.now)
	}
	made := t.indexes.Index(on)
	if err := made.Ready(ctx); err != nil {
		return err
	}
	return made.Distinct(ctx, x.now)
}

// dropExpired deletes the expired documents of t.
func (x *tx) dropExpired(ctx context.Context, t *table) error {
	if t.ttl == nil {
		return nil
	}
	if err := t.Ready(ctx, t.ttl.Name); err != nil {
		return err
	}
	for n, id := range t.firstExpired(x.now, math.MaxInt) {
		if n%checkEvery == checkEvery-1 {
			err := fail.Stopped(ctx, "deleting the rows of %s whose time is over, %s done", t.schema.Name, fail.Thousands(n))
			if err != nil {
				return err
			}
		}
		if err := x.Delete(t.schema.Name, id); err != nil {
			return err
		}
	}
	return nil
}

// AlterCollection sets the schema of a collection. No document changes: the schema maps its fields to their slots.
func (x *tx) AlterCollection(s *doc.Schema) error {
	return x.setSchema(x.table(s.Name), s)
}

// setSchema makes s the schema of t.
func (x *tx) setSchema(t *table, s *doc.Schema) error {
	x.append(appendSchema(nil, opSchema, t.number, s))
	x.op.Op, x.op.Schema = opSchema, s
	return x.apply(t)
}

// reader is the query.Reader of a database. It needs the lock.
type reader struct{ db *DB }

func (r *reader) Names() []string { return r.db.names }

func (r *reader) SchemaVersion() uint64 { return r.db.version }

func (r *reader) Table(name string) query.Table {
	if t := r.db.tables[name]; t != nil && !isServers(name) {
		return t
	}
	return nil
}
