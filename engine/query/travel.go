package query

import (
	"math"

	"fenec/engine/doc"
	"fenec/engine/index"
)

const (
	// indexedRow is the cost of finding a document through an index, relative to visiting one in a scan.
	indexedRow = 3
	// idWindow is the size in ids of the first window of a walk to lower ids. maxWindowRows is the number of
	// documents in a window from which on the next one is not larger.
	idWindow      = 256
	maxWindowRows = 128
)

// choose picks the access path that is likely to visit the fewest documents until need rows are found.
func (p *picker) choose(f *frame, t Table, need int) {
	w := &f.walk
	w.sorts = !p.byID && !p.downID
	total := t.Len()
	// A scan of a range of ids is a scan of fewer documents.
	base, across := &p.scan, total
	matching := total
	var narrow *access
	for i := range p.paths {
		a := &p.paths[i]
		n := a.reach(f, t)
		if a.kind == byID {
			base, across = a, n
		}
		if narrow == nil || n < matching {
			narrow, matching = a, n
		}
		if matching <= 1 {
			break
		}
	}
	// expected is how many of n documents are visited until need rows are found among them.
	expected := func(n int) float64 {
		if need == math.MaxInt || matching == 0 {
			return float64(n)
		}
		return min(float64(n), float64(need)*float64(total)/float64(matching))
	}
	best, cost := base, expected(across)
	if w.sorts {
		cost = float64(across) + sortCost(matching, need)
	}
	if narrow != nil && narrow != base {
		c := indexedRow * float64(matching)
		if w.sorts {
			c += sortCost(matching, need)
		}
		if c < cost {
			best, cost = narrow, c
		}
	}
	for i := range p.walked {
		a := &p.walked[i]
		if c := indexedRow * expected(a.reach(f, t)); c < cost {
			best, cost, w.sorts = a, c, false
		}
	}
	// An order by id from the top walks a scan or a range of ids downward and sorts what an index found.
	if p.downID && best.kind != byScan && best.kind != byID {
		w.sorts = true
	}
	w.access, w.test = best, best.test
}

// sortCost returns the cost of sorting the first need of n documents: a comparison for each, and sorting those that
// are kept.
func sortCost(n, need int) float64 {
	few := float64(min(n, need))
	return float64(n) + few*math.Log2(few+1)
}

// travel walks the access path chosen, calling visitDocument for each document on it.
func (f *frame) travel() {
	w := &f.walk
	a, t := w.access, w.table
	if f.err != nil {
		return // the index of the access path was not built in time
	}
	switch a.kind {
	case byScan:
		if w.picker.downID && !w.sorts {
			f.descend(1, math.MaxInt64)
			return
		}
		t.Ascend(1, f.onDocument)
	case byID:
		f.travelIDs(a)
	case byIDs:
		for _, id := range f.operands[a.probes[0].operand].ints {
			if id > 0 && !f.visitID(id) {
				return
			}
		}
	case byHash:
		o, x := &f.operands[a.probes[0].operand], t.Hash(a.on.name)
		if !a.probes[0].member {
			if !o.null {
				x.Ascend(doc.Hash(o.value), f.onWalkID)
			}
			return
		}
		f.gather(a)
		f.visitGathered()
	case byRange:
		f.gather(a)
		f.visitGathered()
	case byOrder:
		if lo, hi, none := a.bounds(f); !none {
			t.Sorted(a.on.name).Range(lo, hi, a.desc, f.onWalkID)
		}
	}
}

// travelIDs walks a range of ids.
func (f *frame) travelIDs(a *access) {
	first, last := a.idRange(f)
	switch {
	case first > last:
	case first == last:
		f.visitID(first)
	case f.walk.picker.downID:
		f.descend(first, last)
	default:
		f.walk.last = last
		f.walk.table.Ascend(first, f.onRanged)
	}
}

// visitRanged is visitDocument up to the range's last id.
func (f *frame) visitRanged(d doc.Document) bool {
	return d.ID() <= f.walk.last && f.visitDocument(d)
}

// gatherRange collects the ids that an index holds between an access path's bounds, or under its members.
func (f *frame) gatherRange(a *access) {
	x := f.walk.table.Sorted(a.on.name)
	if len(a.probes) == 1 && a.probes[0].member {
		for _, v := range f.operands[a.probes[0].operand].values {
			at := index.Bound{Value: v, Inclusive: true}
			if f.walk.ids = x.AppendIDs(f.walk.ids, at, at); !f.goesOn() {
				return
			}
		}
		return
	}
	if lo, hi, none := a.bounds(f); !none {
		f.walk.ids = x.AppendIDs(f.walk.ids, lo, hi)
	}
}

// descend visits the documents of ids first to last from the last to the first. A Table is read by ascending id, so
// it is read window by window, each below the one before and wider if ids are sparse.
func (f *frame) descend(first, last int64) {
	w := &f.walk
	last = f.highest(first, last)
	for width := int64(idWindow); last >= first; {
		from := first
		if last-first >= width {
			from = last - width + 1
		}
		w.docs, w.last = w.docs[:0], last
		w.table.Ascend(from, f.onWindow)
		for i := len(w.docs) - 1; i >= 0; i-- {
			if !f.visitDocument(w.docs[i]) {
				return
			}
		}
		if len(w.docs) < maxWindowRows && width < math.MaxInt64/2 {
			width *= 2
		}
		if from == first {
			return
		}
		last = from - 1
	}
}

// highest returns the highest id in use from first to last, or less than first if there is none.
func (f *frame) highest(first, last int64) int64 {
	w := &f.walk
	// No id above last is in use. If any is in use, one is at low or above.
	low, high := first, last
	for low < high {
		mid := low + (high-low)/2 + 1
		w.docs, w.last = w.docs[:0], high
		w.table.Ascend(mid, f.onFirst)
		if len(w.docs) > 0 {
			low = w.docs[0].ID()
		} else {
			high = mid - 1
		}
	}
	return low
}

// keepWindow keeps the documents of a window.
func (f *frame) keepWindow(d doc.Document) bool {
	if d.ID() > f.walk.last {
		return false
	}
	f.walk.docs = append(f.walk.docs, d)
	return true
}

// keepFirst keeps the first document of a window.
func (f *frame) keepFirst(d doc.Document) bool {
	f.keepWindow(d)
	return false
}
