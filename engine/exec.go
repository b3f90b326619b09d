package engine

import (
	"context"
	"time"

	"fenec/engine/query"
	"fenec/engine/query/syntax"
	"fenec/engine/wal"
)

// Exec runs one statement. A write is one block: it lands whole or not at all, and Exec returns once it is as durable
// as Options.Sync asks. Rows are appended to dst as a JSON array, in Result.Body. Errors carry a fail.Kind and, where
// the text is at fault, the place in it.
func (db *DB) Exec(ctx context.Context, st Statement, dst []byte) (Result, error) {
	res, _, err := db.exec(ctx, nil, st, dst, false)
	return res, err
}

// exec is ExecOnce, o being nil where there is no key, or Try where claim is set.
func (db *DB) exec(ctx context.Context, o *Once, st Statement, dst []byte, claim bool) (res Result, kept *Kept, err error) {
	account := query.AccountOf(ctx)
	held := account.Held()
	s, err := db.statements.parseWithin(st.Text, account)
	if err != nil {
		return Result{}, nil, err
	}
	tree := account.Held() - held
	began := steady()
	ctx = db.timed(ctx)
	env := query.Env{Ctx: ctx, Params: st.Params, Account: account}
	switch {
	case s.compacts():
		res, err = db.compactStatement(ctx, s)
	case s.writes():
		res, kept, err = db.execWrite(o, s, &env, dst, claim)
	default:
		res, err = db.execRead(s, &env, dst)
	}
	if kept == nil && err != ErrNothing {
		db.ran(ctx, s, began, &res, err)
	}
	account.Return(account.Held() - tree)
	return res, kept, err
}

func (db *DB) execRead(s *statement, env *query.Env, dst []byte) (Result, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed {
		return Result{}, errClosed()
	}
	env.Now = db.opts.Clock() // under the lock, so that no statement that ran before had a later time
	return db.runLocked(s, env, &db.reader, dst)
}

func (db *DB) execWrite(o *Once, s *statement, env *query.Env, dst []byte, claim bool) (Result, *Kept, error) {
	if kept, err := db.RanBefore(o); kept != nil || err != nil {
		return Result{}, kept, err
	}
	built := db.watch(s)
	defer db.unwatch(built)
	if err := db.prepare(env, built); err != nil {
		return Result{}, nil, err
	}
	res, kept, ticket, err := db.stageStatement(o, s, env, built, dst, claim)
	if err == nil {
		err = db.commit(ticket)
	}
	if err != nil {
		return res, nil, err
	}
	db.keepUp(env.Ctx, res.Affected)
	return res, kept, nil
}

// stageStatement runs the write s as one block and stages it, or finds what is kept under its key.
func (db *DB) stageStatement(o *Once, s *statement, env *query.Env, built *building, dst []byte, claim bool) (Result, *Kept, wal.Ticket, error) {
	db.writer.Lock()
	defer db.writer.Unlock()
	db.mu.Lock()
	defer db.mu.Unlock()
	env.Now = db.opts.Clock()
	if kept, err := db.keptLocked(o, env.Now); kept != nil || err != nil {
		return Result{}, kept, db.last, err
	}
	if err := db.admitLocked(claim); err != nil {
		return Result{}, nil, 0, err
	}
	db.tx.begin(env.Now, built)
	defer db.tx.end()
	res, err := db.runLocked(s, env, &db.tx, dst)
	if err != nil {
		return Result{}, nil, 0, err
	}
	if claim {
		if err := db.claimedLocked(env.Ctx); err != nil {
			return res, nil, 0, err
		}
	}
	res.Seq = db.seq
	if o != nil {
		one := []Result{res}
		if err := db.tx.keep(o, one); err != nil {
			return Result{}, nil, 0, err
		}
		res = one[0]
	}
	return res, nil, db.tx.land(), nil
}

// commit waits until the block of ticket is as durable as asked. Ticket 0 is of a block without changes.
func (db *DB) commit(ticket wal.Ticket) error {
	if ticket == 0 {
		return nil
	}
	if err := db.log.Commit(ticket); err != nil {
		return err
	}
	db.landing.landed(ticket)
	return nil
}

// runLocked runs s over state, planned for the schemas as they are.
func (db *DB) runLocked(s *statement, env *query.Env, state query.Reader, dst []byte) (Result, error) {
	plan, err := s.plan(state)
	if err != nil {
		return Result{}, err
	}
	res, err := plan.Run(env, state, dst)
	if err != nil {
		return Result{}, err
	}
	return Result{Result: res, Wrote: plan.Writes(), Seq: db.seq, History: db.historyText}, nil
}

// timed is ctx with the statement timeout, where there is one. It is asked rather than told: a statement looks at its
// context every few thousand rows, so no timer is set for it.
func (db *DB) timed(ctx context.Context) context.Context {
	if db.opts.StatementTimeout <= 0 {
		return ctx
	}
	limit := db.opts.StatementTimeout
	return &timedContext{Context: ctx, clock: db.opts.Clock, limit: limit, until: db.opts.Clock().Add(limit)}
}

type timedContext struct {
	context.Context
	clock func() time.Time
	limit time.Duration
	until time.Time
}

// Limit is how long the statement may take, for the sentence that it took longer.
func (c *timedContext) Limit() time.Duration { return c.limit }

func (c *timedContext) Err() error {
	if c.clock().After(c.until) {
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}

// Writes tells whether text is a statement that writes, or compacts. What cannot be read is its error.
func (db *DB) Writes(ctx context.Context, text string) (bool, error) {
	account := query.AccountOf(ctx)
	defer account.Return(account.Held())
	s, err := db.statements.parseWithin(text, account)
	if err != nil {
		return false, err
	}
	return s.writes(), nil
}

// CheckCondition parses text as one condition, the whole of it.
func (db *DB) CheckCondition(text string) error {
	_, err := syntax.ParseCondition(text)
	return err
}

// CheckHaving parses text as one condition of groups, the whole of it.
func (db *DB) CheckHaving(text string) error {
	_, err := syntax.ParseHaving(text)
	return err
}
