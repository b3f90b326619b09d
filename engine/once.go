package engine

import (
	"bytes"
	"context"
	"time"

	"fenec/engine/fail"
	"fenec/engine/wal"
)

// Once makes a write run once under a key, however often it is sent.
//
// The key, the request's fingerprint and the answer are a row of the collection _idempotency. The row is a change of the
// write's own block, so after a crash the disk has the write with its key or neither. The answer therefore has to be known
// before the block lands: Answer is called with the results while the block is still open. Seq in them is the change number
// after the block, including the row. A write that fails is undone together with its key.
//
// A second request with a key finds the row once the first has staged its block. It waits until that block is as durable as
// its own answer promises.
type Once struct {
	// Key is 1 to MaxKey characters of printable ASCII.
	Key string
	// Request is the fingerprint of the request. The same key with another fingerprint fails with fail.Reused.
	Request [32]byte
	// Answer turns a write's results into the answer that is sent now and on every repetition. It runs under the database's
	// lock and must not call the database; its body is copied. It is not called for a read, for a compact, which changes no
	// document and may run again, or if the write has run before.
	Answer func(results []Result) (status int, body []byte)
}

// MaxKey is the most characters of the key of a write.
const MaxKey = 255

// defaultKeyTTL is how long an answer is kept if Options.KeyTTL is zero.
const defaultKeyTTL = 24 * time.Hour

// Kept is the answer of a write that has run before.
type Kept struct {
	Status  int
	Body    []byte // not to be changed
	Seq     uint64 // the change number after the write
	History string
}

// RanBefore returns the answer kept under the key of o, or nil if the write has not run or o is nil. It also works on a
// database that accepts no writes. Like a write it returns once the answer may be acknowledged.
func (db *DB) RanBefore(ctx context.Context, scope Scope, o *Once) (*Kept, error) {
	if err := scope.MayRead(); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, nil
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	kept, last, err := db.lookUp(o)
	if kept == nil {
		return nil, err
	}
	if err = db.durable(last); err == nil {
		err = db.acknowledged(ctx, kept.Seq)
	}
	return kept, err
}

func (o *Once) check() error {
	if len(o.Key) == 0 || len(o.Key) > MaxKey {
		return fail.New(fail.Invalid, "an idempotency key has 1 to %d characters, got %d", MaxKey, len(o.Key))
	}
	for i := range len(o.Key) {
		if c := o.Key[i]; c < ' ' || c > '~' {
			return fail.New(fail.Invalid, "an idempotency key is printable ASCII, got the byte %#02x in it", c)
		}
	}
	return nil
}

// lookUp returns the result of keptLocked and the ticket of the latest block that it may be part of.
func (db *DB) lookUp(o *Once) (*Kept, wal.Ticket, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed {
		return nil, 0, errClosed()
	}
	kept, err := db.keptLocked(o, db.opts.Clock())
	return kept, db.last, err
}

// keptLocked returns the answer kept under the key of o, or nil if there is none or it has expired. It needs the lock,
// shared or not.
func (db *DB) keptLocked(o *Once, now time.Time) (*Kept, error) {
	if o == nil {
		return nil, nil
	}
	d, err := db.keyRow(o.Key)
	switch {
	case err != nil:
		return nil, err
	case d == nil || db.keyExpired(d, now):
		return nil, nil
	case !bytes.Equal(d.Field(keyRequest).Value().B, o.Request[:]):
		return nil, fail.New(fail.Reused, "the idempotency key %q belongs to another request: sent again, a write has the same method, path and body", o.Key)
	}
	return &Kept{
		Status: int(d.Field(keyStatus).Value().N), Body: d.Field(keyBody).Value().B,
		Seq: d.Field(keySeq).Value().N, History: string(d.Field(keyHistory).Value().B),
	}, nil
}
