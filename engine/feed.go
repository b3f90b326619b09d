package engine

import (
	"encoding/binary"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/wal"
)

// Feed keeps the changes of a database for those who follow it. It is told what the file holds as it is opened, and of
// every block from then on, in the order of the file.
//
// Its methods run under the database's exclusive lock, but for Settled, Synced, Rewriting and Abandoned. They must be quick,
// and may call nothing of the database.
type Feed interface {
	// Begin is called once, first: the file begins with an image as of the change seq, with these collections in it.
	Begin(db *DB, seq uint64, collections []Collection)
	// Landed adds a block: statements see it, and its record is staged or was in the file as that was opened.
	Landed(block Landed)
	// Relocated tells that a segment lies elsewhere now, maybe without what follows its last block.
	Relocated(segment int, memory []byte)
	// Undone takes back the blocks from a ticket on: they could not be written, and nothing lands any more.
	Undone(first wal.Ticket)
	// Opened is called once the file has been replayed: of its blocks, those that end at or before an offset in it are
	// known to be on disk.
	Opened(onDisk int64)
	// Settled tells that the blocks up to a ticket are as durable as their writers are told: in the file, and on disk
	// where the policy is always. It is called under the log's lock, maybe before Landed is with that block.
	Settled(last wal.Ticket)
	// Synced tells that the blocks up to a ticket are on disk, and so is what was in the file as it was opened. It is
	// called under the log's lock.
	Synced(last wal.Ticket)
	// Rewriting tells, without a lock, that a new file is being written that begins with an image as of the change seq:
	// blocks up to it may soon be in the file no more. Abandoned or Rewritten follows.
	Rewriting(seq uint64)
	// Abandoned tells, without a lock, that the new file came to nothing.
	Abandoned()
	// Rewritten tells that the file announced is in its place and on disk, and the memory of the old one about to
	// be let go of. The segments are records, one behind the other, of the blocks landed after its image.
	Rewritten(segments [][]byte)
}

// Collection is a collection and the number the records name it by.
type Collection struct {
	Number uint64
	Schema *doc.Schema // not to be changed
}

// Landed is one block in a database's memory.
type Landed struct {
	Before, After uint64     // the change numbers it begins behind and ends at
	Ticket        wal.Ticket // one more with each record, not all of which are blocks; 0 where it was in the file as that was opened
	// Memory is a segment up to the block's end, of which the block's record is what Start begins. The bytes never
	// change. Blocks lie one behind the other in segments with a number of their own.
	Memory  []byte
	Segment int
	Start   int
	Schemas bool // a collection began, changed its schema or ended
}

// beginFeed tells the feed, once, what the image holds that the file begins with.
func (db *DB) beginFeed() {
	if db.fed || db.opts.Feed == nil {
		return
	}
	db.fed = true
	collections := make([]Collection, 0, len(db.tables))
	for _, t := range db.tables {
		collections = append(collections, Collection{t.number, t.schema})
	}
	db.opts.Feed.Begin(db, db.seq, collections)
}

func (db *DB) feed(b Landed) {
	if db.opts.Feed != nil {
		db.opts.Feed.Landed(b)
	}
}

// SyncPolicy says when what is written is on disk.
func (db *DB) SyncPolicy() wal.Policy { return db.opts.Sync }

// Sync has what has landed by now on disk as it returns, whatever the policy, and holds no writer up.
func (db *DB) Sync() error {
	db.mu.RLock()
	last := db.last
	db.mu.RUnlock()
	if err := db.log.Commit(last); err != nil {
		return err
	}
	return db.log.SyncWritten()
}

// ChangeOp is what a change did.
type ChangeOp uint8

const (
	// Created began a collection; Altered gave one another schema, which a new index does too; Dropped ended one.
	Created ChangeOp = opCreate
	Dropped ChangeOp = opDrop
	Altered ChangeOp = opSchema
	// Put put a document in the place of its id; Deleted took one out.
	Put     ChangeOp = opPut
	Deleted ChangeOp = opDelete
)

// Change is one change of a block.
type Change struct {
	Op     ChangeOp
	Table  uint64       // the collection's number
	ID     int64        // Put, Deleted
	Doc    doc.Document // Put
	Schema *doc.Schema  // Created, Altered
}

// Record is a block as it is in the file: what a record of a feed's segment begins with.
type Record []byte

// RecordAt is the record that b begins with.
func RecordAt(b []byte) Record {
	size := wal.RecordSize(b)
	return Record(b[:size:size])
}

// After is the change number the block leaves its database at.
func (r Record) After() uint64 { return binary.LittleEndian.Uint64(r[wal.HeaderSize:]) }

// At is when the block landed, in milliseconds since 1970.
func (r Record) At() int64 { return int64(binary.LittleEndian.Uint64(r[wal.HeaderSize+8:])) }

// Changes calls fn with each change of the block in order, one at a time in the same struct, until fn answers an error.
func (r Record) Changes(fn func(*Change) error) error {
	var c Change
	return operations(r, recordHead, len(r), func(o *operation) error {
		c = Change{Op: ChangeOp(o.Op), Table: o.Table}
		switch o.Op {
		case opPut:
			c.ID, c.Doc = o.Doc.ID(), o.Doc
		case opDelete:
			c.ID = int64(o.N)
		case opCreate, opSchema:
			c.Schema = o.Schema
		case opDrop:
		default:
			return errNoChange(o.Op)
		}
		return fn(&c)
	})
}

func errNoChange(op byte) error {
	return fail.New(fail.Damaged, "a block holds operation %d, which is no change", op)
}

// IsServers tells a collection of the server's own by its name.
func IsServers(name string) bool { return isServers(name) }
