package engine

import (
	"time"

	"fenec/engine/doc"
	"fenec/engine/index"
)

// ExpireBlock is how many documents one block of Expire deletes at most.
const ExpireBlock = 1024

// lookup finds the document of an id; nil where there is none.
type lookup func(id int64) doc.Document

// lookAt finds the documents of t that are there at now.
func (t *table) lookAt(now time.Time) lookup { return there(t.Get, t.ttl, now) }

// there finds, of the documents get does, those whose ttl is not over at now.
func there(get lookup, ttl *doc.Field, now time.Time) lookup {
	if ttl == nil {
		return get
	}
	at := now.UnixMilli()
	return func(id int64) doc.Document {
		if d := get(id); d != nil && !ttl.Gone(d, at) {
			return d
		}
		return nil
	}
}

// gone are the bounds, in the index of t's ttl, of the documents whose time is over at now.
func (t *table) gone(now time.Time) (lo, hi index.Bound) {
	return index.Bound{}, index.Bound{Value: doc.TimestampValue(t.ttl.Deadline(now.UnixMilli())), Inclusive: true}
}

// expired counts the documents of t whose ttl is over at now.
func (t *table) expired(now time.Time) int {
	if t.ttl == nil {
		return 0
	}
	return t.Sorted(t.ttl.Name).Count(t.gone(now))
}

// Expire deletes documents whose ttl is over by the clock, and idempotency keys whose time is, ExpireBlock at most, as one
// block of ordinary deletes, and says how many it deleted. Reads and writes leave such documents out long before; this is what takes them out of the
// file. Where the database takes no writes, being frozen, failed, closing or for reading only, it deletes none.
func (db *DB) Expire() (deleted int, err error) {
	now := db.opts.Clock()
	if !db.anyExpired(now) {
		return 0, nil
	}
	_, _, err = db.writeOwn(nil, func(x *tx) (err error) {
		deleted, err = x.expire(now)
		return err
	})
	if deleted == 0 { // it was closed or frozen meanwhile
		return 0, nil
	}
	return deleted, err
}

// anyExpired tells that Expire has something to delete and may.
func (db *DB) anyExpired(now time.Time) bool {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.writableLocked() != nil {
		return false
	}
	for _, t := range db.tables {
		if t.expired(now) > 0 {
			return true
		}
	}
	return db.keysToSweep(now)
}

// expire deletes what has expired, ExpireBlock documents at most, and says how many.
func (x *tx) expire(now time.Time) (deleted int, err error) {
	for _, name := range x.db.names {
		t := x.db.tables[name]
		for _, id := range t.firstExpired(now, ExpireBlock-deleted) {
			if err := x.Delete(name, id); err != nil {
				return 0, err
			}
			deleted++
		}
	}
	swept, err := x.sweepKeys(ExpireBlock - deleted)
	return deleted + swept, err
}

// firstExpired lists documents of t whose ttl is over at now, limit at most, those gone longest first.
func (t *table) firstExpired(now time.Time, limit int) (ids []int64) {
	if t.ttl == nil || limit == 0 {
		return nil
	}
	lo, hi := t.gone(now)
	t.Sorted(t.ttl.Name).Range(lo, hi, false, func(id int64) bool {
		ids = append(ids, id)
		return len(ids) < limit
	})
	return ids
}
