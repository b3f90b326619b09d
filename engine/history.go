package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"strconv"

	"fenec/engine/fail"
)

// history names a line of changes: the term, one more with each fork, and an id whose top half is the lineage, which
// every fork of one database keeps.
type history struct {
	Term uint64
	ID   [16]byte
}

// lineageSize is how many bytes of an id are the lineage.
const lineageSize = 8

// branch is a history that was left: changes of it up to at are changes of the history that forked from it too.
type branch struct {
	history
	at uint64
}

// What a history and a branch take in the file.
const (
	historySize = 8 + 16
	branchSize  = historySize + 8
)

func appendHistory(dst []byte, h history) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, h.Term)
	return append(dst, h.ID[:]...)
}

// decodeHistory reads the history that b, which has historySize bytes at least, begins with.
func decodeHistory(b []byte) (h history) {
	h.Term = binary.LittleEndian.Uint64(b)
	copy(h.ID[:], b[8:])
	return h
}

// beginHistory begins a lineage at term 1.
func (db *DB) beginHistory() error {
	h := history{Term: 1}
	if _, err := io.ReadFull(db.opts.Rand, h.ID[:]); err != nil {
		return errRandomness(err)
	}
	db.setHistory(h)
	return nil
}

// forkHistory begins a history of the same lineage, one term more, that leaves the one there is at a change.
func (db *DB) forkHistory(at uint64) error {
	h := history{Term: db.history.Term + 1, ID: db.history.ID}
	if _, err := io.ReadFull(db.opts.Rand, h.ID[lineageSize:]); err != nil {
		return errRandomness(err)
	}
	db.left = append(db.left, branch{db.history, at})
	db.setHistory(h)
	return nil
}

func errRandomness(err error) error {
	return fail.New(fail.Storage, "no randomness to name a history by: %v", err)
}

func (db *DB) setHistory(h history) {
	db.history, db.historyText = h, h.String()
}

// String is `<term>-<id>`, the id in hexadecimal.
func (h history) String() string {
	b := make([]byte, 0, 64)
	b = strconv.AppendUint(b, h.Term, 10)
	b = append(b, '-')
	return string(hex.AppendEncode(b, h.ID[:]))
}

// parseHistory reads what String writes.
func parseHistory(text []byte) (h history, err error) {
	term, id, _ := bytes.Cut(text, []byte("-"))
	h.Term, err = strconv.ParseUint(string(term), 10, 64)
	if err != nil || h.Term == 0 || term[0] == '+' || len(id) != hex.EncodedLen(len(h.ID)) {
		return history{}, errHistory()
	}
	if _, err := hex.Decode(h.ID[:], id); err != nil {
		return history{}, errHistory()
	}
	return h, nil
}

func errHistory() error {
	return fail.New(fail.Invalid, "a history is <term>-<id>, a number and 32 hexadecimal digits, as Fenec-History of an answer has it")
}

// Standing is where a database stands to a change of a history.
type Standing int

const (
	// Holds is a change the database holds.
	Holds Standing = iota + 1
	// Before is one the database does not hold yet and may come to hold.
	Before
	// Apart is one it will never hold: of a branch that was left before that change, or of another lineage.
	Apart
)

// Stands tells where the database stands to a change of the history written as `<term>-<id>`, or of its own where that
// is empty. What is no history is fail.Invalid.
func (db *DB) Stands(seq uint64, of []byte) (Standing, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if len(of) > 0 && string(of) != db.historyText {
		h, err := parseHistory(of)
		if err != nil {
			return 0, err
		}
		if h != db.history {
			return db.standsApartLocked(seq, h), nil
		}
	}
	if seq <= db.seq {
		return Holds, nil
	}
	return Before, nil
}

// HistoryAt is the history that a change the database holds was made in.
func (db *DB) HistoryAt(seq uint64) string {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.historyAtLocked(seq)
}

func (db *DB) historyAtLocked(seq uint64) string {
	n := len(db.left)
	for n > 0 && seq <= db.left[n-1].at {
		n--
	}
	if n == len(db.left) {
		return db.historyText
	}
	return db.left[n].String()
}

// standsApartLocked is Stands for another history than the database's own.
func (db *DB) standsApartLocked(seq uint64, h history) Standing {
	at, found := uint64(0), false
	for _, b := range db.left {
		if b.history == h {
			at, found = b.at, true
		} else if found {
			at = min(at, b.at) // what came after may have left before that
		}
	}
	switch {
	case found && seq <= at:
		return Holds
	case !found && h.Term > db.history.Term && bytes.Equal(h.ID[:lineageSize], db.history.ID[:lineageSize]):
		return Before // a fork that this copy has not heard of yet
	}
	return Apart
}
