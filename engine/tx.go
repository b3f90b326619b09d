package engine

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/index"
	"fenec/engine/query"
	"fenec/engine/wal"
)

// maxBlock is the largest block, in bytes of its record.
const maxBlock = 1 << 30

// smallBlock is up to how many changes what a block needed is kept for the next.
const smallBlock = 64

// tx is the block under way: a query.Writer whose changes are in memory at once, written into the open segment as the
// record they will be on disk, with what puts each of them back. There is one, the database's, and it is used under
// the exclusive lock.
type tx struct {
	*reader

	segment, start int
	now            time.Time
	changes        uint64
	version        uint64 // of the schemas, before the block
	undo           *undoLog
	asked          *table // the table last asked for by name

	op      operation // the one being applied
	built   *building // the index the statement declares, built beside the database
	touched []touch   // documents put by the statement under way, for the unique indexes to judge
}

type touch struct {
	table *table
	id    int64
}

// begin starts a block as of now. built is the index its statement declares, where that was made beside the database.
func (x *tx) begin(now time.Time, built *building) {
	x.now = now
	x.segment, x.start = x.db.memory.open()
	x.changes = 0
	x.version = x.db.version
	x.undo = x.db.landing.empty()
	x.built = built
	var room [recordHead]byte
	x.append(room[:])
}

// record is the block's record so far.
func (x *tx) record() []byte { return x.db.memory.segments[x.segment][x.start:] }

func (x *tx) append(b []byte) {
	s := &x.db.memory.segments[x.segment]
	*s = append(*s, b...)
}

// end is deferred behind begin: it puts back a block that has not landed, be it refused, without changes, or left by a
// panic, and keeps nothing of it alive.
func (x *tx) end() {
	if x.undo != nil {
		x.rollback()
	}
	x.built, x.op.Schema, x.op.Doc = nil, nil, nil
	x.forgetTouched()
}

func (x *tx) rollback() {
	x.undo.run()
	x.db.memory.cut(x.segment, x.start)
	x.db.seq -= x.changes
	x.changes = 0
	x.db.landing.recycle(x.undo)
	x.undo = nil
}

// land closes the block and stages its record, which fixes its place in the file. A block without changes
// has no record and no ticket.
func (x *tx) land() wal.Ticket {
	db := x.db
	if x.changes == 0 {
		return 0
	}
	rec := x.record()
	binary.LittleEndian.PutUint64(rec[wal.HeaderSize:], db.seq)
	binary.LittleEndian.PutUint64(rec[wal.HeaderSize+8:], uint64(x.now.UnixMilli()))
	db.watches.tell(x)
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
	db.watchDead()
	return db.last
}

// enterHistory has the block begin the history that this open of the file writes, where no block before it has.
func (x *tx) enterHistory() {
	if !x.db.ours {
		x.undo.fork = x.db.forkLocked(x.db.own)
	}
}

// apply makes x.op, whose bytes the block ends with and whose collection is t, one more change of the block.
func (x *tx) apply(t *table) error {
	x.enterHistory()
	x.changes++
	x.db.seq++
	return x.db.apply(&x.op, t, x.segment, x.undo)
}

// fits refuses a block that would pass maxBlock with n more bytes.
func (x *tx) fits(n int) error {
	if len(x.record())+n > maxBlock {
		return fail.New(fail.TooLarge, "the statement writes more than %d bytes at once", maxBlock)
	}
	return nil
}

// table is the collection of that name. A statement asks for one and the same for each document.
func (x *tx) table(name string) *table {
	if x.asked == nil || x.asked.schema.Name != name {
		x.asked = x.db.tables[name]
	}
	return x.asked
}

// Table is reader.Table.
func (x *tx) Table(name string) query.Table {
	if t := x.table(name); t != nil && !isServers(name) {
		return t
	}
	return nil
}

// NextID hands out an id, 0 where none are left.
func (x *tx) NextID(name string) int64 {
	t := x.table(name)
	id := t.next
	if id != 0 {
		x.undo.next(t)
		t.take(id)
	}
	return id
}

// TakeID moves the counter past an id a document brought along.
func (x *tx) TakeID(name string, id int64) {
	t := x.table(name)
	if t.next != 0 && id >= t.next {
		x.undo.next(t)
		t.take(id)
	}
}

// Put makes d the document of its id; d is copied.
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
	if len(t.derived) > 0 {
		x.touched = append(x.touched, touch{t, d.ID()})
	}
	return nil
}

// Delete takes the document of id out, where there is one.
func (x *tx) Delete(name string, id int64) error {
	if err := x.fits(2*binary.MaxVarintLen64 + 1); err != nil {
		return err
	}
	t := x.table(name)
	if _, there := t.ids.Get(id); !there {
		return nil
	}
	s := &x.db.memory.segments[x.segment]
	*s = appendNumbers(*s, opDelete, t.number, uint64(id))
	x.op.Op, x.op.N = opDelete, uint64(id)
	return x.apply(t)
}

// EndStatement judges the unique values of what the statement wrote.
func (x *tx) EndStatement(ctx context.Context) error {
	for n, w := range x.touched {
		if n%checkEvery == checkEvery-1 {
			err := query.Stopped(ctx, "checking the unique values written to %s, %s of %s rows done",
				w.table.schema.Name, query.Thousands(n), query.Thousands(len(x.touched)))
			if err != nil {
				return err
			}
		}
		if err := x.judge(ctx, w.table, w.id); err != nil {
			return err
		}
	}
	x.forgetTouched()
	return nil
}

// forgetTouched keeps no table alive, and no more room than most statements need.
func (x *tx) forgetTouched() {
	if cap(x.touched) > smallBlock {
		x.touched = nil
		return
	}
	clear(x.touched)
	x.touched = x.touched[:0]
}

// judge refuses a document of t that holds a unique value of another one.
func (x *tx) judge(ctx context.Context, t *table, id int64) error {
	for _, u := range t.derived {
		if u.index.Kind != doc.IndexUnique {
			continue
		}
		if err := u.ready(ctx); err != nil {
			return err
		}
		if err := x.alone(u, id); err != nil {
			return err
		}
	}
	return nil
}

// alone refuses a document that shares its value in u with another one while the time of neither is over. Where that of one
// is, it is deleted, the other one first: a clock that is set back would bring both to life.
func (x *tx) alone(u *derived, id int64) error {
	t := u.table
	for d := t.Get(id); d != nil; d = t.Get(id) {
		v := u.value(d)
		other := u.holder(t.Get, v, id)
		if other == 0 {
			return nil
		}
		over := other
		if alive := t.lookAt(x.now); alive(other) != nil {
			if alive(id) != nil {
				return errTaken(u, v, other)
			}
			over = id
		}
		if err := x.Delete(t.schema.Name, over); err != nil {
			return err
		}
	}
	return nil
}

func errTaken(x *derived, v doc.Value, id int64) error {
	return fail.New(fail.Conflict, "%s of %s is unique, and %s is the value of the document with id %d", x.on, x.collection, doc.Describe(v), id)
}

// holder is another document than id with the value v, of those get finds; 0 where there is none.
func (x *derived) holder(get lookup, v doc.Value, id int64) (other int64) {
	if v.Kind == doc.Null {
		return 0
	}
	x.built().(*hashIndex).Ascend(doc.Hash(v), func(at int64) bool {
		if d := get(at); at != id && d != nil && doc.Equal(x.value(d), v) {
			other = at
		}
		return other == 0
	})
	return other
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

// CreateIndex declares an index on a field or path. Documents that already share a unique value refuse it; those whose time
// is over are deleted, as they would share it with others once the clock is set back.
func (x *tx) CreateIndex(ctx context.Context, name, on string, declared doc.Index) error {
	t := x.table(name)
	s := t.schema.Clone()
	if f := s.Field(on); f != nil {
		f.Index = declared
	} else {
		s.Paths = append(s.Paths, doc.PathIndex{Path: on, Index: declared.Kind})
	}
	built := x.built
	if built != nil && built.declares(t, on, declared) {
		built.catchUp()
		t.derived = append(t.derived, built.index)
	} else {
		built = nil
	}
	if err := x.follow(t, s); err != nil {
		return err
	}
	if declared.Kind != doc.IndexUnique {
		return nil
	}
	if err := x.dropGone(ctx, t); err != nil {
		return err
	}
	if built != nil && !x.now.Before(built.now) {
		return built.distinctChanges(x.now)
	}
	made := t.index(on)
	if err := made.ready(ctx); err != nil {
		return err
	}
	return made.distinct(ctx, t.lookAt(x.now), t.ids)
}

// dropGone deletes the documents of t whose time is over.
func (x *tx) dropGone(ctx context.Context, t *table) error {
	if t.ttl == nil {
		return nil
	}
	if err := t.Ready(ctx, t.ttl.Name); err != nil {
		return err
	}
	for n, id := range t.firstExpired(x.now, math.MaxInt) {
		if n%checkEvery == checkEvery-1 {
			err := query.Stopped(ctx, "deleting the rows of %s whose time is over, %s done", t.schema.Name, query.Thousands(n))
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

// AlterCollection gives a collection another schema. No document is touched: the schema says where in them its fields
// are.
func (x *tx) AlterCollection(s *doc.Schema) error {
	return x.follow(x.table(s.Name), s)
}

// follow makes s the schema of t.
func (x *tx) follow(t *table, s *doc.Schema) error {
	x.append(appendSchema(nil, opSchema, t.number, s))
	x.op.Op, x.op.Schema = opSchema, s
	return x.apply(t)
}

// distinct refuses where two of the documents ids lists and get finds share a value.
func (x *derived) distinct(ctx context.Context, get lookup, ids *index.IDs) (err error) {
	n := 0
	ids.Ascend(1, func(id int64, _ uint64) bool {
		if n++; n%checkEvery == 0 {
			err = query.Stopped(ctx, "checking that no two documents of %s share %s, %s of %s done",
				x.table.schema.Name, x.on, query.Thousands(n), query.Thousands(ids.Len()))
		}
		if err == nil {
			err = x.alone(get, id)
		}
		return err == nil
	})
	return err
}

// alone refuses where a document shares its value with that of id, where get finds that.
func (x *derived) alone(get lookup, id int64) error {
	d := get(id)
	if d == nil {
		return nil
	}
	v := x.value(d)
	if other := x.holder(get, v, id); other != 0 {
		return errTaken(x, v, other)
	}
	return nil
}

// reader is the query.Reader of a database, under its lock.
type reader struct{ db *DB }

func (r *reader) Names() []string { return r.db.names }

func (r *reader) SchemaVersion() uint64 { return r.db.version }

func (r *reader) Table(name string) query.Table {
	if t := r.db.tables[name]; t != nil && !isServers(name) {
		return t
	}
	return nil
}
