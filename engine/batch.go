package engine

import (
	"context"
	"errors"
	"time"
	"unsafe"

	"fenec/engine/fail"
	"fenec/engine/query"
	"fenec/engine/wal"
)

// Batch runs statements as one block under one lock: all of them or none. A failure says at which statement. Where one
// of them is a compact, each runs on its own instead, and those before a failure stay.
func (db *DB) Batch(ctx context.Context, sts []Statement) (results []Result, at int, err error) {
	results, _, at, err = db.batch(ctx, nil, sts, false)
	return results, at, err
}

// batch is BatchOnce, o being nil where there is no key, or TryBatch where claim is set.
func (db *DB) batch(ctx context.Context, o *Once, sts []Statement, claim bool) (results []Result, kept *Kept, at int, err error) {
	account := query.AccountOf(ctx)
	if account == nil {
		account = new(query.Account)
		ctx = &query.Accounted{Context: ctx, Account: account}
	}
	held := account.Held()
	parsed := make([]*statement, len(sts))
	writes, compacts := false, false
	for i, st := range sts {
		if parsed[i], err = db.statements.parseWithin(st.Text, account); err != nil {
			return nil, nil, i, err
		}
		if parsed[i].compacts() {
			compacts = true
		} else {
			writes = writes || parsed[i].writes()
		}
	}
	switch {
	case compacts && writes && o != nil:
		return nil, nil, -1, fail.New(fail.Invalid, "a batch that writes and compacts is not one block and cannot run under an idempotency key: send the compact on its own")
	case compacts:
		results, at, err = db.eachAlone(ctx, account, sts)
		return results, nil, at, err
	}
	trees := account.Held() - held
	defer func() { account.Return(account.Held() - trees) }()
	ctx = db.timed(ctx)
	if writes {
		results, kept, at, err = db.batchWrite(ctx, o, parsed, sts, claim)
	} else {
		results, at, err = db.batchRead(ctx, parsed, sts)
	}
	return results, kept, at, err
}

func (db *DB) eachAlone(ctx context.Context, account *query.Account, sts []Statement) (results []Result, at int, err error) {
	answers := 0
	defer func() { account.MostAnswer = 0 }()
	for i, st := range sts {
		account.MostAnswer = max(1, MaxBatchAnswer-answers)
		res, err := db.Exec(ctx, st, nil)
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

func (db *DB) batchWrite(ctx context.Context, o *Once, parsed []*statement, sts []Statement, claim bool) ([]Result, *Kept, int, error) {
	if kept, err := db.RanBefore(o); kept != nil || err != nil {
		return nil, kept, -1, err
	}
	results, kept, at, ticket, err := db.stageBatch(ctx, o, parsed, sts, claim)
	if err != nil {
		return results, nil, at, err
	}
	if err := db.commit(ticket); err != nil {
		return nil, nil, 0, err
	}
	for i := range results {
		db.keepUp(ctx, results[i].Affected)
	}
	return results, kept, at, nil
}

// stageBatch is stageStatement of many.
func (db *DB) stageBatch(ctx context.Context, o *Once, parsed []*statement, sts []Statement, claim bool) (results []Result, kept *Kept, at int, ticket wal.Ticket, err error) {
	db.writer.Lock()
	defer db.writer.Unlock()
	db.mu.Lock()
	defer db.mu.Unlock()
	now := db.opts.Clock()
	if kept, err := db.keptLocked(o, now); kept != nil || err != nil {
		return nil, kept, -1, db.last, err
	}
	if err := db.admitLocked(claim); err != nil {
		return nil, nil, 0, 0, err
	}
	db.tx.begin(now, nil)
	defer db.tx.end()
	if results, at, err = db.runAllLocked(ctx, now, parsed, sts, &db.tx); err != nil {
		return nil, nil, at, 0, err
	}
	if claim {
		if err := db.claimedLocked(ctx); err != nil {
			return results, nil, 0, 0, err
		}
	}
	for i := range results {
		results[i].Seq, results[i].History = db.seq, db.historyText
	}
	if o != nil {
		if err := db.tx.keepWithin(query.AccountOf(ctx), o, results); err != nil {
			return nil, nil, -1, 0, err
		}
	}
	return results, nil, at, db.tx.land(), nil
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
		held := account.Held()
		results[i], err = db.runLocked(s, &env, state, nil)
		answers += len(results[i].Body)
		if err == nil { // a short answer is not counted by its statement, and there may be many
			err = account.Hold(int64(cap(results[i].Body))-(account.Held()-held), "answering")
		}
		db.ran(ctx, s, began, &results[i], err)
		if err != nil {
			return nil, i, ofBatch(err)
		}
	}
	return results, len(sts), nil
}

// MaxBatchAnswer bounds the bytes of the answers of a batch together, which are held until the last statement has run.
const MaxBatchAnswer = 64 << 20

// ofBatch is the error of a statement as that of its batch.
func ofBatch(err error) error {
	if errors.Is(err, query.ErrLongAnswer) {
		return fail.New(fail.TooLarge, "the answers of the batch are over %d MiB together: send the statements that read one by one", MaxBatchAnswer>>20)
	}
	return err
}
