package engine

import (
	"math"
	"math/bits"

	"fenec/engine/wal"
)

// The dead bytes of a file are those that a compact would leave out: documents that were replaced or deleted, the
// operations that deleted them, the heads of blocks, schemas and graphs that were replaced. They are the size of the file
// less what is live. Live documents are counted on every change. The rest is small or seldom changes and is added up on
// demand. Dropped fields in documents cannot be counted without reading the documents, and count as live.

const (
	// leastDead is how much of a file must be dead, in bytes, for a compact to be due.
	leastDead = 16 << 20
	// lookEvery is how much more of a file must be dead, in bytes, before Due is computed exactly again.
	lookEvery = 1 << 20
)

// space is the size of the parts of a file, in bytes. The database's lock guards it.
type space struct {
	file      int64 // the file, with what is staged
	live      int64 // the operations that put the current documents
	coming    int64 // graphs that are being written and not yet whole
	rest      int64 // what counts as dead though it is part of the latest compact's image
	recheckAt int64 // the bytes other than live documents at which Due is computed exactly again
}

// putSize returns the size in a record of the operation that puts a document.
func putSize(number uint64, d []byte) int64 {
	const uvarintBits = 7
	return 1 + int64(bits.Len64(number)+uvarintBits-1)/uvarintBits + int64(len(d))
}

// deadLocked estimates how many bytes a compact would free in a file of that size. It needs the lock, shared or not.
func (db *DB) deadLocked(file int64) int64 {
	live := db.space.live + db.space.coming
	var room [512]byte // most schemas fit, so that a node that polls many databases allocates nothing
	live += int64(wal.FileHeaderSize + len(appendHead(room[:0], head{History: db.history, Left: db.left})))
	for number, t := range db.numbers {
		live += int64(len(appendSchema(room[:0], opCreate, number, t.schema)))
		live += int64(len(appendNumbers(room[:0], opNext, number, uint64(t.next))))
		live += t.indexes.Filed()
	}
	live += (1 + live/imageRecord) * wal.HeaderSize
	return max(0, file-live)
}

// Due reports whether a compact is due and may begin: more than CompactAt of the file is dead, and more than 16 MiB. If it
// returns false, Options.Due is called when one becomes due. If it returns true, Options.Due is not called until a compact
// has been done.
func (db *DB) Due() bool {
	if db.opts.CompactAt == 0 {
		return false
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.recheckLocked()
}

func (db *DB) dueLocked() bool {
	s := &db.space
	if db.opts.CompactAt == 0 || db.storableLocked() != nil {
		return false
	}
	dead := db.deadLocked(s.file) - s.rest
	return dead > leastDead && float64(dead) > db.opts.CompactAt*float64(s.file)
}

// checkDue calls Options.Due if a compact has become due. It is called after each block and nearly always only compares
// two numbers. It needs the exclusive lock.
func (db *DB) checkDue() {
	s := &db.space
	if s.file-s.live >= s.recheckAt && db.recheckLocked() {
		db.opts.Due()
	}
}

// recheckLocked computes exactly whether a compact is due, and sets when to compute it again. It needs the exclusive lock.
func (db *DB) recheckLocked() bool {
	s := &db.space
	if db.dueLocked() {
		s.recheckAt = math.MaxInt64 // until it has been done
		return true
	}
	s.recheckAt = s.file - s.live + lookEvery
	return false
}

// recheckDue calls Options.Due if a compact is due, after whatever prevented one has ended. It needs the exclusive lock.
func (db *DB) recheckDue() {
	if db.opts.CompactAt > 0 {
		db.space.recheckAt = 0
		db.checkDue()
	}
}
