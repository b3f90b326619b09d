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

	mu   sync.Mutex
	of   map[string]*watchedIn
	docs []doc.Document // scratch
}

// watchedIn is what is watched in one collection. A claim whose condition wants one value of a column is found by that, so
// that claims on a queue each cost a job of another queue nothing.
type watchedIn struct {
	all   map[*watched]struct{}
	plain map[*watched]struct{} // of them, those without a key
	keyed map[string]*byKey     // the others, by column
}

// byKey is the claims that want one value of a column each, by the hash of the value.
type byKey struct {
	by      *statement // one of theirs, which finds the value in a document
	buckets map[uint64][]*watched
}

// everywhere is the collection of claims that the changes of any may matter to.
const everywhere = ""

// watched is one set or del of a Watch.
type watched struct {
	claimPart
	watch *Watch
	names []string // of the collections whose changes matter to it

	column string // that it is keyed by; empty for none
	hash   uint64
}

// Watch has somebody told when a claim may find something to write.
type Watch struct {
	db    *DB
	wake  func(at time.Time, anew bool)
	parts []*watched
}

// maxTests is how many documents of a block are tested for claims at most, those of each claim counted; past them every
// claim on the collection is woken.
const maxTests = 1 << 14

// Watch calls wake for each block that lands from now on after which c may find something to write: at once, with the time
// that it is, or later, with that time. anew reports that an answer of Due no longer holds. wake runs under the database's
// lock, so it must be quick and may call nothing of the database.
func (db *DB) Watch(c *Claim, wake func(at time.Time, anew bool)) *Watch {
	w := &Watch{db: db, wake: wake}
	db.mu.RLock()
	defer db.mu.RUnlock()
	for _, p := range c.parts {
		params := slices.Clone(p.params)
		for i := range params {
			params[i].B = bytes.Clone(params[i].B)
		}
		one := &watched{claimPart: claimPart{p.statement, params}, watch: w, names: p.statement.wait().names}
		one.findKey(&db.reader, db.opts.Clock())
		w.parts = append(w.parts, one)
	}
	db.watches.mu.Lock()
	defer db.watches.mu.Unlock()
	for _, p := range w.parts {
		db.watches.add(p)
	}
	db.watches.count.Add(1)
	return w
}

// findKey finds the value that the claim wants of a column, under the schemas of r.
func (p *watched) findKey(r *reader, now time.Time) {
	p.column = ""
	if due, err := p.statement.due(r); err == nil && !due.Loose() {
		p.column, p.hash, _ = due.Key(&query.Env{Params: p.params, Now: now}, r)
	}
}

// Close ends a watch; wake may be running still, but is not called any more.
func (w *Watch) Close() {
	watches := &w.db.watches
	watches.mu.Lock()
	defer watches.mu.Unlock()
	for _, p := range w.parts {
		watches.remove(p)
	}
	watches.count.Add(-1)
}

func (w *watches) add(p *watched) {
	if w.of == nil {
		w.of = map[string]*watchedIn{}
	}
	for _, name := range p.names {
		in := w.of[name]
		if in == nil {
			in = &watchedIn{all: map[*watched]struct{}{}, plain: map[*watched]struct{}{}, keyed: map[string]*byKey{}}
			w.of[name] = in
		}
		in.all[p] = struct{}{}
		in.place(p)
	}
}

// place puts a claim where it is found by its key, or among those without one.
func (in *watchedIn) place(p *watched) {
	if p.column == "" {
		in.plain[p] = struct{}{}
		return
	}
	k := in.keyed[p.column]
	if k == nil {
		k = &byKey{p.statement, map[uint64][]*watched{}}
		in.keyed[p.column] = k
	}
	k.buckets[p.hash] = append(k.buckets[p.hash], p)
}

func (w *watches) remove(p *watched) {
	for _, name := range p.names {
		in := w.of[name]
		delete(in.all, p)
		delete(in.plain, p)
		if len(in.all) == 0 {
			delete(w.of, name)
			continue
		}
		k := in.keyed[p.column]
		if k == nil {
			continue
		}
		if left := slices.DeleteFunc(k.buckets[p.hash], func(q *watched) bool { return q == p }); len(left) > 0 {
			k.buckets[p.hash] = left
		} else if delete(k.buckets, p.hash); len(k.buckets) == 0 {
			delete(in.keyed, p.column)
		}
	}
}

// rekey finds the keys of all claims again: the schemas have changed, and with them what the keys are of.
func (w *watches) rekey(r *reader, now time.Time) {
	for _, in := range w.of {
		clear(in.plain)
		clear(in.keyed)
		for p := range in.all {
			p.findKey(r, now)
			in.place(p)
		}
	}
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
		if !p.statement.wait().timed {
			continue
		}
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
		w.rekey(x.reader, x.now)
		w.tellAll(x.now, true)
		return
	}
	ofAny := w.of[everywhere]
	if ofAny != nil {
		ofAny.tell(x.now, false)
	}
	var room [4]*table
	seen := room[:0]
	for i := range x.undo.changes {
		t := x.undo.changes[i].table
		if slices.Contains(seen, t) {
			continue
		}
		seen = append(seen, t)
		in := w.of[t.schema.Name]
		if in == nil && ofAny == nil {
			continue
		}
		w.docs = putIn(w.docs[:0], t, x.undo.changes[i:])
		if in != nil {
			in.test(x, t, w.docs)
		}
		if ofAny != nil {
			ofAny.foresee(x, t, w.docs)
		}
		clear(w.docs)
	}
	if cap(w.docs) > smallBlock {
		w.docs = nil
	}
}

// putIn appends the documents that changes have put into t.
func putIn(dst []doc.Document, t *table, changes []change) []doc.Document {
	for i := range changes {
		if changes[i].table == t {
			if d := t.Get(changes[i].id); d != nil {
				dst = append(dst, d)
			}
		}
	}
	return dst
}

// test wakes the claims on a collection that the documents put into it may matter to.
func (in *watchedIn) test(x *tx, t *table, documents []doc.Document) {
	if len(documents)*(len(in.plain)+len(in.keyed)) > maxTests {
		in.tell(x.now, true)
		return
	}
	for p := range in.plain {
		p.test(x, t, documents)
	}
	for _, k := range in.keyed {
		due, err := k.by.due(x.reader)
		if err != nil {
			continue // it was good under these schemas
		}
		for i := range documents {
			for _, p := range k.buckets[due.KeyOf(documents[i])] {
				p.test(x, t, documents[i:i+1])
			}
		}
	}
}

// test wakes the claim if one of the documents may matter to it. Any change matters to one that counts documents.
func (p *watched) test(x *tx, t *table, documents []doc.Document) {
	due, err := p.statement.due(x.reader)
	first := x.now.UnixMilli()
	switch {
	case err != nil:
	case due.Loose():
		p.foresee(x, t, documents)
	default:
		first, err = due.Next(&query.Env{Params: p.params, Now: x.now}, x.reader, documents)
	}
	switch {
	case err != nil: // which the claim will answer
		p.watch.wake(x.now, false)
	case first < query.Never:
		p.watch.wake(time.UnixMilli(first), false)
	}
}

// foresee wakes the claims, which count documents of any collection, once the time changes what they count.
func (in *watchedIn) foresee(x *tx, t *table, documents []doc.Document) {
	if len(documents)*len(in.all) > maxTests {
		in.tell(x.now, true)
		return
	}
	for p := range in.all {
		p.foresee(x, t, documents)
	}
}

// foresee wakes the claim, which counts documents, once the time makes it count those documents of t otherwise.
func (p *watched) foresee(x *tx, t *table, documents []doc.Document) {
	due, err := p.statement.due(x.reader)
	if err != nil {
		return // the claim is woken, and will answer it
	}
	if at, err := due.Later(&query.Env{Params: p.params, Now: x.now}, x.reader, t, documents); err == nil && at < query.Never {
		p.watch.wake(time.UnixMilli(at), false)
	}
}

func (in *watchedIn) tell(now time.Time, anew bool) {
	for p := range in.all {
		p.watch.wake(now, anew)
	}
}

// tellAll needs w.mu.
func (w *watches) tellAll(now time.Time, anew bool) {
	for _, in := range w.of {
		in.tell(now, anew)
	}
}
