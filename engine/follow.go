package engine

import (
	"context"
	"time"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/wal"
)

// Follow lands records, blocks and forks, that another copy of the database wrote, in the order of its file. Reads and
// compactions of this copy go on meanwhile. Follow returns once the records are as durable as Options.Sync asks. The
// database has to follow (Options.Follower, Demote). The data of a record has wal.HeaderSize bytes of room before the payload, and is copied.
//
// A record has to begin at the change and in the history that this copy has reached; otherwise Follow fails with
// fail.Conflict. It fails with fail.Damaged if a record cannot be applied. Records before an error have landed; nothing of
// the one at fault has.
func (db *DB) Follow(ctx context.Context, records ...wal.Record) error {
	var last wal.Ticket
	written := uint64(0)
	for _, r := range records {
		ticket, changes, err := db.stageRecord(r)
		if err != nil {
			_ = db.durable(last) // if that fails too, the next call says so
			return err
		}
		last = ticket
		written += changes
	}
	if err := db.durable(last); err != nil {
		return err
	}
	db.derived.LinkIfBehind(ctx, int64(written))
	return nil
}

// stageRecord applies and stages one record, and returns how many changes it holds.
func (db *DB) stageRecord(r wal.Record) (ticket wal.Ticket, changes uint64, err error) {
	db.writer.Lock()
	defer db.writer.Unlock()
	db.mu.Lock()
	defer db.mu.Unlock()
	if !db.follower {
		return 0, 0, fail.New(fail.Invalid, "the database takes writes and cannot follow another copy")
	}
	if err := db.storableLocked(); err != nil {
		return 0, 0, err
	}
	switch {
	case r.Kind == wal.Block && len(r.Data) >= recordHead:
		return db.stageBlock(r.Data)
	case r.Kind == wal.Fork && len(r.Data) >= wal.HeaderSize:
		ticket, err := db.followFork(r.Data[wal.HeaderSize:])
		return ticket, 0, err
	}
	return 0, 0, fail.New(fail.Damaged, "a record of kind %d and %d bytes cannot be followed: it is no block and no fork", r.Kind, len(r.Data))
}

// stageBlock applies and stages a block that another copy wrote.
func (db *DB) stageBlock(data []byte) (ticket wal.Ticket, changes uint64, err error) {
	if changes, err = checkBlock(data); err != nil {
		return 0, 0, err
	}
	block := Record(data)
	if block.After()-changes != db.seq {
		return 0, 0, fail.New(fail.Conflict, "the block goes from change %d to %d, and this copy is at change %d", block.After()-changes, block.After(), db.seq)
	}
	x := &db.tx
	x.begin(time.UnixMilli(block.At()), nil, nil)
	defer x.end()
	x.append(data[recordHead:])
	from, to := x.start+recordHead, x.start+len(data)
	if _, err := db.applyAll(db.memory.segments[x.segment], from, to, x.segment, x.undo); err != nil {
		return 0, 0, err
	}
	x.changes = changes
	db.seq += changes
	return x.land(), changes, nil
}

// checkBlock decodes a whole block, including its documents, and returns how many changes it holds.
func checkBlock(data []byte) (changes uint64, err error) {
	err = operations(data, recordHead, len(data), func(o *operation) error {
		changes++
		switch o.Op {
		case opPut:
			return doc.Validate(o.Doc)
		case opHead, opNext:
			return errNoChange(o.Op)
		}
		return nil
	})
	if err == nil && changes == 0 {
		err = fail.New(fail.Damaged, "a block holds no change")
	}
	return changes, err
}

// followFork applies and stages a fork that another copy wrote.
func (db *DB) followFork(payload []byte) (wal.Ticket, error) {
	f, err := decodeFork(payload)
	if err != nil {
		return 0, err
	}
	if !db.continuedBy(f) {
		return 0, fail.New(fail.Conflict, "the history %s begins at change %d, and this copy is at change %d of %s", f, f.at, db.seq, db.historyText)
	}
	undo := db.landing.empty()
	undo.fork = db.enter(f.history, f.at)
	return db.stageForkLocked(undo), nil
}
