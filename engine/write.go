package engine

import (
	"context"
	"time"

	"fenec/engine/derived"
	"fenec/engine/fail"
	"fenec/engine/query"
	"fenec/engine/wal"
)

// write is one block on the write path. Every write, be it a statement, a batch, a consumer's cursor or the sweep of
// expired documents, passes the same stages:
//
//	admit        checks that its key has not run before and that the database accepts writes
//	run          makes the changes in memory and records how to undo them
//	land         gives the block its place in the file, or undoes it
//	durable      blocks until the block is as durable as Options.Sync asks
//	acknowledge  waits until Options.Acknowledge permits the answer, and links vectors if too many wait for that
//
// The first three run under the locks.
type write struct {
	ctx     context.Context
	account *query.Account // of ctx; nil if it has none
	scope   Scope
	once    *Once // nil without a key
	claim   bool  // the write fails with ErrNothing if it writes nothing

	// Exactly one of these is set. env, built and dst belong to statement.
	statement *statement
	batch     []*statement
	own       func(x *tx) error

	env        query.Env
	built      *derived.Build
	dst        []byte
	statements []Statement // of the batch

	held    int64     // bytes of the block that account counts
	now     time.Time // when the write was admitted
	result  Result    // of the single statement, or of own
	results []Result  // of the batch
	at      int       // index in batch of the statement that failed, -1 if none did
}

// write runs w. If w has run before under its key, kept is the first answer and w has no result.
func (db *DB) write(w *write) (kept *Kept, err error) {
	if err = w.scope.MayWrite(); err != nil {
		w.at = -1
		return nil, err
	}
	if w.once != nil {
		if kept, err = db.RanBefore(w.ctx, w.scope, w.once); kept != nil || err != nil {
			w.at = -1
			return kept, err
		}
	}
	kept, ticket, err := db.stage(w)
	if err == nil {
		err = db.durable(ticket)
	}
	w.account.Return(w.account.Held() - w.held) // what undoes the block is dropped once it is written
	if err == nil {
		err = db.acknowledge(w, kept, ticket)
	}
	if err != nil {
		return nil, err
	}
	return kept, nil
}

// stage runs w and stages its block, or returns the answer kept under its key. Either is durable once the ticket is.
func (db *DB) stage(w *write) (kept *Kept, ticket wal.Ticket, err error) {
	db.writer.Lock()
	defer db.writer.Unlock()
	db.mu.Lock()
	defer db.mu.Unlock()
	if kept, err = db.admit(w); kept != nil || err != nil {
		return kept, db.last, err
	}
	db.tx.begin(w.now, w.account, w.built)
	defer func() { w.held = db.tx.end() }()
	if err = db.run(w); err != nil {
		return nil, 0, err
	}
	ticket, err = db.land(w)
	return nil, ticket, err
}

// admit sets the time of w and refuses it if the database accepts no writes. A frozen database admits a claim, and land
// refuses it if it has something to write: a claim with nothing to write waits in a frozen database as in any other.
func (db *DB) admit(w *write) (*Kept, error) {
	w.now = db.opts.Clock()
	if kept, err := db.keptLocked(w.once, w.now); kept != nil || err != nil {
		w.at = -1
		return kept, err
	}
	err := db.writableLocked()
	if w.claim && fail.KindOf(err) == fail.Frozen {
		err = nil
	}
	return nil, err
}

// run makes the changes of w in memory.
func (db *DB) run(w *write) (err error) {
	switch {
	case w.own != nil:
		err = w.own(&db.tx)
		w.result = Result{Wrote: true, Seq: db.seq, History: db.historyText}
	case w.statement != nil:
		w.env.Now = w.now
		w.result, err = db.runLocked(w.statement, &w.env, &db.tx, w.dst)
	default:
		var at int
		if w.results, at, err = db.runAllLocked(w.ctx, w.now, w.batch, w.statements, &db.tx); err != nil {
			w.at = at
		}
		for i := range w.results {
			w.results[i].Seq, w.results[i].History = db.seq, db.historyText
		}
	}
	return err
}

// land closes the block of w and stages it, unless it is refused. A write without changes has no block and ticket 0.
func (db *DB) land(w *write) (wal.Ticket, error) {
	if w.claim {
		if err := db.claimedLocked(w.ctx); err != nil {
			return 0, err
		}
	}
	if w.once != nil {
		if err := db.tx.keepAnswer(w); err != nil {
			w.at = -1
			return 0, err
		}
	}
	if refuse := db.opts.Refuse; refuse != nil && db.tx.changes > 0 {
		if err := refuse(db.tx.effect()); err != nil {
			w.at = -1
			return 0, err
		}
	}
	return db.tx.land(), nil
}

// keepAnswer stores the answer of w under its key.
func (x *tx) keepAnswer(w *write) error {
	if w.batch != nil {
		return x.keepWithin(w.account, w.once, w.results)
	}
	results := []Result{w.result}
	err := x.keep(w.once, results)
	w.result = results[0]
	return err
}

// durable blocks until the block of a ticket is as durable as Options.Sync asks. Ticket 0 has no block.
func (db *DB) durable(ticket wal.Ticket) error {
	if ticket == 0 {
		return nil
	}
	if err := db.log.Commit(ticket); err != nil {
		return err
	}
	db.landing.landed(ticket)
	return nil
}

// acknowledge waits until w may be answered, with the answer kept under its key if it has run before. It makes the writer
// link as many vectors as it wrote if too many wait to be linked.
func (db *DB) acknowledge(w *write, kept *Kept, ticket wal.Ticket) error {
	if kept != nil {
		return db.acknowledged(w.ctx, kept.Seq)
	}
	changed := w.result.Affected
	for i := range w.results {
		changed += w.results[i].Affected
	}
	db.derived.LinkIfBehind(w.ctx, changed)
	if ticket == 0 { // nothing was written
		return nil
	}
	seq := w.result.Seq
	if n := len(w.results); n > 0 {
		seq = w.results[n-1].Seq
	}
	return db.acknowledged(w.ctx, seq)
}

// acknowledged asks Options.Acknowledge about the block that ends with a change.
func (db *DB) acknowledged(ctx context.Context, seq uint64) error {
	if db.opts.Acknowledge == nil {
		return nil
	}
	return db.opts.Acknowledge(ctx, seq)
}

// Effect is what a block does to its database.
type Effect struct {
	Bytes int   // of its record in the file
	Rows  int64 // documents added less documents deleted, in collections that statements can find
}

// effect returns the effect of the open block.
func (x *tx) effect() Effect {
	return Effect{Bytes: len(x.record()), Rows: x.undo.rows}
}
