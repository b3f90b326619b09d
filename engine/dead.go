package engine

import (
	"math"
	"math/bits"

	"fenec/engine/wal"
)

// What of a file is dead is what a compact would leave out: documents that were replaced or deleted, what deleted them,
// the heads of blocks, schemas and graphs that were replaced. It is the file less what is live, of which the documents
// are counted as they come and go and the rest, which is little or seldom changes, is added up when it is asked for.
// Dropped fields in documents are not known without reading them, and are taken for live.

const (
	// leastDead is how much of a file must be dead, in bytes, for a compact to be due.
	leastDead = 16 << 20
	// lookEvery is how much more of a file must be dead, in bytes, before whether a compact is due is looked at closely
	// again.
	lookEvery = 1 << 20
)

// space is what the parts of a file take, in bytes. The database's lock guards it.
type space struct {
	file   int64 // the file, with what is staged
	live   int64 // the operations that put the documents there are
	coming int64 // graphs that are being written and not yet whole
	rest   int64 // what the latest compact left of its image though it counts as dead
	look   int64 // at so many bytes that are not live documents it is looked at closely whether a compact is due
}

// putSize is what the operation that puts a document takes in a record.
func putSize(number uint64, d []byte) int64 {
	const uvarintBits = 7
	return 1 + int64(bits.Len64(number)+uvarintBits-1)/uvarintBits + int64(len(d))
}

// deadLocked is about how much a compact would take off a file of that size. It needs the lock, shared or not.
func (db *DB) deadLocked(file int64) int64 {
	live := db.space.live + db.space.coming
	var room [512]byte // most fit, so that a node which asks each of many databases allocates nothing
	live += int64(wal.FileHeaderSize + len(appendHead(room[:0], head{History: db.history, Left: db.left})))
	for number, t := range db.numbers {
		live += int64(len(appendSchema(room[:0], opCreate, number, t.schema)))
		live += int64(len(appendNumbers(room[:0], opNext, number, uint64(t.next))))
		for _, x := range t.derived {
			live += x.kept.filed.Load()
		}
	}
	live += (1 + live/imageRecord) * wal.HeaderSize
	return max(0, file-live)
}

// Due reports whether a compact is due and may begin: more than CompactAt of the file is dead, and more than 16 MiB. If it is
// not, Options.Due is called when one becomes due; if it is, not before it has been done.
func (db *DB) Due() bool {
	if db.opts.CompactAt == 0 {
		return false
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.lookLocked()
}

func (db *DB) dueLocked() bool {
	s := &db.space
	if db.opts.CompactAt == 0 || db.storableLocked() != nil {
		return false
	}
	dead := db.deadLocked(s.file) - s.rest
	return dead > leastDead && float64(dead) > db.opts.CompactAt*float64(s.file)
}

// watchDead calls Options.Due if a compact has become due. It is called after each block, and nearly always compares two
// numbers. It needs the exclusive lock.
func (db *DB) watchDead() {
	s := &db.space
	if s.file-s.live >= s.look && db.lookLocked() {
		db.opts.Due()
	}
}

// lookLocked looks closely whether a compact is due and sets when it is looked at again. It needs the exclusive lock.
func (db *DB) lookLocked() bool {
	s := &db.space
	if db.dueLocked() {
		s.look = math.MaxInt64 // until it has been done
		return true
	}
	s.look = s.file - s.live + lookEvery
	return false
}

// lookAgain is watchDead once what kept a compact from being due is over. It needs the exclusive lock.
func (db *DB) lookAgain() {
	if db.opts.CompactAt > 0 {
		db.space.look = 0
		db.watchDead()
	}
}
