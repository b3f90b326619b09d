package query

import (
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/index"
	"fenec/engine/query/syntax"
)

// excludeExpired adds to the tests of a picker's access paths that the row has not expired, if the collection has a ttl.
func (p *picker) excludeExpired(s *doc.Schema) {
	ttl := s.TTL()
	each := func(a *access) {
		a.test = a.rest
		if ttl == nil {
			return
		}
		alive := func(f *frame) truth { return truthOf(!ttl.Gone(f.doc, f.now)) }
		if a.rest == nil {
			a.test = alive
		} else {
			a.test = everyOf([]testFunc{alive, a.rest})
		}
	}
	each(&p.scan)
	for i := range p.paths {
		each(&p.paths[i])
	}
	for i := range p.walked {
		each(&p.walked[i])
	}
}

// expiredBounds returns the bounds, in the order of the ttl's field, of the documents that have expired.
func (f *frame) expiredBounds(ttl *doc.Field) (lo, hi index.Bound) {
	return aboveNull, index.Bound{Value: doc.TimestampValue(ttl.Deadline(f.now)), Inclusive: true}
}

// live counts the documents of t that have not expired. If the ttl's index is not built in time the frame has an error, and
// the count is of all documents.
func (f *frame) live(t Table) int {
	ttl := t.Schema().TTL()
	if ttl == nil || !f.ready(t, ttl.Name) {
		return t.Len()
	}
	return t.Len() - t.Sorted(ttl.Name).Count(f.expiredBounds(ttl))
}

// exists reports whether t has a document of that id that has not expired.
func (f *frame) exists(t Table, id int64) bool {
	d := t.Get(id)
	if d == nil {
		return false
	}
	ttl := t.Schema().TTL()
	return ttl == nil || !ttl.Gone(d, f.now)
}

// dropExpired deletes the expired documents of t, before the ttl is dropped.
func (f *frame) dropExpired(w Writer, t Table) error {
	ttl := t.Schema().TTL()
	if !f.ready(t, ttl.Name) {
		return f.take()
	}
	lo, hi := f.expiredBounds(ttl)
	f.write(t.Schema().Name)
	f.walk.ids = t.Sorted(ttl.Name).AppendIDs(f.walk.ids, lo, hi)
	for n, id := range f.walk.ids {
		if err := f.pause(n); err != nil {
			return err
		}
		if err := w.Delete(t.Schema().Name, id); err != nil {
			return err
		}
	}
	return nil
}

// oneTTL fails if the schema already has a ttl. k is the index to be declared.
func oneTTL(s *doc.Schema, k doc.IndexKind, kind fail.Kind, pos syntax.Pos) error {
	if ttl := s.TTL(); ttl != nil && k == doc.IndexTTL {
		return errorAt(kind, pos, "%s has %s on %s, and a collection has one ttl at most", s.Name, ttl.Index, ttl.Name)
	}
	return nil
}
