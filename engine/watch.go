package engine

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fenec/engine/doc"
	"fenec/engine/query"
)

// watches are the claims somebody waits for, by the collection whose changes matter to them.
type watches struct {
	count atomic.Int64

	mu sync.Mutex
	of map[string][]*watched
}

// everywhere is the collection of claims that the changes of any may matter to.
const everywhere = ""

// watched is one set or del of a Watch.
type watched struct {
	claimPart
	watch *Watch
	names []string // of the collections whose changes matter to it
}

// Watch has somebody told when a claim may find something to write.
type Watch struct {
	db    *DB
	wake  func(at time.Time)
	parts []*watched
}

// maxTests is how many documents of a block are tested for claims at most, those of each counted anew; past them every
// claim on the collection is woken.
const maxTests = 1 << 14

// Watch has wake called for each block that lands from now on after which c may find something to write: at once, or as
// of a time to come, with now or that time. It runs under the database's lock, so it must be quick and may call nothing of
// the database.
func (db *DB) Watch(c *Claim, wake func(at time.Time)) *Watch {
	w := &Watch{db: db, wake: wake}
	for _, p := range c.parts {
		params := slices.Clone(p.params)
		for i := range params {
			params[i].B = bytes.Clone(params[i].B)
		}
		w.parts = append(w.parts, &watched{claimPart{p.statement, params}, w, p.statement.wait().names})
	}
	db.watches.mu.Lock()
	defer db.watches.mu.Unlock()
	if db.watches.of == nil {
		db.watches.of = map[string][]*watched{}
	}
	for _, p := range w.parts {
		for _, name := range p.names {
			db.watches.of[name] = append(db.watches.of[name], p)
		}
	}
	db.watches.count.Add(1)
	return w
}

// Close ends a watch; wake may be running still, but is not called any more.
func (w *Watch) Close() {
	db := w.db
	db.watches.mu.Lock()
	defer db.watches.mu.Unlock()
	for _, p := range w.parts {
		for _, name := range p.names {
			left := slices.DeleteFunc(db.watches.of[name], func(q *watched) bool { return q == p })
			if db.watches.of[name] = left; len(left) == 0 {
				delete(db.watches.of, name)
			}
		}
	}
	db.watches.count.Add(-1)
}

// Due is the next time at which the claim may find something by the time alone, as the documents are now; ok is false
// where there is none. It reads every document of the collection but where an index has them in the order of the time.
func (w *Watch) Due(ctx context.Context) (at time.Time, ok bool, err error) {
	db := w.db
	ctx = db.timed(ctx)
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed {
		return at, false, errClosed()
	}
	env := query.Env{Ctx: ctx, Now: db.opts.Clock()}
	first := int64(query.Never)
	for _, p := range w.parts {
		due, err := p.statement.due(&db.reader)
		if err != nil {
			return at, false, err
		}
		env.Params = p.params
		next, err := due.All(&env, &db.reader)
		if err != nil {
			return at, false, err
		}
		first = min(first, next)
	}
	return time.UnixMilli(first), first < query.Never, nil
}

// tell wakes the claims that may find something after the block under way. It needs the lock.
func (w *watches) tell(x *tx) {
	if w.count.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if x.db.version != x.version {
		w.tellAll(x.now)
		return
	}
	w.tellOf(everywhere, x.now)
	var seen []*table
	for i := range x.undo.changes {
		if t := x.undo.changes[i].table; !slices.Contains(seen, t) {
			seen = append(seen, t)
			w.test(x, t, x.undo.changes[i:])
		}
	}
}

// test wakes the claims on t that one of the changes may matter to.
func (w *watches) test(x *tx, t *table, changes []change) {
	waiting := w.of[t.schema.Name]
	if len(changes)*len(waiting) > maxTests {
		w.tellOf(t.schema.Name, x.now)
		return
	}
	env := query.Env{Now: x.now}
	for _, p := range waiting {
		due, err := p.statement.due(x.reader)
		first := x.now.UnixMilli()
		if err == nil {
			env.Params = p.params
			first, err = due.Next(&env, x.reader, func(yield func(doc.Document) bool) {
				for i := range changes {
					if changes[i].table != t {
						continue
					}
					if d := t.Get(changes[i].id); (d != nil || due.Loose()) && !yield(d) {
						return
					}
				}
			})
		}
		switch {
		case err != nil: // which the claim will answer
			p.watch.wake(x.now)
		case first < query.Never:
			p.watch.wake(time.UnixMilli(first))
		}
	}
}

func (w *watches) tellOf(collection string, now time.Time) {
	for _, p := range w.of[collection] {
		p.watch.wake(now)
	}
}

// tellAll needs w.mu.
func (w *watches) tellAll(now time.Time) {
	for name := range w.of {
		w.tellOf(name, now)
	}
}
