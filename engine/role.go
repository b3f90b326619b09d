package engine

import (
	"fenec/engine/fail"
	"fenec/engine/wal"
)

// A copy of a database either accepts writes of its own or follows another copy (Options.Follower). The role is not in the
// file: the owner stores it, before Promote or Demote makes it take effect.

// Follows reports whether the database follows another copy.
func (db *DB) Follows() bool {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.follower
}

// Promote makes a database that follows another copy accept writes. It begins a history of its own at the current change,
// which is on disk before stored is called; stored makes the new role durable, and writes are accepted once it has returned
// nil. The caller makes sure that no call of Follow runs. It fails with fail.Conflict if the database accepts writes already.
// After an error the database still follows.
func (db *DB) Promote(stored func() error) error {
	var own [lineageSize]byte
	if err := db.fillRandom(own[:]); err != nil {
		return err
	}
	ticket, err := db.stagePromotion(own)
	if err == nil {
		err = db.log.Sync()
	}
	if err != nil {
		return err
	}
	db.landing.landed(ticket)
	if err := stored(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.follower = false
	db.wakeClaimsLocked()
	return nil
}

func (db *DB) stagePromotion(own [lineageSize]byte) (wal.Ticket, error) {
	db.writer.Lock()
	defer db.writer.Unlock()
	db.mu.Lock()
	defer db.mu.Unlock()
	if !db.follower {
		return 0, fail.New(fail.Conflict, "the database accepts writes already")
	}
	if err := db.storableLocked(); err != nil {
		return 0, err
	}
	return db.beginOwnLocked(own), nil
}

// Demote makes a database that accepts writes follow another copy. It refuses writes from then on, waits until every
// acknowledged write is on disk, and calls stored, which makes the new role durable. Waiting claims are woken and refused. If
// stored fails, the database accepts writes again. Of a database that follows already, Demote only calls stored.
func (db *DB) Demote(stored func() error) error {
	was, frozen, err := db.setFollower(true, false)
	if err != nil {
		return err
	}
	if !was {
		_ = db.Sync() // what a failed disk does not hold is undone; the copy follows all the same
	}
	if err = stored(); err != nil && !was {
		_, _, _ = db.setFollower(false, frozen)
	}
	return err
}

// setFollower sets the role and whether the database is frozen, and returns what they were.
func (db *DB) setFollower(follower, frozen bool) (wasFollower, wasFrozen bool, err error) {
	db.writer.Lock()
	defer db.writer.Unlock()
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return false, false, errClosed()
	}
	wasFollower, wasFrozen = db.follower, db.frozen
	db.follower, db.frozen = follower, frozen
	db.wakeClaimsLocked()
	return wasFollower, wasFrozen, nil
}

// wakeClaimsLocked wakes all waiting claims. It needs the lock.
func (db *DB) wakeClaimsLocked() {
	db.watches.mu.Lock()
	defer db.watches.mu.Unlock()
	db.watches.notifyAll(db.opts.Clock(), false)
}

// errFollows is the error of a write to a copy that follows another one.
func errFollows() error {
	return fail.New(fail.Follows, "this copy of the database follows another one: send the write there")
}
