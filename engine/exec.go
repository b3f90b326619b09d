package engine

import (
	"context"
	"errors"
	"time"

	"fenec/engine/fail"
	"fenec/engine/query"
	"fenec/engine/query/syntax"
	"fenec/engine/wal"
)

// Exec runs one statement. A write is one block: it lands whole or not at all, and Exec returns once it is as durable
// as Options.Sync asks. Rows are appended to dst as a JSON array, in Result.Body. Errors carry a fail.Kind and, where
// the text is at fault, the place in it.
func (db *DB) Exec(ctx context.Context, st Statement, dst []byte) (Result, error) {
	s, err := db.statements.parse(st.Text)
	if err != nil {
		return Result{}, err
	}
	ctx = db.timed(ctx)
	if _, ok := s.tree.(*syntax.Compact); ok {
		res, err := db.compactStatement(ctx, s)
		return res, stopped(ctx, err)
	}
	env := query.Env{Ctx: ctx, Params: st.Params}
	var res Result
	if s.writes() {
		res, err = db.execWrite(s, &env, dst)
	} else {
		res, err = db.execRead(s, &env, dst)
	}
	return res, stopped(ctx, err)
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

func (db *DB) execWrite(s *statement, env *query.Env, dst []byte) (Result, error) {
	built := db.watch(s)
	defer db.unwatch(built)
	if err := db.prepare(env, built); err != nil {
		return Result{}, err
	}
	res, ticket, err := db.stageStatement(s, env, built, dst)
	if err == nil {
		err = db.commit(ticket)
	}
	if err != nil {
		return Result{}, err
	}
	return res, nil
}

// stageStatement runs the write s as one block and stages it.
func (db *DB) stageStatement(s *statement, env *query.Env, built *building, dst []byte) (Result, wal.Ticket, error) {
	db.writer.Lock()
	defer db.writer.Unlock()
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.writableLocked(); err != nil {
		return Result{}, 0, err
	}
	env.Now = db.opts.Clock()
	db.tx.begin(env.Now, built)
	defer db.tx.end()
	res, err := db.runLocked(s, env, &db.tx, dst)
	if err != nil {
		return Result{}, 0, err
	}
	res.Seq = db.seq
	return res, db.tx.land(), nil
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

// Batch runs statements as one block under one lock: all of them or none. A failure says at which statement. Where one
// of them is a compact, each runs on its own instead, and those before a failure stay.
func (db *DB) Batch(ctx context.Context, sts []Statement) (results []Result, at int, err error) {
	parsed := make([]*statement, len(sts))
	writes, alone := false, false
	for i, st := range sts {
		if parsed[i], err = db.statements.parse(st.Text); err != nil {
			return nil, i, err
		}
		writes = writes || parsed[i].writes()
		_, compact := parsed[i].tree.(*syntax.Compact)
		alone = alone || compact
	}
	if alone {
		return db.eachAlone(ctx, sts)
	}
	ctx = db.timed(ctx)
	if writes {
		results, at, err = db.batchWrite(ctx, parsed, sts)
	} else {
		results, at, err = db.batchRead(ctx, parsed, sts)
	}
	return results, at, stopped(ctx, err)
}

func (db *DB) eachAlone(ctx context.Context, sts []Statement) (results []Result, at int, err error) {
	for i, st := range sts {
		res, err := db.Exec(ctx, st, nil)
		if err != nil {
			return results, i, err
		}
		results = append(results, res)
	}
	return results, len(sts), nil
}

func (db *DB) batchRead(ctx context.Context, parsed []*statement, sts []Statement) ([]Result, int, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed {
		return nil, 0, errClosed()
	}
	return db.runAllLocked(ctx, db.opts.Clock(), parsed, sts, &db.reader)
}

func (db *DB) batchWrite(ctx context.Context, parsed []*statement, sts []Statement) ([]Result, int, error) {
	results, at, ticket, err := db.stageBatch(ctx, parsed, sts)
	if err != nil {
		return nil, at, err
	}
	if err := db.commit(ticket); err != nil {
		return nil, 0, err
	}
	return results, at, nil
}

// stageBatch is stageStatement of many.
func (db *DB) stageBatch(ctx context.Context, parsed []*statement, sts []Statement) (results []Result, at int, ticket wal.Ticket, err error) {
	db.writer.Lock()
	defer db.writer.Unlock()
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.writableLocked(); err != nil {
		return nil, 0, 0, err
	}
	now := db.opts.Clock()
	db.tx.begin(now, nil)
	defer db.tx.end()
	if results, at, err = db.runAllLocked(ctx, now, parsed, sts, &db.tx); err != nil {
		return nil, at, 0, err
	}
	for i := range results {
		results[i].Seq = db.seq
	}
	return results, at, db.tx.land(), nil
}

func (db *DB) runAllLocked(ctx context.Context, now time.Time, parsed []*statement, sts []Statement, state query.Reader) (results []Result, at int, err error) {
	results = make([]Result, len(sts))
	for i, s := range parsed {
		env := query.Env{Ctx: ctx, Params: sts[i].Params, Now: now}
		if results[i], err = db.runLocked(s, &env, state, nil); err != nil {
			return nil, i, err
		}
	}
	return results, len(sts), nil
}

// timed is ctx with the statement timeout, where there is one. It is asked rather than told: a statement looks at its
// context every few thousand rows, so no timer is set for it.
func (db *DB) timed(ctx context.Context) context.Context {
	if db.opts.StatementTimeout <= 0 {
		return ctx
	}
	return &timedContext{Context: ctx, clock: db.opts.Clock, until: db.opts.Clock().Add(db.opts.StatementTimeout)}
}

type timedContext struct {
	context.Context
	clock func() time.Time
	until time.Time
}

func (c *timedContext) Err() error {
	if c.clock().After(c.until) {
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}

// stopped says of a statement its context stopped whether that was the timeout or its caller.
func stopped(ctx context.Context, err error) error {
	if err != nil && fail.KindOf(err) == fail.Canceled && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fail.New(fail.Timeout, "the statement ran longer than is allowed and was stopped: %s", err)
	}
	return err
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
