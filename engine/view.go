package engine

import (
	"context"
	"time"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query"
	"fenec/engine/wal"
)

// Query is a parsed statement that only reads, for callers that run it many times. It is valid as long as its database,
// even if schemas change.
type Query struct{ statement *statement }

// Query parses a statement that only reads.
func (db *DB) Query(text string) (*Query, error) {
	s, err := db.statements.parse(text)
	if err != nil {
		return nil, err
	}
	if s.writes() {
		return nil, fail.New(fail.Invalid, "the statement writes: expected one that only reads")
	}
	return &Query{s}, nil
}

// View is a database at one change.
type View struct {
	Seq     uint64
	History string

	db   *DB
	ctx  context.Context
	now  time.Time
	last wal.Ticket // of the latest block
}

// View calls fn with a view of the database at the current change. No write lands until fn returns, so it must be short.
// fn must not call the database except through the view. The statement timeout applies to all its reads together.
func (db *DB) View(ctx context.Context, scope Scope, fn func(v *View) error) error {
	if err := scope.MayRead(); err != nil {
		return err
	}
	ctx = db.timed(ctx)
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed {
		return errClosed()
	}
	v := &View{Seq: db.seq, History: db.historyText, db: db, ctx: ctx, now: db.opts.Clock(), last: db.last}
	return fn(v)
}

// SettledView is View that returns once the change of the view is as durable as an acknowledged write. If that change
// could not be written, fn has seen what was undone, and is called again.
func (db *DB) SettledView(ctx context.Context, scope Scope, fn func(v *View) error) error {
	for {
		var last wal.Ticket
		if err := db.View(ctx, scope, func(v *View) error {
			last = v.last
			return fn(v)
		}); err != nil {
			return err
		}
		if db.log.Commit(last) == nil {
			return nil
		}
	}
}

// HistoryAt returns the history in which a change that the database holds was made.
func (v *View) HistoryAt(seq uint64) string { return v.db.historyAtLocked(seq) }

// Run is Exec of q within the view. It is not counted in StatementStats.
func (v *View) Run(q *Query, params []doc.Value, dst []byte) (Result, error) {
	env := query.Env{Ctx: v.ctx, Params: params, Now: v.now, Account: query.AccountOf(v.ctx)}
	return v.db.runLocked(q.statement, &env, &v.db.reader, dst)
}
