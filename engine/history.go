package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"slices"
	"strconv"

	"fenec/engine/fail"
	"fenec/engine/wal"
)

// A change is named by its number and a history, and that name must mean one change for ever, whatever becomes of the file.
// So a history is what one open of the file writes. The first change of an open begins one (tx.enterHistory), in a record
// of its own that is staged with the block; a history that an earlier open wrote has ended where the file ends, and a change
// past that is told apart at once (DB.Stands). Nothing has to be known of the file for that: whether it is yesterday's, put
// back, or a copy that goes on elsewhere too, what is written to it from here on has another name. The inode or the times of
// a file would tell some of these, not a volume that was rolled back, and would have to be kept in another file.
//
// A fork costs a reader nothing: a cursor up to it goes on, since the file keeps which histories it has left and where. It
// costs the file 48 bytes for an open that writes, and none for one that only reads. Where the file was not closed in order
// the history begins as it is opened, on disk before anything is answered: that shows everyone who compares histories that
// changes may have been lost.
//
// The open that has written a history may hand it on, to one that no other does: a move's target goes on in its source's
// (GoOn). For that a freeze begins a history where its open has written none.

// history names a line of changes: the term, one more with each fork, and an id whose top half is the lineage, which
// every fork of one database keeps.
type history struct {
	Term uint64
	ID   [16]byte
}

// lineageSize is how many bytes of an id are the lineage; the rest is the history's own.
const lineageSize = 8

// keptBranches is how many histories that were left a file keeps at least. A cursor of one from before them is taken for
// one of another branch.
const keptBranches = 1024

// branch is a history that was left: changes of it up to at are changes of the history that forked from it too.
type branch struct {
	history
	at uint64
}

// What a history, a branch and a fork take in the file.
const (
	historySize = 8 + 16
	branchSize  = historySize + 8
	forkSize    = 8 + historySize
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
	if err := db.draw(h.ID[:]); err != nil {
		return err
	}
	db.setHistory(h)
	db.ours = true
	return nil
}

// draw fills b with randomness to name a history by.
func (db *DB) draw(b []byte) error {
	if _, err := io.ReadFull(db.opts.Rand, b); err != nil {
		return errRandomness(err)
	}
	return nil
}

// nextHistory is a history of the same lineage, one term more.
func (db *DB) nextHistory(own [lineageSize]byte) history {
	h := history{Term: db.history.Term + 1, ID: db.history.ID}
	copy(h.ID[lineageSize:], own[:])
	return h
}

// enter leaves the history there is at a change for h, the next. back undoes it.
func (db *DB) enter(h history, at uint64) (back func()) {
	was, left, ours := db.history, db.left, db.ours
	if len(left) == 2*keptBranches {
		left = slices.Clone(left[keptBranches:])
	}
	db.left = append(left, branch{was, at})
	db.setHistory(h)
	return func() {
		db.left, db.ours = left, ours
		db.setHistory(was)
	}
}

// forkLocked is enter for a history that this open of the file writes from here on. It needs the lock.
func (db *DB) forkLocked(own [lineageSize]byte) (back func()) {
	back = db.enter(db.nextHistory(own), db.seq)
	db.ours = true
	return back
}

// Fork begins another history at the change the database is at, as one record of the file, which is on disk when it
// returns. It may be called while writes are refused, but not once they have failed.
func (db *DB) Fork() error {
	var own [lineageSize]byte
	if err := db.draw(own[:]); err != nil {
		return err
	}
	ticket, err := db.stageFork(own)
	if err == nil {
		err = db.log.Sync()
	}
	if err != nil {
		return err
	}
	db.landing.landed(ticket)
	return nil
}

func (db *DB) stageFork(own [lineageSize]byte) (wal.Ticket, error) {
	db.writer.Lock()
	defer db.writer.Unlock()
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.writableLocked(); err != nil && fail.KindOf(err) != fail.Frozen {
		return 0, err
	}
	return db.beginOwnLocked(own), nil
}

// beginOwnLocked forks and stages that. It needs the lock.
func (db *DB) beginOwnLocked(own [lineageSize]byte) wal.Ticket {
	undo := db.landing.empty()
	undo.fork = db.forkLocked(own)
	return db.stageForkLocked(undo)
}

// stageForkLocked stages the history that was entered last, as a block without changes. It needs the lock.
func (db *DB) stageForkLocked(undo *undoLog) wal.Ticket {
	db.last = db.log.Stage(wal.Fork, fork{db.history, db.seq}.record())
	db.landing.add(block{ticket: db.last, undo: undo})
	return db.last
}

// GoOn has this open of the file write the history that the file ends in: whoever wrote it before writes it no more, as
// the source of a move that is frozen.
func (db *DB) GoOn() {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.ours = true
}

// takeOver makes sure that no change comes to be called what another was. What an earlier open of the file wrote has
// ended where the file ends: this one writes a history of its own, which begins with its first change, so that two copies
// of a file never go on under the same name. Where the file was not closed in order, reads may have been shown changes
// that are not in it, and the history begins at once. A failure stops writes as any later one does.
func (db *DB) takeOver() error {
	if db.opts.ReadOnly || db.opts.Follower {
		return nil
	}
	if err := db.draw(db.own[:]); err != nil {
		return err
	}
	if !db.log.Closed() {
		_ = db.Fork()
	}
	return nil
}

// fork is where a history begins.
type fork struct {
	history
	at uint64 // the change it left the one before at
}

// record is the fork as a record of the file: the change, then the history.
func (f fork) record() []byte {
	rec := make([]byte, wal.HeaderSize, wal.HeaderSize+forkSize)
	return appendHistory(binary.LittleEndian.AppendUint64(rec, f.at), f.history)
}

// forksLocked are the forks since the history of a term, the first one first. It needs the lock, shared or not.
func (db *DB) forksLocked(term uint64) (forks []fork) {
	for i, b := range db.left {
		if b.Term < term {
			continue
		}
		next := db.history
		if i+1 < len(db.left) {
			next = db.left[i+1].history
		}
		forks = append(forks, fork{next, b.at})
	}
	return forks
}

// replayFork is a fork of the file being replayed.
func (db *DB) replayFork(payload []byte) error {
	f, err := decodeFork(payload)
	if err != nil {
		return err
	}
	if !db.continuedBy(f) {
		return fail.New(fail.Damaged, "a fork says it is at change %d and begins history %s where the file counts %d of %s",
			f.at, f, db.seq, db.historyText)
	}
	db.enter(f.history, f.at)
	return nil
}

// decodeFork reads what a record of a fork holds.
func decodeFork(payload []byte) (fork, error) {
	if len(payload) != forkSize {
		return fork{}, fail.New(fail.Damaged, "a fork has %d bytes: expected %d", len(payload), forkSize)
	}
	return fork{decodeHistory(payload[8:]), binary.LittleEndian.Uint64(payload)}, nil
}

// continuedBy reports whether the database goes on with f from where it is.
func (db *DB) continuedBy(f fork) bool {
	return f.at == db.seq && f.Term > db.history.Term && f.lineage() == db.history.lineage()
}

func errRandomness(err error) error {
	return fail.New(fail.Storage, "no randomness to name a history by: %v", err)
}

func (db *DB) setHistory(h history) {
	db.history, db.historyText = h, h.String()
}

func (h history) lineage() [lineageSize]byte { return [lineageSize]byte(h.ID[:]) }

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
	named := len(of) > 0
	if named && string(of) != db.historyText {
		h, err := parseHistory(of)
		if err != nil {
			return 0, err
		}
		if h != db.history {
			return db.standsApartLocked(seq, h), nil
		}
	}
	switch {
	case seq <= db.seq:
		return Holds, nil
	case named && (!db.ours || db.failed != nil):
		return Apart, nil // that history has ended: what is written from here on is of another
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

// follows reports whether forks are made elsewhere: a database that takes writes makes all of its own.
func (db *DB) follows() bool { return db.opts.ReadOnly || db.frozen }

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
	case !found && db.follows() && h.Term > db.history.Term && h.lineage() == db.history.lineage():
		return Before // a fork that this copy has not heard of yet
	}
	return Apart
}
