package engine

import (
	"context"
	"time"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query"
	"fenec/engine/wal"
)

// Query is a statement that only reads, kept by whoever runs it again and again. It is good for as long as its database,
// whatever becomes of the schemas meanwhile.
type Query struct{ statement *statement }

// Query parses a statement that only reads.
func (db *DB) Query(text string) (*Query, error) {
	s, err := db.statements.parse(text)
	if err != nil {
		return nil, err
	}
	if s.writes() {
		return nil, fail.New(fail.Invalid, "the statement writes, and is to read only")
	}
	return &Query{s}, nil
}

// View is a database held still at one change.
type View struct {
	Seq     uint64
	History string

	db   *DB
	ctx  context.Context
	now  time.Time
	last wal.Ticket // of the latest block
}

// View has fn read from the database as it stands at one change. No write lands until fn returns, so it must be short,
// and it may call nothing of the database but the view. A statement timeout is that of all it reads.
func (db *DB) View(ctx context.Context, fn func(v *View) error) error {
	ctx = db.timed(ctx)
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed {
		return errClosed()
	}
	v := &View{Seq: db.seq, History: db.historyText, db: db, ctx: ctx, now: db.opts.Clock(), last: db.last}
	return fn(v)
}

// SettledView is View, and returns once the change it was of is as durable as a write that is answered. Where that could
// not be written, fn has seen what was taken back, and is called again.
func (db *DB) SettledView(ctx context.Context, fn func(v *View) error) error {
	for {
		var last wal.Ticket
		if err := db.View(ctx, func(v *View) error {
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

// HistoryAt is the history that a change the database holds was made in.
func (v *View) HistoryAt(seq uint64) string { return v.db.historyAtLocked(seq) }

// Run is Exec of q within the view. It is not counted among the statements.
func (v *View) Run(q *Query, params []doc.Value, dst []byte) (Result, error) {
	env := query.Env{Ctx: v.ctx, Params: params, Now: v.now, Account: query.AccountOf(v.ctx)}
	return v.db.runLocked(q.statement, &env, &v.db.reader, dst)
}
