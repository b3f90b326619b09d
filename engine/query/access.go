package query

import (
	"math"
	"slices"

	"fenec/engine/collation"
	"fenec/engine/doc"
	"fenec/engine/index"
)

// accessKind is a method of finding the rows of a statement.
type accessKind uint8

const (
	byScan  accessKind = iota // every document by id
	byID                      // the documents whose id lies in a range
	byIDs                     // the documents of some ids
	byHash                    // those an index holds under the hash of one or more values
	byRange                   // those whose value lies between two bounds of a sorted index
	byOrder                   // as byRange, walked in the order asked for
)

// access is an access path: one method of finding a superset of the rows that pass the terms.
type access struct {
	kind   accessKind
	on     *column // of the index; nil for a scan
	index  doc.IndexKind
	probes []*probe // the terms that narrow it
	rest   testFunc // the terms that remain to be tested; nil if there are none
	test   testFunc // rest, and that the row has not expired
	desc   bool     // of byOrder
	whole  bool     // each document on it passes the terms, except one whose value only shares the hash
}

// maxPaths bounds the access paths that a statement chooses from. Each is compiled with its remaining terms, so thousands of
// terms would take quadratic time and memory.
const maxPaths = 32

// accessPaths returns the first maxPaths access paths by an index or the id to rows that pass the terms. all tests every term.
func accessPaths(s *doc.Schema, terms []term, all testFunc) []access {
	var out []access
	var ranged []*column // columns whose access path covers all their range terms
	add := func(a access) {
		if a.rest == nil {
			a.rest = remaining(terms, a.probes...)
		}
		a.whole = a.kind == byHash && len(terms) == 1 || a.kind == byRange && a.rest == nil
		out = append(out, a)
	}
	for _, t := range terms {
		if len(out) == maxPaths {
			break
		}
		p := t.probe
		if p == nil {
			continue
		}
		kind, way := doc.IndexKind(0), byID
		if !p.column.id {
			kind, way = indexOn(s, p.column.name), byRange
		}
		switch {
		case kind.Ordered() && p.column.collate != indexOrder(s, p.column):
		case p.column.id && p.member:
			add(access{kind: byIDs, on: p.column, probes: []*probe{p}})
		case (p.column.id || kind.Ordered()) && p.ranged():
			if !slices.ContainsFunc(ranged, p.column.like) {
				ranged = append(ranged, p.column)
				add(access{kind: way, on: p.column, index: kind, probes: rangedOn(terms, p.column)})
			}
		case kind.Ordered() && p.member:
			add(access{kind: byRange, on: p.column, index: kind, probes: []*probe{p}})
		case (kind == doc.IndexHash || kind == doc.IndexUnique) && (p.member || p.rel == equal):
			// Two values may share a hash, so the term is still tested.
			add(access{kind: byHash, on: p.column, index: kind, probes: []*probe{p}, rest: all})
		}
	}
	return out
}

func rangedOn(terms []term, col *column) []*probe {
	var out []*probe
	for _, t := range terms {
		if t.probe != nil && t.probe.ranged() && t.probe.column.like(col) {
			out = append(out, t.probe)
		}
	}
	return out
}

// remaining tests the terms except those of the given probes, which are in the order of their terms.
func remaining(terms []term, probes ...*probe) testFunc {
	var tests []testFunc
	for _, t := range terms {
		if len(probes) > 0 && t.probe == probes[0] {
			answered := !probes[0].approximate()
			if probes = probes[1:]; answered {
				continue
			}
		}
		tests = append(tests, t.test)
	}
	return everyOf(tests)
}

// indexOn returns the index declared on a field or path, 0 if none is.
func indexOn(s *doc.Schema, name string) doc.IndexKind {
	if field := s.Field(name); field != nil {
		return field.Index.Kind
	}
	for _, p := range s.Paths {
		if p.Path == name {
			return p.Index
		}
	}
	return 0
}

// indexOrder returns the collation that a column's field is declared with, which orders its index.
func indexOrder(s *doc.Schema, col *column) collation.Collation {
	if f := s.Field(col.name); f != nil {
		return f.Collate
	}
	return collation.None
}

// indexName returns the index declared on a field or path as the language writes it, empty for none.
func indexName(s *doc.Schema, name string) string {
	if field := s.Field(name); field != nil {
		return field.Index.String()
	}
	return indexOn(s, name).String()
}

// idRange returns the range of ids that pass a byID access path's probes. It is empty if first > last.
func (a *access) idRange(f *frame) (first, last int64) {
	first, last = 1, math.MaxInt64
	for _, p := range a.probes {
		o := &f.operands[p.operand]
		if o.null {
			return 1, 0
		}
		first, last = max(first, o.first), min(last, o.last)
	}
	return first, last
}

// bounds returns the tightest of a byRange or byOrder access path's probes.
func (a *access) bounds(f *frame) (lo, hi index.Bound, none bool) {
	lo, hi = index.Bound{Unbounded: true}, index.Bound{Unbounded: true}
	for _, p := range a.probes {
		l, h, null := p.bounds(f)
		if null {
			return lo, hi, true
		}
		lo, hi = higher(a.on.collate, lo, l), lower(a.on.collate, hi, h)
	}
	return lo, hi, hollow(a.on.collate, lo, hi)
}

// reach counts the documents the access path visits when it is walked to its end. It builds the access path's index if needed;
// the frame has an error if there was no time for that.
func (a *access) reach(f *frame, t Table) int {
	if a.index != 0 && !f.ready(t, a.on.name) {
		return t.Len()
	}
	switch a.kind {
	case byID:
		first, last := a.idRange(f)
		if first > last {
			return 0
		}
		return int(min(uint64(t.Len()), uint64(last-first)+1))
	case byIDs:
		return len(f.operands[a.probes[0].operand].ints)
	case byHash:
		o, x := &f.operands[a.probes[0].operand], t.Hash(a.on.name)
		if !a.probes[0].member {
			if o.null {
				return 0
			}
			return x.Count(doc.Hash(o.value))
		}
		n := 0
		for _, v := range o.values {
			n += x.Count(doc.Hash(v))
		}
		return n
	case byRange, byOrder:
		x := t.Sorted(a.on.name)
		if len(a.probes) == 1 && a.probes[0].member {
			n := 0
			for _, v := range f.operands[a.probes[0].operand].values {
				at := index.Bound{Value: v, Inclusive: true}
				n += x.Count(at, at)
			}
			return n
		}
		lo, hi, none := a.bounds(f)
		switch {
		case none:
			return 0
		case lo.Unbounded && hi.Unbounded:
			return t.Len()
		}
		return x.Count(lo, hi)
	}
	return t.Len()
}
