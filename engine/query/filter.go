package query

import (
	"math"
	"math/bits"
	"slices"

	"fenec/engine/doc"
	"fenec/engine/index"
)

// filterRun decides which documents an index may return: those that pass the terms and have not expired.
type filterRun struct {
	access  *access // whose documents are members; nil if each document is tested
	members idSet
	test    testFunc // nil if there is none
	asked   int      // documents the index asked about
	passed  int      // of them, those it may return
	tested  int      // documents read
}

func (r *filterRun) reset() {
	r.members.reset()
	*r = filterRun{members: r.members}
}

const (
	// gathered is the cost of reading one id from an index, tested that of finding and testing one document, in one unit.
	gathered = 1
	tested   = 30
)

// begin returns the function that reports whether the index may return a document, or nil if it may return all. The index
// is asked for the best k, and reads most documents if there is no filter.
func (r *filterRun) begin(f *frame, t Table, k, most int) func(id int64) bool {
	p := f.walk.picker
	r.reset()
	if len(p.terms) == 0 && f.live(t) == t.Len() {
		return nil
	}
	r.test = p.scan.test
	path, reach := p.narrowest(f, t)
	// The estimate of how many documents the index asks about until k pass: the share of all that pass is at most the
	// share that is on the access path.
	asked := most
	if reach > 0 {
		asked = int(min(float64(most), 4*float64(k)*float64(t.Len())/float64(reach)))
	}
	if path.gathers() && reach*gathered < asked*tested {
		r.take(f, path)
	}
	return f.onAccept
}

// take makes the documents on an access path the members. For them only the remaining terms are tested.
func (r *filterRun) take(f *frame, path *access) {
	f.walk.ids = f.walk.ids[:0]
	f.gather(path)
	r.members.make(f.walk.ids)
	r.access, r.test = path, path.test
}

// among returns the ids of the documents on an access path, ascending and without duplicates, and a function that reports
// whether one may be returned, or nil if each may.
func (r *filterRun) among(f *frame, path *access) (ids []int64, accept func(id int64) bool) {
	w := &f.walk
	r.reset()
	w.ids = w.ids[:0]
	f.gather(path)
	if !ascending(w.ids) {
		r.members.make(w.ids)
		w.ids = r.members.appendIDs(w.ids[:0])
	}
	if r.test = path.test; r.test != nil {
		accept = f.onAccept
	}
	return w.ids, accept
}

// ascending reports whether the ids are strictly ascending.
func ascending(ids []int64) bool {
	for i := 1; i < len(ids); i++ {
		if ids[i-1] >= ids[i] {
			return false
		}
	}
	return true
}

// gathers reports whether the ids on an access path can be collected from an index.
func (a *access) gathers() bool { return a.kind != byScan && a.kind != byID }

// accept reports whether the index may return the document.
func (f *frame) accept(id int64) bool {
	r := &f.search.filter
	r.asked++
	if r.asked&(f.every-1) == 0 && !f.goesOn() || f.err != nil {
		return false
	}
	if r.access != nil && !r.members.has(id) {
		return false
	}
	if r.test != nil && !f.passes(id) {
		return false
	}
	r.passed++
	return true
}

// passes tests the document of that id.
func (f *frame) passes(id int64) bool {
	r := &f.search.filter
	r.tested++
	if f.doc = f.walk.table.Get(id); f.doc == nil {
		return false
	}
	f.arena = f.arena[:f.mark]
	return r.test(f) == yes && f.err == nil
}

// allPass reports whether all documents of hits pass, as accept does for one.
func (f *frame) allPass(hits []index.Hit) bool {
	for _, h := range hits {
		if !f.passes(h.ID) {
			return false
		}
	}
	return true
}

// narrowest returns the access path with the fewest documents and their number. It is the scan if there is no other.
func (p *picker) narrowest(f *frame, t Table) (*access, int) {
	best, reach := &p.scan, t.Len()
	for i := range p.paths {
		if n := p.paths[i].reach(f, t); n < reach {
			best, reach = &p.paths[i], n
		}
	}
	return best, reach
}

// gather adds the ids on an access path to those of the walk, in no order and maybe with duplicates. It is not for a scan or a
// range of ids.
func (f *frame) gather(a *access) {
	was := f.doing
	f.doing, f.from = atIDs, a
	defer func() { f.doing = was }()
	switch a.kind {
	case byIDs:
		f.walk.ids = append(f.walk.ids, f.operands[a.probes[0].operand].ints...)
	case byHash:
		f.gatherHash(a)
	default:
		f.gatherRange(a)
	}
	f.goesOn()
}

// gatherHash collects the ids that an index holds under the hash of the values of an access path.
func (f *frame) gatherHash(a *access) {
	o, x := &f.operands[a.probes[0].operand], f.walk.table.Hash(a.on.name)
	switch {
	case a.probes[0].member:
		for _, v := range o.values {
			if f.walk.ids = x.AppendIDs(f.walk.ids, doc.Hash(v)); !f.goesOn() {
				return
			}
		}
	case !o.null:
		f.walk.ids = x.AppendIDs(f.walk.ids, doc.Hash(o.value))
	}
}

// idSet is an immutable set of ids: a bit for each id of a range if they are dense enough, else a sorted list.
type idSet struct {
	first, last int64
	bits        []uint64 // of the ids from first on; empty if sorted is used
	sorted      []int64
}

func (s *idSet) reset() { *s = idSet{bits: kept(s.bits), sorted: kept(s.sorted)} }

// widest is the largest ratio of the range of a set to its size for which it is kept as bits.
const widest = 256

// make makes s the set of ids.
func (s *idSet) make(ids []int64) {
	s.first, s.last = math.MaxInt64, math.MinInt64
	for _, id := range ids {
		s.first, s.last = min(s.first, id), max(s.last, id)
	}
	switch n := len(ids); {
	case n == 0:
	case uint64(s.last-s.first)/widest < uint64(n):
		words := int(s.last-s.first)/64 + 1
		s.bits = slices.Grow(s.bits[:0], words)[:words]
		clear(s.bits)
		for _, id := range ids {
			at := uint64(id - s.first)
			s.bits[at/64] |= 1 << (at % 64)
		}
	default:
		s.sorted = append(s.sorted[:0], ids...)
		slices.Sort(s.sorted)
	}
}

// appendIDs appends the set's ids to dst, ascending and without duplicates.
func (s *idSet) appendIDs(dst []int64) []int64 {
	if len(s.bits) == 0 {
		at := len(dst)
		dst = append(dst, s.sorted...)
		return dst[:at+len(slices.Compact(dst[at:]))]
	}
	for i, word := range s.bits {
		for ; word != 0; word &= word - 1 {
			dst = append(dst, s.first+int64(64*i+bits.TrailingZeros64(word)))
		}
	}
	return dst
}

func (s *idSet) has(id int64) bool {
	if id < s.first || id > s.last {
		return false
	}
	if len(s.bits) > 0 {
		at := uint64(id - s.first)
		return s.bits[at/64]>>(at%64)&1 == 1
	}
	_, found := slices.BinarySearch(s.sorted, id)
	return found
}
