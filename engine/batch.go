package engine

import (
	"context"
	"errors"
	"time"
	"unsafe"

	"fenec/engine/fail"
	"fenec/engine/query"
)

func (db *DB) batch(ctx context.Context, scope Scope, r *Request) (reply Reply, err error) {
	if err := scope.MayRead(); err != nil {
		return Reply{At: -1}, err
	}
	account := query.AccountOf(ctx)
	if account == nil {
		account = new(query.Account)
		ctx = &query.Accounted{Context: ctx, Account: account}
	}
	held := account.Held()
	parsed := make([]*statement, len(r.Statements))
	writes, compacts := false, false
	for i, st := range r.Statements {
		if parsed[i], err = db.statements.parseWithin(st.Text, account); err != nil {
			return Reply{At: i}, err
		}
		if err = scope.permits(parsed[i]); err != nil {
			return Reply{At: i}, err
		}
		if parsed[i].compacts() {
			compacts = true
		} else {
			writes = writes || parsed[i].writes()
		}
	}
	switch {
	case compacts && writes && r.Once != nil:
		return Reply{At: -1}, fail.New(fail.Invalid, "a batch that writes and compacts is not one block and cannot run under an idempotency key: send the compact on its own")
	case compacts:
		reply.Results, reply.At, err = db.eachAlone(ctx, scope, account, r.Statements)
		return reply, err
	}
	trees := account.Held() - held
	defer func() { account.Return(account.Held() - trees) }()
	ctx = db.timed(ctx)
	if !writes {
		reply.Results, reply.At, err = db.batchRead(ctx, parsed, r.Statements)
		return reply, err
	}
	w := write{ctx: ctx, account: account, scope: scope, once: r.Once, claim: r.Claim, batch: parsed, statements: r.Statements}
	reply.Kept, err = db.write(&w)
	reply.At = w.at
	if err == nil || errors.Is(err, ErrNothing) {
		reply.Results = w.results
	}
	return reply, err
}

func (db *DB) eachAlone(ctx context.Context, scope Scope, account *query.Account, sts []Statement) (results []Result, at int, err error) {
	answers := 0
	defer func() { account.MostAnswer = 0 }()
	for i, st := range sts {
		account.MostAnswer = max(1, MaxBatchAnswer-answers)
		res, err := db.Exec(ctx, scope, st, nil)
		if err != nil {
			return results, i, ofBatch(err)
		}
		answers += len(res.Body)
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

func (db *DB) runAllLocked(ctx context.Context, now time.Time, parsed []*statement, sts []Statement, state query.Reader) (results []Result, at int, err error) {
	account := query.AccountOf(ctx)
	defer func() { account.MostAnswer = 0 }()
	if err := account.Hold(int64(len(sts))*int64(unsafe.Sizeof(Result{})), "about to begin"); err != nil {
		return nil, 0, err
	}
	results = make([]Result, len(sts))
	answers := 0
	for i, s := range parsed {
		began := steady()
		env := query.Env{Ctx: ctx, Params: sts[i].Params, Now: now, Account: account}
		account.MostAnswer = max(1, MaxBatchAnswer-answers)
		held := account.Held() - db.tx.memory.held // what the open block takes is counted apart
		results[i], err = db.runLocked(s, &env, state, nil)
		answers += len(results[i].Body)
		if err == nil { // a short answer is not counted by its statement, and there may be many
			err = account.Hold(int64(cap(results[i].Body))-(account.Held()-db.tx.memory.held-held), "answering")
		}
		db.ran(ctx, s, began, &results[i], err)
		if err != nil {
			return nil, i, ofBatch(err)
		}
	}
	return results, len(sts), nil
}

// MaxBatchAnswer bounds the total bytes of the answers of a batch, which are held until the last statement has run.
const MaxBatchAnswer = 64 << 20

// ofBatch turns the error of a statement into that of its batch.
func ofBatch(err error) error {
	if errors.Is(err, query.ErrLongAnswer) {
		return fail.New(fail.TooLarge, "the answers of the batch are over %d MiB together: send the statements that read one by one", MaxBatchAnswer>>20)
	}
	return err
}
