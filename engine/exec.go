package engine

import (
	"context"
	"time"

	"fenec/engine/query"
)

// Request is a list of statements and how to run them.
type Request struct {
	// Statements are run in order. More than one are a batch: one block, all of them or none.
	Statements []Statement
	// Batch makes a batch of one statement too.
	Batch bool
	// Once runs a write once under a key, however often it is sent. A batch that writes and holds a compact is refused.
	Once *Once
	// Claim makes a write that writes nothing fail with ErrNothing; the reply still has its results. No key is stored
	// then. A frozen database refuses only a claim that finds something to write.
	Claim bool
	// Dst is what the rows of a single statement are appended to.
	Dst []byte
}

// Reply is the outcome of a Request.
type Reply struct {
	Result  Result   // of a single statement
	Results []Result // of a batch
	Kept    *Kept    // the first answer of a write that has run before under its key; there are no results then
	// At is, after an error, the index of the statement of the batch that failed, or -1 if the fault lies elsewhere, for
	// example in the key.
	At int
}

// Run runs a request. Its writes are one block, which lands whole or not at all. Run returns once the block is as durable
// as Options.Sync asks. The rows of a result are a JSON array in its Body. Errors carry a fail.Kind and, if a text is at
// fault, the place in it.
//
// A batch that contains a compact is not one block: each of its statements runs on its own, and those before a failure
// stay.
func (db *DB) Run(ctx context.Context, scope Scope, r *Request) (Reply, error) {
	if r.Batch || len(r.Statements) != 1 {
		return db.batch(ctx, scope, r)
	}
	res, kept, err := db.exec(ctx, scope, r.Once, r.Statements[0], r.Dst, r.Claim)
	return Reply{Result: res, Kept: kept}, err
}

// Exec is Run of one statement.
func (db *DB) Exec(ctx context.Context, scope Scope, st Statement, dst []byte) (Result, error) {
	res, _, err := db.exec(ctx, scope, nil, st, dst, false)
	return res, err
}

// Batch is Run of a batch.
func (db *DB) Batch(ctx context.Context, scope Scope, sts []Statement) (results []Result, at int, err error) {
	r, err := db.batch(ctx, scope, &Request{Statements: sts})
	return r.Results, r.At, err
}

func (db *DB) exec(ctx context.Context, scope Scope, o *Once, st Statement, dst []byte, claim bool) (res Result, kept *Kept, err error) {
	account := query.AccountOf(ctx)
	held := account.Held()
	s, err := db.statements.parseWithin(st.Text, account)
	if err != nil {
		return Result{}, nil, err
	}
	if err := scope.permits(s); err != nil {
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
		res, kept, err = db.execWrite(scope, o, s, &env, dst, claim)
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
	env.Now = db.opts.Clock() // under the lock, so that no earlier statement has a later time
	return db.runLocked(s, env, &db.reader, dst)
}

func (db *DB) execWrite(scope Scope, o *Once, s *statement, env *query.Env, dst []byte, claim bool) (Result, *Kept, error) {
	built := db.beginBuild(s)
	defer db.endBuild(built)
	if err := db.build(env, built); err != nil {
		return Result{}, nil, err
	}
	w := write{ctx: env.Ctx, account: env.Account, scope: scope, once: o, claim: claim, statement: s, env: *env, built: built, dst: dst}
	kept, err := db.write(&w)
	return w.result, kept, err
}

// runLocked plans s for the current schemas and runs it over state.
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

// timed returns ctx with the statement timeout, if one is set. It needs no timer: a statement polls the Err of its
// context every few thousand rows.
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

// Limit returns how long the statement may take, for the message of the timeout.
func (c *timedContext) Limit() time.Duration { return c.limit }

func (c *timedContext) Err() error {
	if c.clock().After(c.until) {
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}
