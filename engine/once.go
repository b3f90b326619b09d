package engine

import (
	"bytes"
	"time"

	"fenec/engine/fail"
	"fenec/engine/wal"
)

// Once has a write run once under a key, however often it is sent.
//
// The key, the request's fingerprint and the answer are a row of the collection _idempotency, and the row is a change of
// the write's own block: on disk there is the write with its key or neither, wherever a crash falls. For that the answer
// has to be known before the block lands, so Answer is called with the results while the block is still open, Seq
// being the change the block will end at, the row counted in. A write that fails is put back, and its key with it.
//
// Whoever comes second with a key finds the row, where the first has staged its block, and waits until that is as
// durable as its own answer promises.
type Once struct {
	// Key is 1 to MaxKey characters of printable ASCII.
	Key string
	// Request tells what is asked: the same key for another one is fail.Reused.
	Request [32]byte
	// Answer makes of a write's results what is answered now and ever after. It runs under the database's lock, may not
	// use the database, and its body is copied. It is not called where nothing is to be kept: for a read, for a
	// compact, which changes no document and may run again, and where the write has run before.
	Answer func(results []Result) (status int, body []byte)
}

// MaxKey is how many characters the key of a write has at most.
const MaxKey = 255

// defaultKeyTTL is how long an answer is kept where Options do not say.
const defaultKeyTTL = 24 * time.Hour

// Kept is the answer of a write that has run before.
type Kept struct {
	Status  int
	Body    []byte // not to be changed
	Seq     uint64 // the change the write left the database at
	History string
}

// RanBefore is the answer kept under the key of o, nil where the write is yet to run or o is nil. A database that takes
// no writes answers it too.
func (db *DB) RanBefore(o *Once) (*Kept, error) {
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
	return kept, db.durable(last)
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

// lookUp is keptLocked, and the latest block that what it found may be part of.
func (db *DB) lookUp(o *Once) (*Kept, wal.Ticket, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed {
		return nil, 0, errClosed()
	}
	kept, err := db.keptLocked(o, db.opts.Clock())
	return kept, db.last, err
}

// keptLocked is the answer kept under the key of o, nil where there is none or its time is over. It needs the lock,
// shared or not.
func (db *DB) keptLocked(o *Once, now time.Time) (*Kept, error) {
	if o == nil {
		return nil, nil
	}
	d, err := db.keyRow(o.Key)
	switch {
	case err != nil:
		return nil, err
	case d == nil || db.over(d, now):
		return nil, nil
	case !bytes.Equal(d.Field(keyRequest).Value().B, o.Request[:]):
		return nil, fail.New(fail.Reused, "the idempotency key %q belongs to another request: sent again, a write has the same method, path and body", o.Key)
	}
	return &Kept{
		Status: int(d.Field(keyStatus).Value().N), Body: d.Field(keyBody).Value().B,
		Seq: d.Field(keySeq).Value().N, History: string(d.Field(keyHistory).Value().B),
	}, nil
}
