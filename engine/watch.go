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

// watches are the waiting claims, by the collection whose changes matter to them.
type watches struct {
	count atomic.Int64

	mu   sync.Mutex
	of   map[string]*watchedIn
	docs []doc.Document // scratch
}

// watchedIn are the watched claims on one collection. A claim whose condition requires one value of a column is found by
// that value. So a job of one queue costs nothing for the claims on other queues.
type watchedIn struct {
	all   map[*watched]struct{}
	plain map[*watched]struct{} // the claims without a key
	keyed map[string]*byKey     // the others, by column
}

// byKey are the claims that require one value of a column, by the hash of the value.
type byKey struct {
	by      *statement // of one of the claims; finds the value in a document
	buckets map[uint64][]*watched
}

// everywhere is the key of the claims to which the changes of any collection may matter.
const everywhere = ""

// watched is one set or del of a Watch.
type watched struct {
	claimPart
	watch *Watch
	names []string // of the collections whose changes matter to it

	column string // the column of its key; empty if it has none
	hash   uint64
}

// Watch calls a function when a claim may find something to write.
type Watch struct {
	db    *DB
	wake  func(at time.Time, stale bool)
	parts []*watched
}

// maxTests is the most tests of a document against a claim for one block. After so many, every claim on the collection is
// woken.
const maxTests = 1 << 14

// Watch calls wake for each block that lands from now on after which c may find something to write. at is the time from
// which it may: now or later. stale reports that the result of Due is no longer valid. wake runs under the database's lock,
// so it must be quick and must not call the database.
func (db *DB) Watch(c *Claim, wake func(at time.Time, stale bool)) *Watch {
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

// findKey finds the value that the claim requires of a column, under the schemas of r.
func (p *watched) findKey(r *reader, now time.Time) {
	p.column = ""
	if due, err := p.statement.due(r); err == nil && !due.Loose() {
		p.column, p.hash, _ = due.Key(&query.Env{Params: p.params, Now: now}, r)
	}
}

// Close ends a watch. wake may still be running but is not called again.
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

// place adds a claim under its key, or to those without one.
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

// rekey finds the keys of all claims again after the schemas have changed.
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

// Due returns the next time at which the claim may find something without a change to the documents. ok is false if there
// is no such time. It reads every document of the collection unless an index orders them by the time.
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

// notify wakes the claims that may find something after the open block. It needs the lock.
func (w *watches) notify(x *tx) {
	if w.count.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if x.db.version != x.version {
		w.rekey(x.reader, x.now)
		w.notifyAll(x.now, true)
		return
	}
	ofAny := w.of[everywhere]
	if ofAny != nil {
		ofAny.wakeAll(x.now, false)
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
			ofAny.wakeInTime(x, t, w.docs)
		}
		clear(w.docs)
	}
	if cap(w.docs) > smallBlock {
		w.docs = nil
	}
}

// putIn appends the documents that changes have put into t to dst.
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

// test wakes the claims on a collection to which the documents put into it may matter.
func (in *watchedIn) test(x *tx, t *table, documents []doc.Document) {
	if len(documents)*(len(in.plain)+len(in.keyed)) > maxTests {
		in.wakeAll(x.now, true)
		return
	}
	for p := range in.plain {
		p.test(x, t, documents)
	}
	for _, k := range in.keyed {
		due, err := k.by.due(x.reader)
		if err != nil {
			continue // its key was found under these schemas
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
		p.wakeInTime(x, t, documents)
	default:
		first, err = due.Next(&query.Env{Params: p.params, Now: x.now}, x.reader, documents)
	}
	switch {
	case err != nil: // the claim will run and return the error
		p.watch.wake(x.now, false)
	case first < query.Never:
		p.watch.wake(time.UnixMilli(first), false)
	}
}

// wakeInTime wakes the claims, which count documents of any collection, at the time at which a count changes.
func (in *watchedIn) wakeInTime(x *tx, t *table, documents []doc.Document) {
	if len(documents)*len(in.all) > maxTests {
		in.wakeAll(x.now, true)
		return
	}
	for p := range in.all {
		p.wakeInTime(x, t, documents)
	}
}

// wakeInTime wakes the claim, which counts documents, at the time at which its count of those documents of t changes.
func (p *watched) wakeInTime(x *tx, t *table, documents []doc.Document) {
	due, err := p.statement.due(x.reader)
	if err != nil {
		return // the claim is woken and will return the error
	}
	if at, err := due.Later(&query.Env{Params: p.params, Now: x.now}, x.reader, t, documents); err == nil && at < query.Never {
		p.watch.wake(time.UnixMilli(at), false)
	}
}

func (in *watchedIn) wakeAll(now time.Time, stale bool) {
	for p := range in.all {
		p.watch.wake(now, stale)
	}
}

// notifyAll wakes all claims. It needs w.mu.
func (w *watches) notifyAll(now time.Time, stale bool) {
	for _, in := range w.of {
		in.wakeAll(now, stale)
	}
}
