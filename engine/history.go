package engine

import (
	"encoding/hex"
	"io"
	"strconv"
)

// history names a line of changes: the term, one more with each fork, and an id whose top half is the lineage, which
// every fork of one database keeps.
type history struct {
	Term uint64
	ID   [16]byte
}

// newHistory begins a lineage at term 1.
func newHistory(random io.Reader) (history, error) {
	h := history{Term: 1}
	_, err := io.ReadFull(random, h.ID[:])
	return h, err
}

// String is `<term>-<id>`, the id in hexadecimal.
func (h history) String() string {
	b := make([]byte, 0, 64)
	b = strconv.AppendUint(b, h.Term, 10)
	b = append(b, '-')
	return string(hex.AppendEncode(b, h.ID[:]))
}

func (db *DB) setHistory(h history) {
	db.history, db.historyText = h, h.String()
}
