package engine

import (
	"encoding/binary"
	"slices"

	"fenec/engine/doc"

	"github.com/cespare/xxhash/v2"
)

// The sum of a database is 64 bits over its documents and schemas, by which two copies at one change find out whether they hold
// the same. It is a sum over all documents of a mixed hash of each, so it does not depend on their order, and every write
// changes it by the documents that it replaces. The values of dropped fields do not count, since a compact removes them. So the sum
// does not depend on which copy has been compacted.
//
// A table keeps its sum only once it was asked for: a database that no copy follows pays nothing. A schema change that drops a
// field makes a table forget its sum, and the next call computes it again.

// tableSum is the sum of a table's documents.
type tableSum struct {
	kept  bool // sum is that of the current documents
	sum   uint64
	build doc.Builder
	room  []byte
}

// Sum returns the sum of the database and the change that it is of. ok is false if there is none, because the disk has failed or
// the database is closed. The first call reads all documents, and no write lands meanwhile.
func (db *DB) Sum() (seq uint64, history string, sum uint64, ok bool) {
	db.writer.Lock()
	defer db.writer.Unlock()
	db.mu.RLock()
	sums := map[*table]*tableSum{}
	for _, t := range db.tables {
		if t.sum == nil || !t.sum.kept {
			sums[t] = t.computeSum()
		}
	}
	db.mu.RUnlock()
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.failed != nil || db.closed {
		return 0, "", 0, false
	}
	for t, s := range sums {
		t.sum = s
	}
	for _, t := range db.tables {
		sum += t.sum.sum + t.schemaSum()
	}
	return db.seq, db.historyText, sum, true
}

// computeSum sums the documents of t.
func (t *table) computeSum() *tableSum {
	s := &tableSum{kept: true}
	dropped := t.schema.Dropped()
	t.Ascend(1, func(d doc.Document) bool {
		s.sum += s.of(t.number, d, dropped)
		return true
	})
	return s
}

// countSum adds d to the sum of t, or subtracts it if sign is -1.
func (t *table) countSum(d doc.Document, sign int64) {
	if s := t.sum; s != nil && s.kept {
		s.sum += uint64(sign) * s.of(t.number, d, t.schema.Dropped())
	}
}

// forgetSum makes the next Sum compute the sum of t again.
func (t *table) forgetSum() {
	if t.sum != nil {
		t.sum.kept = false
	}
}

// of returns the hash of a document without its values of dropped fields.
func (s *tableSum) of(number uint64, d doc.Document, dropped []int) uint64 {
	if len(dropped) > 0 && slices.ContainsFunc(dropped, func(slot int) bool { return d.Field(slot) != nil }) {
		s.build.Reset(d.Slots())
		s.build.Copy(d)
		s.build.Clear(dropped)
		s.room = s.build.AppendTo(s.room[:0], d.ID())
		d = s.room
	}
	return mix(xxhash.Sum64(d) ^ mix(number))
}

// schemaSum returns the hash of the schema of t.
func (t *table) schemaSum() uint64 {
	if t.schemaHash == 0 {
		b := binary.LittleEndian.AppendUint64(nil, t.number)
		t.schemaHash = mix(xxhash.Sum64(t.schema.AppendBinary(b))) | 1
	}
	return t.schemaHash
}

// mix spreads the bits of a hash, so that no sum of some hashes is likely another hash. It is the finalizer of splitmix64
// (Steele, Lea and Flood 2014).
func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}
