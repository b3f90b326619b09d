package derived

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/index"
)

// long returns a text that is too long for an index, which looks it up in the documents.
func long(n int64) doc.Value {
	return doc.Value{Kind: doc.Text, B: fmt.Appendf(nil, "%s%05d", strings.Repeat("x", 100), n)}
}

// number returns an int value.
func number(n int64) doc.Value { return doc.Value{Kind: doc.Int, N: uint64(n)} }

// beside builds an index of the kind on v, and calls meanwhile between the build and the adoption of the index.
func (e *engine) beside(tb testing.TB, kind doc.IndexKind, meanwhile func()) error {
	tb.Helper()
	declared := doc.Index{Kind: kind}
	b := e.indexes.Build("v", declared)
	if b == nil {
		tb.Fatal("no build has begun")
	}
	defer b.End()
	b.Begin(maps.Clone(e.docs))
	now := time.Unix(1, 0)
	if err := b.Run(context.Background(), now); err != nil {
		return err
	}
	meanwhile()
	if !e.indexes.Adopt(b, "v", declared) {
		tb.Fatal("the index is not adopted")
	}
	with := e.schema.Clone()
	with.Field("v").Index = declared
	e.indexes.SetSchema(with)
	if !e.indexes.Index("v").Built() {
		tb.Fatal("the index is not the one that was built")
	}
	if kind == doc.IndexUnique {
		return b.Distinct(context.Background(), now)
	}
	return nil
}

func TestABuildCatchesUpWithTheWritesBesideIt(t *testing.T) {
	e := newEngine(t, doc.Type{Kind: doc.TypeText}, doc.Index{})
	for id := range int64(5) {
		e.put(t, id+1, long(10*id+10))
	}
	err := e.beside(t, doc.IndexSorted, func() {
		e.put(t, 1, long(100))
		e.put(t, 2, long(17))
		e.put(t, 2, long(18))
		e.put(t, 6, long(1))
	})
	if err != nil {
		t.Fatal(err)
	}
	e.put(t, 3, long(200))
	var ids []int64
	e.indexes.Sorted("v").Range(index.Bound{Unbounded: true}, index.Bound{Unbounded: true}, false, func(id int64) bool {
		ids = append(ids, id)
		return true
	})
	if want := []int64{6, 2, 4, 5, 1, 3}; !slices.Equal(ids, want) {
		t.Errorf("got the order %v, expected %v", ids, want)
	}
	if len(e.indexes.builds) > 0 {
		t.Error("changes are recorded after the end of the build")
	}
}

func TestABuildOfAUniqueIndexChecksTheWritesBesideIt(t *testing.T) {
	for want, meanwhile := range map[fail.Kind]int64{0: 3, fail.Conflict: 2} {
		e := newEngine(t, doc.Type{Kind: doc.TypeInt}, doc.Index{})
		e.put(t, 1, number(1))
		e.put(t, 2, number(2))
		err := e.beside(t, doc.IndexUnique, func() { e.put(t, 1, number(meanwhile)) })
		if fail.KindOf(err) != want {
			t.Errorf("with the value %d written beside the build: got %v, expected the kind %v", meanwhile, err, want)
		}
	}
}

// refusing is an engine that accepts no writes.
type refusing struct{ *engine }

var errRefused = errors.New("refused")

func (refusing) Writable() error { return errRefused }

func TestABuildStopsOnceTheDatabaseAcceptsNoWrites(t *testing.T) {
	e := newEngine(t, doc.Type{Kind: doc.TypeInt}, doc.Index{})
	e.derived.opts.Host = refusing{e}
	for id := range int64(2 * checkEvery) {
		e.put(t, id+1, number(id))
	}
	if err := e.beside(t, doc.IndexHash, func() { t.Error("the build succeeded, expected an error") }); !errors.Is(err, errRefused) {
		t.Errorf("got %v, expected %v", err, errRefused)
	}
	if len(e.indexes.Indexes()) > 0 {
		t.Error("the index exists after its build failed")
	}
}
