package engine

import (
	"math"
	"slices"
)

// undoLog records how to undo a block.
type undoLog struct {
	changes []change
	schemas []func() // each undoes a schema change
	nexts   []nextID
	fork    func() // undoes the history that the block began; nil if it began none
	rows    int64  // documents that the block adds, less those it deletes
}

// change is one change and the state before it. A block may have millions, so it is kept small.
type change struct {
	table *table // nil for a schema change: id is its index in schemas
	id    int64
	old   uint64 // the ref of the document, or noDocument
}

const noDocument = math.MaxUint64

// nextID is the counter of ids of a table before the block moved it.
type nextID struct {
	table *table
	next  int64
}

// next records the counter of t before the block first moves it.
func (u *undoLog) next(t *table) {
	for i := range u.nexts {
		if u.nexts[i].table == t {
			return
		}
	}
	u.nexts = append(u.nexts, nextID{t, t.next})
}

// run undoes the changes, the latest first.
func (u *undoLog) run() {
	for _, c := range slices.Backward(u.changes) {
		switch {
		case c.table == nil:
			u.schemas[c.id]()
		case c.old == noDocument:
			c.table.remove(c.id)
		default:
			c.table.put(c.id, c.old)
		}
	}
	for _, n := range u.nexts {
		n.table.next = n.next
	}
	if u.fork != nil {
		u.fork()
	}
}

// schema adds back, which undoes a schema change. It does nothing if u is nil.
func (u *undoLog) schema(back func()) {
	if u != nil {
		u.changes = append(u.changes, change{id: int64(len(u.schemas))})
		u.schemas = append(u.schemas, back)
	}
}

func (u *undoLog) reset() {
	clear(u.changes)
	clear(u.schemas)
	clear(u.nexts)
	u.fork, u.rows = nil, 0
	u.changes, u.schemas, u.nexts = u.changes[:0], u.schemas[:0], u.nexts[:0]
}
