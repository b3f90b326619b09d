package engine

import "slices"

// undoLog is how to put a block back.
type undoLog struct {
	changes []change
	nexts   []nextID
	fork    func() // of the history the block began; nil where it began none
	rows    int64  // documents that the block adds, less those it takes out
}

// change is one change and what was before it.
type change struct {
	table *table
	id    int64
	old   uint64
	had   bool
	other func() // of a schema change: puts it back
}

// nextID is the counter of a table before the block moved it.
type nextID struct {
	table *table
	next  int64
}

// next keeps the counter of t as it is before the block first moves it.
func (u *undoLog) next(t *table) {
	for i := range u.nexts {
		if u.nexts[i].table == t {
			return
		}
	}
	u.nexts = append(u.nexts, nextID{t, t.next})
}

// run puts the changes back, the latest first.
func (u *undoLog) run() {
	for _, c := range slices.Backward(u.changes) {
		switch {
		case c.other != nil:
			c.other()
		case c.had:
			c.table.put(c.id, c.old)
		default:
			c.table.remove(c.id)
		}
	}
	for _, n := range u.nexts {
		n.table.next = n.next
	}
	if u.fork != nil {
		u.fork()
	}
}

// schema adds what puts a schema change back. It does nothing if u is nil.
func (u *undoLog) schema(back func()) {
	if u != nil {
		u.changes = append(u.changes, change{other: back})
	}
}

func (u *undoLog) reset() {
	clear(u.changes)
	clear(u.nexts)
	u.fork, u.rows = nil, 0
	u.changes, u.nexts = u.changes[:0], u.nexts[:0]
}
