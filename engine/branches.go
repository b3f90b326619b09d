package engine

import (
	"encoding/hex"

	"fenec/engine/wal"
)

// Fork is where a history begins, as a record that another copy can follow.
type Fork struct {
	At     uint64 // the change at which the history before it was left
	Term   uint64 // of the history that begins
	Record wal.Record
}

// Forks returns the forks after the history of a term, oldest first.
func (db *DB) Forks(term uint64) []Fork {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.history.Term <= term {
		return nil
	}
	forks := db.forksLocked(term)
	out := make([]Fork, len(forks))
	for i, f := range forks {
		out[i] = Fork{f.at, f.Term, wal.Record{Kind: wal.Fork, Data: f.record()}}
	}
	return out
}

// Branch is a history that a copy has passed through: its changes up to At belong to the copy.
type Branch struct {
	History string
	At      uint64
}

// Branches returns the histories that the database has passed through, oldest first and at most the last n; the last one is
// the current history up to the current change.
func (db *DB) Branches(n int) []Branch {
	db.mu.RLock()
	defer db.mu.RUnlock()
	left := db.left[max(0, len(db.left)-n+1):]
	out := make([]Branch, 0, len(left)+1)
	for _, b := range left {
		out = append(out, Branch{b.String(), b.at})
	}
	return append(out, Branch{db.historyText, db.seq})
}

// Common returns the last change that the database shares with another copy, which has passed through branches. ok is false if
// the branches name no history of this database.
func (db *DB) Common(branches []Branch) (seq uint64, ok bool) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	for _, b := range branches {
		h, err := parseHistory([]byte(b.History))
		if err != nil {
			continue
		}
		if end, found := db.endOfLocked(h); found {
			seq, ok = max(seq, min(b.At, end)), true
		}
	}
	return seq, ok
}

// endOfLocked returns the last change of a history that the database holds. It needs the lock.
func (db *DB) endOfLocked(h history) (at uint64, found bool) {
	at = db.seq
	for i := len(db.left) - 1; i >= 0; i-- {
		if h == db.history {
			return at, true
		}
		at = min(at, db.left[i].at)
		if h == db.left[i].history {
			return at, true
		}
	}
	return at, h == db.history
}

// ParseHistory returns the term and the lineage, 16 hexadecimal digits, of a history as Position returns it.
func ParseHistory(text string) (term uint64, lineage string, err error) {
	h, err := parseHistory([]byte(text))
	if err != nil {
		return 0, "", err
	}
	own := h.lineage()
	return h.Term, hex.EncodeToString(own[:]), nil
}

// Lineage returns the lineage of the database, 16 hexadecimal digits: all histories that forked from one database have it in
// common.
func (db *DB) Lineage() string {
	db.mu.RLock()
	defer db.mu.RUnlock()
	own := db.history.lineage()
	return hex.EncodeToString(own[:])
}
