package query

import (
	"math"
)

// A near with an index works in one of three ways. If the condition leaves no more rows than a walk of the graph may
// measure, all of them are measured, and the answer is exact. If an index on the condition gives more, the graph is
// searched among those documents. Otherwise the graph is walked, and each document that the walk reaches is tested. The
// method and what it measures depend on ef and not on the page, so pages within ef fit together.

// search finds the k nearest rows by the graph; ef is at least k.
func (n *nearPlan) search(f *frame, t Table, k, ef int) error {
	s, p := &f.search, f.walk.picker
	path, reach := p.narrowest(f, t)
	live := f.live(t)
	if !f.ready(t, n.column.name) {
		return f.take()
	}
	g := t.Vectors(n.column.name)
	s.near.most = ef * 2 * n.index.HNSW.M
	share := 1.0 // of the documents that may be returned
	if len(p.terms) > 0 || live < t.Len() {
		least := 0 // rows that certainly pass and have a vector
		if path.whole {
			least = reach - (t.Len() - live) - (t.Len() - g.Len())
		}
		switch {
		case reach <= n.few(path, s.near.most):
			return n.measure(f, t, k, byFew)
		case reach <= s.near.most:
			_, err := n.among(f, t, path, k, ef)
			return err
		case least > s.near.most:
			share = float64(least) / float64(t.Len())
		default:
			var more bool
			if share, more = n.more(f, t, path); f.err != nil {
				return f.take()
			}
			if !more {
				return n.measurePassed(f, t, k)
			}
		}
	}
	if path.gathers() && g.Surveys(reach, ef) {
		if found, err := n.among(f, t, path, k, ef); found || err != nil {
			return err
		}
	}
	return n.walk(f, t, k, ef, share)
}

// fewGathered is the number of documents up to which measuring them one by one is as fast as finding them in the graph.
const fewGathered = 256

// few returns how many documents of an access path may be measured without the graph if no walk is to search them.
func (n *nearPlan) few(a *access, most int) int {
	if a.gathers() && n.index.HNSW.Quant == 0 {
		return min(most, fewGathered)
	}
	return most
}

// more reports whether more rows with a vector pass than a walk may measure. If so, share is about the share of all
// documents that pass. If not, all rows that pass are in f.search.passed.
func (n *nearPlan) more(f *frame, t Table, a *access) (share float64, more bool) {
	if a.gathers() {
		ids, _ := f.search.filter.among(f, a)
		share, more = n.sample(f, t, a.test, len(ids), func(i int) int64 { return ids[i] })
	} else {
		g := t.Vectors(n.column.name)
		share, more = n.sample(f, t, f.walk.picker.scan.test, g.Nodes(), g.Document)
	}
	if !more && f.err == nil {
		share, more = n.count(f, t)
	}
	return share, more
}

const (
	// sampleStep is how many documents are tested between two evaluations of the sample, and sampleLeast how many it takes
	// to give up a sample that will not decide.
	sampleStep, sampleLeast = 32, 256
	// certainty is minus the logarithm of the chance that a sample is wrong: less than one in ten to the twelfth.
	certainty = 30
)

// sample reports whether a sample of the documents shows with certainty that more pass than a walk may measure. It draws
// the same ones each time, since otherwise pages would not fit together.
func (n *nearPlan) sample(f *frame, t Table, test testFunc, of int, document func(i int) int64) (share float64, more bool) {
	most := f.search.near.most
	bound := float64(most) / float64(of)
	passed := 0
	for i := 1; i <= most && bound < 1; i++ {
		f.search.near.counted++
		if id := document(int(spread(i) % uint64(of))); id > 0 && n.passes(f, t, id, test) {
			passed++
		}
		if i%sampleStep != 0 {
			continue
		}
		share := float64(passed) / float64(i)
		switch {
		case f.err != nil || i >= sampleLeast && share < 1.25*bound:
			return 0, false
		case share > bound && float64(i)*divergence(share, bound) > certainty:
			return share * float64(of) / float64(t.Len()), true
		}
	}
	return 0, false
}

// passes tests a document that has a vector.
func (n *nearPlan) passes(f *frame, t Table, id int64, test testFunc) bool {
	d := t.Get(id)
	if d == nil || d.Field(n.column.slot).IsNull() {
		return false
	}
	f.doc, f.arena = d, f.arena[:f.mark]
	return test == nil || test(f) == yes
}

// spread returns number i of a pseudo-random sequence (splitmix64: Steele, Lea and Flood 2014).
func spread(i int) uint64 {
	x := uint64(i) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// divergence bounds the probability that a share p above q of draws passes if each passes with probability at most q: with
// n draws it is less than e to the power of -n times the divergence (Chernoff 1952; the Kullback-Leibler divergence).
func divergence(p, q float64) float64 {
	d := p * math.Log(p/q)
	if p < 1 {
		d += (1 - p) * math.Log((1-p)/(1-q))
	}
	return d
}

// count tests rows until more have passed than a walk may measure.
func (n *nearPlan) count(f *frame, t Table) (share float64, more bool) {
	s, w := &f.search, &f.walk
	f.doing = atRows
	s.passed = s.passed[:0]
	w.skip, w.left, w.tested, w.matched, w.ids = 0, math.MaxInt, 0, 0, w.ids[:0]
	w.picker.choose(f, t, s.near.most+1)
	w.sorts = false
	w.sink = n.keepID
	f.travel()
	f.doing = atSearch
	s.near.counted += w.tested
	if len(s.passed) <= s.near.most || f.err != nil {
		return 0, false
	}
	return float64(w.matched) / float64(w.tested) * float64(w.access.reach(f, t)) / float64(t.Len()), true
}

// keepPassed is the sink of a count.
func (n *nearPlan) keepPassed(f *frame) bool {
	s := &f.search
	if !f.doc.Field(n.column.slot).IsNull() {
		s.passed = append(s.passed, f.doc.ID())
	}
	return len(s.passed) <= s.near.most
}

// measurePassed scores the rows that pass, all of which a count has found.
func (n *nearPlan) measurePassed(f *frame, t Table, k int) error {
	s := &f.search
	n.begin(f, k)
	for i, id := range s.passed {
		if err := f.pause(i); err != nil {
			return err
		}
		f.doc = t.Get(id)
		n.keepScored(f)
	}
	s.near.way, s.near.access, s.near.tested, s.near.measured = byFew, f.walk.access, s.near.counted, len(s.passed)
	s.hits = s.top.Append(s.hits[:0])
	s.near.hits = len(s.hits)
	return nil
}

// among searches the graph among the documents on an access path. It returns false if that would take longer than a walk.
func (n *nearPlan) among(f *frame, t Table, a *access, k, ef int) (bool, error) {
	s := &f.search
	g, q := t.Vectors(n.column.name), f.operands[n.vector].value.Floats(nil)
	ids, accept := s.filter.among(f, a)
	whole := a.whole && f.live(t) == t.Len()
	if err := f.take(); err != nil {
		return false, err
	}
	find := func(accept func(id int64) bool) (ok bool) {
		s.hits, s.near.measured, ok = g.SearchAmong(q, k, ef, ids, accept, s.hits[:0])
		return ok
	}
	var ok bool
	if whole {
		// Documents found under a hash pass unless their value only shares the hash, so it is enough to test those found.
		ok = find(nil)
		if ok && accept != nil && !f.allPass(s.hits) {
			ok = find(accept)
		}
	} else {
		ok = find(accept)
	}
	if !ok {
		return false, f.take()
	}
	s.near.way, s.near.filter, s.near.hits = byMembers, s.filter, len(s.hits)
	s.near.filter.access = a
	return true, f.take()
}

// walk walks the graph, wider each time, until as many documents that pass are in sight as a walk without a filter has.
func (n *nearPlan) walk(f *frame, t Table, k, ef int, share float64) error {
	s := &f.search
	_, reach := f.walk.picker.narrowest(f, t)
	q := f.operands[n.vector].value.Floats(nil)
	accept := s.filter.begin(f, t, ef, s.near.most)
	if accept == nil {
		s.near.ef = ef
		return n.walked(f, t, q, k, nil)
	}
	instead := byWide
	for s.near.ef = widened(ef, share); s.near.ef*measuredPerEF < reach; {
		s.filter.asked, s.filter.passed = 0, 0
		if err := n.walked(f, t, q, ef, accept); err != nil {
			return err
		}
		// There may be fewer documents that pass near the query than elsewhere.
		wanted := widened(ef, min(share, float64(s.filter.passed)/float64(max(s.filter.asked, 1))))
		if len(s.hits) == ef && wanted <= 2*s.near.ef {
			s.hits = s.hits[:k]
			s.near.hits = k
			return nil
		}
		s.near.ef, instead = max(wanted, 2*s.near.ef), byShort
	}
	return n.measure(f, t, k, instead)
}

// walked does one walk, for k rows.
func (n *nearPlan) walked(f *frame, t Table, q []float32, k int, accept func(id int64) bool) error {
	s := &f.search
	f.extra = 2 * hitBytes * int64(min(s.near.ef, t.Len())) // in sight and candidates
	if !f.fits() {
		return f.take()
	}
	s.hits = t.Vectors(n.column.name).Search(q, k, s.near.ef, accept, s.hits[:0])
	s.near.way, s.near.filter, s.near.hits = byGraph, s.filter, len(s.hits)
	return f.take()
}

// measuredPerEF is how many documents can be found and measured one by one in the time that a walk takes for one more in
// sight.
const measuredPerEF = 4

// widened returns the ef of a walk that may return only a share of the documents: as many of those are then in sight as in
// a walk that may return all, and about as many of the nearest are found.
func widened(ef int, share float64) int {
	return int(min(float64(ef)/share, math.MaxInt32))
}
