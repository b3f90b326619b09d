package engine

import (
	"context"
	"time"

	"fenec/engine/fail"
	"fenec/engine/query"
	"fenec/engine/wal"
)

// write is one block on its way. Every write takes the same stages, be it a statement, a batch, a consumer's cursor or the
// sweep of what has expired:
//
//	admit        its key has not run before, and the database takes writes
//	run          the changes are made in memory, beside what puts them back
//	land         the block gets its place in the file, or is refused and put back
//	durable      the block is as much on disk as Options.Sync asks
//	acknowledge  nothing else is to be waited for before the writer is answered
//
// The first three run under the locks.
type write struct {
	ctx   context.Context
	once  *Once // nil without a key
	claim bool  // it has to write something

	// One of these is run. A single statement brings env, built and dst.
	statement *statement
	batch     []*statement
	own       func(x *tx) error

	env        query.Env
	built      *building
	dst        []byte
	statements []Statement // of the batch

	now     time.Time // when it was admitted
	result  Result    // of the single statement, or of own
	results []Result  // of the batch
	at      int       // the statement of the batch that failed, -1 for none of them
}

// write runs w. kept is the first answer if w has run before under its key: it has no result then.
func (db *DB) write(w *write) (kept *Kept, err error) {
	if kept, err = db.RanBefore(w.once); kept != nil || err != nil {
		w.at = -1
		return kept, err
	}
	kept, ticket, err := db.stage(w)
	if err == nil {
		err = db.durable(ticket)
	}
	if err != nil {
		return nil, err
	}
	if kept == nil {
		db.acknowledge(w)
	}
	return kept, nil
}

// stage makes w a block and stages it, or finds what is kept under its key. What waits for the ticket finds either durable.
func (db *DB) stage(w *write) (kept *Kept, ticket wal.Ticket, err error) {
	db.writer.Lock()
	defer db.writer.Unlock()
	db.mu.Lock()
	defer db.mu.Unlock()
	if kept, err = db.admit(w); kept != nil || err != nil {
		return kept, db.last, err
	}
	db.tx.begin(w.now, w.built)
	defer db.tx.end()
	if err = db.run(w); err != nil {
		return nil, 0, err
	}
	ticket, err = db.land(w)
	return nil, ticket, err
}

// admit sets the time of w and refuses it if the database takes no writes. A claim is refused by land, if it has something
// to write: a frozen database holds it as another does.
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

// run makes the changes of w.
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

// land closes the block of w and stages it, unless it is refused. Without changes there is no block and no ticket.
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

// keepAnswer keeps the answer of w under its key.
func (x *tx) keepAnswer(w *write) error {
	if w.batch != nil {
		return x.keepWithin(query.AccountOf(w.ctx), w.once, w.results)
	}
	results := []Result{w.result}
	err := x.keep(w.once, results)
	w.result = results[0]
	return err
}

// durable blocks until the block of a ticket is as durable as asked. Ticket 0 is of no block.
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

// acknowledge has the writer link as many vectors as it brought, if searches would wait for them otherwise.
func (db *DB) acknowledge(w *write) {
	changed := w.result.Affected
	for i := range w.results {
		changed += w.results[i].Affected
	}
	db.keepUp(w.ctx, changed)
}

// Effect is what a block does to its database.
type Effect struct {
	Bytes int   // of its record in the file
	Rows  int64 // documents it adds, less those it takes out; of collections that statements know
}

// effect is that of the block under way.
func (x *tx) effect() Effect {
	return Effect{Bytes: len(x.record()), Rows: x.undo.rows}
}
