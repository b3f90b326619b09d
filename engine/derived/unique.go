package derived

import (
	"context"
	"time"

	"fenec/engine/doc"
	"fenec/engine/fail"
)

// Unexpired returns a lookup of the documents of get that have not expired at now. ttl may be nil.
func Unexpired(get Lookup, ttl *doc.Field, now time.Time) Lookup {
	if ttl == nil {
		return get
	}
	at := now.UnixMilli()
	return func(id int64) doc.Document {
		if d := get(id); d != nil && !ttl.Gone(d, at) {
			return d
		}
		return nil
	}
}

// Holder returns the id of a document other than d that get finds and that holds the same value in the unique index x, or 0.
// It needs the lock, shared or not.
func (x *Index) Holder(get Lookup, d doc.Document) (other int64) {
	v := x.value(d)
	if v.Kind == doc.Null {
		return 0
	}
	id := d.ID()
	x.built().(*hashIndex).Ascend(doc.Hash(v), func(at int64) bool {
		if d := get(at); at != id && d != nil && doc.Equal(x.value(d), v) {
			other = at
		}
		return other == 0
	})
	return other
}

// Taken returns the error of a document whose value in x is that of another one.
func (x *Index) Taken(d doc.Document, other int64) error {
	return fail.New(fail.Conflict, "%s of %s is unique, and %s is the value of the document with id %d",
		x.on, x.of.name, doc.Describe(x.value(d)), other)
}

// Distinct fails if two documents of the collection that have not expired at now share a value of x. It needs the lock,
// shared or not.
func (x *Index) Distinct(ctx context.Context, now time.Time) error {
	return x.distinct(ctx, x.of.docs, x.of.ttl, now)
}

// Distinct is Index.Distinct for the index that b has built and that the collection has adopted. If the values of the snapshot were
// compared at now or before, only documents that changed since are compared.
func (b *Build) Distinct(ctx context.Context, now time.Time) error {
	x := b.index
	if now.Before(b.checked) {
		return x.Distinct(ctx, now)
	}
	get := Unexpired(x.of.docs.Get, x.of.ttl, now)
	for _, id := range b.changed {
		if err := x.checkUnique(get, id); err != nil {
			return err
		}
	}
	return nil
}

// distinct fails if two of docs that have not expired at now share a value.
func (x *Index) distinct(ctx context.Context, docs Documents, ttl *doc.Field, now time.Time) (err error) {
	get := Unexpired(docs.Get, ttl, now)
	n, of := 0, docs.Len()
	docs.Ascend(1, func(d doc.Document) bool {
		if n++; n%checkEvery == 0 {
			err = fail.Stopped(ctx, "checking that no two documents of %s share %s, %s of %s done",
				x.of.name, x.on, fail.Thousands(n), fail.Thousands(of))
		}
		if err == nil {
			err = x.checkUnique(get, d.ID())
		}
		return err == nil
	})
	return err
}

// checkUnique fails if get finds the document of id and another one shares its value.
func (x *Index) checkUnique(get Lookup, id int64) error {
	d := get(id)
	if d == nil {
		return nil
	}
	if other := x.Holder(get, d); other != 0 {
		return x.Taken(d, other)
	}
	return nil
}
