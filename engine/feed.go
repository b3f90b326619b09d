package engine

import (
	"encoding/binary"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/wal"
)

// Feed keeps the changes of a database for its followers. It is notified of what the file holds when it is opened, and of
// every block from then on, in the order of the file.
//
// Its methods run under the database's exclusive lock, except Settled, Synced, Rewriting and Abandoned. They must be quick
// and must not call the database.
type Feed interface {
	// Begin is called once, first: the file begins with an image as of the change seq, with these collections in it.
	Begin(db *DB, seq uint64, collections []Collection)
	// Landed adds a block. Statements see it, and its record is staged or was in the file when it was opened.
	Landed(block Landed)
	// Relocated reports that a segment has moved in memory, maybe without the bytes after its last block.
	Relocated(segment int, memory []byte)
	// Undone removes the blocks from a ticket on: they could not be written, and nothing lands any more.
	Undone(first wal.Ticket)
	// Opened is called after the file has been replayed. Those of its blocks that end at or before offset onDisk are known
	// to be on disk.
	Opened(onDisk int64)
	// Settled reports that the blocks up to a ticket are as durable as the policy promises: in the file, and on disk if the
	// policy is always. It is called under the log's lock, maybe before Landed is called for that block.
	Settled(last wal.Ticket)
	// Synced reports that the blocks up to a ticket are on disk, and so is what was in the file when it was opened. It is
	// called under the log's lock.
	Synced(last wal.Ticket)
	// Rewriting reports, without a lock, that a new file is being written that begins with an image as of the change seq.
	// Blocks up to seq may soon no longer be in the file. Abandoned or Rewritten follows.
	Rewriting(seq uint64)
	// Abandoned reports, without a lock, that the new file was given up.
	Abandoned()
	// Rewritten reports that the new file is in place and on disk and that the memory of the old one is about to be
	// released. The segments hold the records, one after the other, of the blocks that landed after its image.
	Rewritten(segments [][]byte)
}

// Collection is a collection and its number in records.
type Collection struct {
	Number uint64
	Schema *doc.Schema // not to be changed
}

// Landed is one block in a database's memory.
type Landed struct {
	Before, After uint64     // the change numbers before the block and after it
	Ticket        wal.Ticket // one more with each record, not all of which are blocks; 0 if it was in the file when opened
	// Memory is a segment up to the end of the block, whose record begins at Start. The bytes never change. Blocks follow
	// each other in segments, each of which has its own number.
	Memory  []byte
	Segment int
	Start   int
	Schemas bool // a collection was created, altered or dropped
}

// beginFeed gives the feed, once, the content of the image that the file begins with.
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

// SyncPolicy returns the policy that sets when writes are on disk.
func (db *DB) SyncPolicy() wal.Policy { return db.opts.Sync }

// Sync blocks until what has landed by now is on disk, whatever the policy. It blocks no writer.
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
	// Created created a collection; Altered changed its schema, as a new index does too; Dropped dropped it.
	Created ChangeOp = opCreate
	Dropped ChangeOp = opDrop
	Altered ChangeOp = opSchema
	// Put stored a document under its id; Deleted deleted one.
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

// Record is a block as it is in the file and in the segments of a feed.
type Record []byte

// RecordAt returns the record that b begins with.
func RecordAt(b []byte) Record {
	size := wal.RecordSize(b)
	return Record(b[:size:size])
}

// After returns the change number of the database after the block.
func (r Record) After() uint64 { return binary.LittleEndian.Uint64(r[wal.HeaderSize:]) }

// At returns when the block landed, in milliseconds since 1970.
func (r Record) At() int64 { return int64(binary.LittleEndian.Uint64(r[wal.HeaderSize+8:])) }

// Changes calls fn with each change of the block in order, one at a time in the same struct, until fn returns an error.
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

// IsServers reports whether name is that of an internal collection.
func IsServers(name string) bool { return isServers(name) }
