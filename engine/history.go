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

// A change is named by its number and a history. That name must mean one change for ever, whatever happens to the file. So
// each open of the file writes its own history. The first change of an open begins it (tx.enterHistory), in a separate
// record that is staged with the block. A history that an earlier open wrote has ended at the end of the file, and
// DB.Relation recognizes a change past that as lost. This needs no knowledge of the file: be it yesterday's backup, or a copy that is
// written elsewhere too, what is written to it from here on has another name. The inode or the times of a file would
// reveal some of these cases but not a volume that was rolled back, and would have to be kept in another file.
//
// A fork costs a reader nothing: a cursor up to it stays valid, since the file records which histories it has left and
// where. It costs the file 48 bytes for an open that writes, and none for one that only reads. If the file was not closed
// cleanly, the history begins when it is opened, and is on disk before any request is answered. Anyone who compares
// histories then sees that changes may have been lost.
//
// The open that has written a history may pass it on to exactly one other: the target of a move continues its source's
// history (GoOn). So a freeze begins a history if its open has not written one.

// history names a sequence of changes: the term, one more with each fork, and an id whose top half is the lineage, which
// all forks of one database share.
type history struct {
	Term uint64
	ID   [16]byte
}

// lineageSize is how many bytes of an id are the lineage; the rest is unique to the history.
const lineageSize = 8

// keptBranches is the least number of left histories that a file keeps. A cursor in an older one is treated as one of
// another branch.
const keptBranches = 1024

// branch is a history that was left. Its changes up to at also belong to the history that forked from it.
type branch struct {
	history
	at uint64
}

// Sizes in the file, in bytes.
const (
	historySize = 8 + 16
	branchSize  = historySize + 8
	forkSize    = 8 + historySize
)

func appendHistory(dst []byte, h history) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, h.Term)
	return append(dst, h.ID[:]...)
}

// decodeHistory decodes the history at the start of b, which has at least historySize bytes.
func decodeHistory(b []byte) (h history) {
	h.Term = binary.LittleEndian.Uint64(b)
	copy(h.ID[:], b[8:])
	return h
}

// beginHistory begins a new lineage at term 1.
func (db *DB) beginHistory() error {
	h := history{Term: 1}
	if err := db.fillRandom(h.ID[:]); err != nil {
		return err
	}
	db.setHistory(h)
	db.ours = true
	return nil
}

// fillRandom fills b with random bytes for the name of a history.
func (db *DB) fillRandom(b []byte) error {
	if _, err := io.ReadFull(db.opts.Rand, b); err != nil {
		return errRandomness(err)
	}
	return nil
}

// nextHistory returns a history of the same lineage with the next term.
func (db *DB) nextHistory(own [lineageSize]byte) history {
	h := history{Term: db.history.Term + 1, ID: db.history.ID}
	copy(h.ID[lineageSize:], own[:])
	return h
}

// enter leaves the current history at a change and enters h. back undoes it.
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

// forkLocked enters a new history that this open of the file writes from here on. It needs the lock.
func (db *DB) forkLocked(own [lineageSize]byte) (back func()) {
	back = db.enter(db.nextHistory(own), db.seq)
	db.ours = true
	return back
}

// Fork begins another history at the current change, as one record of the file, which is on disk when Fork returns. It may
// be called while writes are refused, but not after storage has failed.
func (db *DB) Fork() error {
	var own [lineageSize]byte
	if err := db.fillRandom(own[:]); err != nil {
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

// beginOwnLocked forks and stages the fork. It needs the lock.
func (db *DB) beginOwnLocked(own [lineageSize]byte) wal.Ticket {
	undo := db.landing.empty()
	undo.fork = db.forkLocked(own)
	return db.stageForkLocked(undo)
}

// stageForkLocked stages the fork into the current history, as a block without changes. It needs the lock.
func (db *DB) stageForkLocked(undo *undoLog) wal.Ticket {
	db.last = db.log.Stage(wal.Fork, fork{db.history, db.seq}.record())
	db.landing.add(block{ticket: db.last, undo: undo})
	return db.last
}

// GoOn makes this open of the file continue the history that the file ends in. The caller makes sure that the previous
// writer no longer writes it, for example because it is the frozen source of a move.
func (db *DB) GoOn() {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.ours = true
}

// takeOver makes sure that no change gets the name of another. The history of an earlier open has ended at the end of the
// file. This open writes a new one, which begins with its first change, so that two copies of a file never continue under
// the same name. If the file was not closed cleanly, reads may have seen changes that are not in it, and the history begins
// at once. A failure stops writes as any later one does.
func (db *DB) takeOver() error {
	if db.opts.ReadOnly {
		return nil
	}
	if err := db.fillRandom(db.own[:]); err != nil || db.follower {
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
	at uint64 // the change at which it left the history before
}

// record encodes the fork as a record of the file: the change, then the history.
func (f fork) record() []byte {
	rec := make([]byte, wal.HeaderSize, wal.HeaderSize+forkSize)
	return appendHistory(binary.LittleEndian.AppendUint64(rec, f.at), f.history)
}

// forksLocked returns the forks after the history of a term, oldest first. It needs the lock, shared or not.
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

// replayFork applies a fork in the file that is being replayed.
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

// decodeFork decodes the payload of a fork's record.
func decodeFork(payload []byte) (fork, error) {
	if len(payload) != forkSize {
		return fork{}, fail.New(fail.Damaged, "a fork has %d bytes: expected %d", len(payload), forkSize)
	}
	return fork{decodeHistory(payload[8:]), binary.LittleEndian.Uint64(payload)}, nil
}

// continuedBy reports whether f forks from the database at its current change: in the same lineage, with a later term.
func (db *DB) continuedBy(f fork) bool {
	return f.at == db.seq && f.Term > db.history.Term && f.lineage() == db.history.lineage()
}

func errRandomness(err error) error {
	return fail.New(fail.Storage, "cannot read random bytes for the name of a history: %v", err)
}

func (db *DB) setHistory(h history) {
	db.history, db.historyText = h, h.String()
}

func (h history) lineage() [lineageSize]byte { return [lineageSize]byte(h.ID[:]) }

// String returns `<term>-<id>`, with the id in hexadecimal.
func (h history) String() string {
	b := make([]byte, 0, 64)
	b = strconv.AppendUint(b, h.Term, 10)
	b = append(b, '-')
	return string(hex.AppendEncode(b, h.ID[:]))
}

// parseHistory parses the format of String.
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

// Relation is how a change of a history relates to a database.
type Relation int

const (
	// Included means that the database holds the change.
	Included Relation = iota + 1
	// Ahead means that the database does not hold the change yet and may come to hold it.
	Ahead
	// Diverged means that the database will never hold the change: it is of a branch that was left before that change, or of
	// another lineage.
	Diverged
)

// Relation returns how a change of the history `<term>-<id>`, or of the current history if of is empty, relates to the
// database. It fails with fail.Invalid if of is not a history.
func (db *DB) Relation(seq uint64, of []byte) (Relation, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	named := len(of) > 0
	if named && string(of) != db.historyText {
		h, err := parseHistory(of)
		if err != nil {
			return 0, err
		}
		if h != db.history {
			return db.otherRelationLocked(seq, h), nil
		}
	}
	switch {
	case seq <= db.seq:
		return Included, nil
	case named && !db.follower && (!db.ours || db.failed != nil):
		return Diverged, nil // that history has ended: the next change is of another
	}
	return Ahead, nil
}

// HistoryAt returns the history in which a change that the database holds was made.
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

// follows reports whether forks may come from another copy: a database that accepts writes makes all of its forks.
func (db *DB) follows() bool { return db.opts.ReadOnly || db.frozen || db.follower }

// otherRelationLocked is Relation for a history other than the current one.
func (db *DB) otherRelationLocked(seq uint64, h history) Relation {
	at, found := uint64(0), false
	for _, b := range db.left {
		if b.history == h {
			at, found = b.at, true
		} else if found {
			at = min(at, b.at) // a later history may have been left at an earlier change
		}
	}
	switch {
	case found && seq <= at:
		return Included
	case !found && db.follows() && h.Term > db.history.Term && h.lineage() == db.history.lineage():
		return Ahead // a fork that this copy has not received yet
	}
	return Diverged
}
