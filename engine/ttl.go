package engine

import (
	"time"

	"fenec/engine/derived"
	"fenec/engine/doc"
	"fenec/engine/index"
)

// ExpireBlock is the most documents that one block of Expire deletes.
const ExpireBlock = 1024

// liveAt returns a lookup of the documents of t that have not expired at now.
func (t *table) liveAt(now time.Time) derived.Lookup { return derived.Unexpired(t.Get, t.ttl, now) }

// expiredBounds returns the bounds, in the index of t's ttl, of the documents that have expired at now.
func (t *table) expiredBounds(now time.Time) (lo, hi index.Bound) {
	return index.Bound{}, index.Bound{Value: doc.TimestampValue(t.ttl.Deadline(now.UnixMilli())), Inclusive: true}
}

// expired counts the documents of t that have expired at now.
func (t *table) expired(now time.Time) int {
	if t.ttl == nil {
		return 0
	}
	return t.Sorted(t.ttl.Name).Count(t.expiredBounds(now))
}

// Expire deletes expired documents and idempotency keys, at most ExpireBlock of them, as one block of ordinary deletes, and
// returns how many. Statements have ignored them since they expired. It deletes none if the database accepts no writes
// because it is frozen, failed, closing or read-only.
func (db *DB) Expire() (deleted int, err error) {
	now := db.opts.Clock()
	if !db.anyExpired(now) {
		return 0, nil
	}
	_, _, err = db.writeOwn(Everything(), nil, func(x *tx) (err error) {
		deleted, err = x.expire(now)
		return err
	})
	if deleted == 0 { // the database was closed or frozen meanwhile
		return 0, nil
	}
	return deleted, err
}

// anyExpired reports whether Expire has something to delete and may do so.
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

// expire deletes at most ExpireBlock documents that have expired, and returns how many.
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

// firstExpired lists at most limit documents of t that have expired at now, earliest expiry first.
func (t *table) firstExpired(now time.Time, limit int) (ids []int64) {
	if t.ttl == nil || limit == 0 {
		return nil
	}
	lo, hi := t.expiredBounds(now)
	t.Sorted(t.ttl.Name).Range(lo, hi, false, func(id int64) bool {
		ids = append(ids, id)
		return len(ids) < limit
	})
	return ids
}
