package hnsw

import (
	"math"
	"slices"

	"fenec/engine/index"
	"fenec/engine/vector"
)

// members is the documents that a search is among, those that have a vector.
type members struct {
	refs   []uint64
	ids    []int64
	nodes  []uint32 // of each its node
	sums   []int32  // of each its estimate, see estimate
	picked []uint32 // places of members to be measured
}

const (
	// leastEstimated is how many members there must be for estimates to pay.
	leastEstimated = 1024
	// sampled is how many of them tell how good the estimates are.
	sampled = 256
	// firstMeasured is how many of the least estimates are measured at least before what is left is compared with the nearest
	// of them.
	firstMeasured = 64
	// doubt is how many standard deviations an estimate is taken to be off at most: one in fifty may be off further on the side
	// where that matters.
	doubt = 2
)

// How many members can be looked at in the time that a walk takes for one more node in sight.
const (
	estimatedPerEF = 256
	measuredPerEF  = 32
)

// Surveys says that, as far as can be told before, to look at n documents takes less time than a walk that has ef of them in
// sight.
func (g *Graph) Surveys(n, ef int) bool {
	perEF := estimatedPerEF
	if g.Quant == 0 && g.signs == nil {
		perEF = measuredPerEF
	}
	return float64(n) < float64(perEF)*g.widened(n, ef)
}

// widened is how many nodes a walk has in sight of which ef are among n documents.
func (g *Graph) widened(n, ef int) float64 { return float64(ef) * float64(g.Len()) / float64(n) }

// SearchAmong is Search of the documents of ids that accept takes, ids ascending and each once; others have no part in it. It
// walks nowhere and looks at all of these instead, so it is for where they are few enough, see [Graph.Surveys]; a page is never
// short. It answers, too, how many it measured.
//
// No more than ef x 2M of them are all measured by their vectors, unless the graph is quantised: the answer is exact.
//
// Where they are more, and vectors are long, each has an estimate by its signs. A sample tells how far estimates are off, and
// only those are measured that by theirs may be among the nearest; where signs tell so little that it would take longer than a
// walk that has ef of them in sight, ok is false and nothing is answered. Where the graph is quantised the codes of all are
// measured, and the ef nearest ordered by the documents' own vectors.
//
// As for Search, ef alone decides what is measured.
func (g *Graph) SearchAmong(q []float32, k, ef int, ids []int64, accept func(id int64) bool, dst []index.Hit) (hits []index.Hit, measured int, ok bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if k <= 0 {
		return dst, 0, true
	}
	s := g.scratch()
	defer g.scratches.Put(s)
	return g.searchAmong(s, q, k, ef, ids, accept, dst)
}

// searchAmong is SearchAmong under the lock.
func (g *Graph) searchAmong(s *scratch, q []float32, k, ef int, ids []int64, accept func(id int64) bool, dst []index.Hit) (hits []index.Hit, measured int, ok bool) {
	ef = max(ef, k)
	s.scorer.Reset(g.Metric, q)
	g.aim(&s.target, s.scorer.Query())
	s.top.Reset(k, g.Metric.Ascending())
	s.members.find(&g.places, ids)
	measured, ok = len(s.members.ids), true
	switch {
	case g.Quant != 0:
		g.amongCodes(s, ef, accept)
	case g.signs == nil || measured < max(leastEstimated, ef*2*g.M+1):
		g.amongAll(s, accept)
	default:
		most := measuredPerEF * g.widened(measured, ef)
		measured, ok = g.amongSigns(s, ef, int(min(most, math.MaxInt32)), accept)
	}
	if !ok {
		return dst, measured, false
	}
	hits = s.top.Append(dst)
	return hits[:min(len(hits), len(dst)+k)], measured, true // see takeMet
}

// find makes m the documents of ids that have a place.
func (m *members) find(places *index.IDs, ids []int64) {
	const none = math.MaxUint64
	m.refs = slices.Grow(m.refs[:0], len(ids))[:len(ids)]
	places.Refs(ids, none, m.refs)
	m.ids = slices.Grow(m.ids[:0], len(ids))[:len(ids)]
	m.nodes = slices.Grow(m.nodes[:0], len(ids))[:len(ids)]
	n := 0
	for i, ref := range m.refs {
		if ref != none {
			m.ids[n], m.nodes[n] = ids[i], uint32(ref)
			n++
		}
	}
	m.ids, m.nodes = m.ids[:n], m.nodes[:n]
}

// amongAll measures all members.
func (g *Graph) amongAll(s *scratch, accept func(id int64) bool) {
	m := &s.members
	for from := 0; from < len(m.nodes); from += scanBlock {
		nodes := m.nodes[from:min(from+scanBlock, len(m.nodes))]
		for i, d := range s.measure(&g.space, &s.target, nodes) {
			g.takeMember(s, m.ids[from+i], nodes[i], d, accept)
		}
	}
}

// takeMember makes a hit of a member that was measured, if it is accepted and among the best.
func (g *Graph) takeMember(s *scratch, id int64, node uint32, raw float32, accept func(id int64) bool) {
	h := index.Hit{ID: id, Score: s.scorer.FromRaw(raw, g.rows.Row(int(node)))}
	if s.top.Takes(h) && (accept == nil || accept(id)) {
		s.top.Push(h)
	}
}

// amongCodes measures all members by codes and makes hits of the ef nearest by their own vectors. Members without a code
// are all measured by their own vectors.
func (g *Graph) amongCodes(s *scratch, ef int, accept func(id int64) bool) {
	m := &s.members
	s.taken = s.taken[:0]
	coded := g.coded()
	for from := 0; from < len(m.nodes); from += scanBlock {
		for i, d := range s.measure(&g.space, &s.target, m.nodes[from:min(from+scanBlock, len(m.nodes))]) {
			at := from + i
			k := keyOf(d, uint32(at))
			full := len(s.taken) == ef
			switch {
			case int(m.nodes[at]) >= coded:
				g.hitMember(s, m.ids[at], accept)
			case full && k > ^s.taken[0] || accept != nil && !accept(m.ids[at]):
			case full:
				s.taken.replace(^k)
			default:
				s.taken.push(^k)
			}
		}
	}
	for _, k := range s.taken {
		g.hitMember(s, m.ids[(^k).node()], nil)
	}
}

// hitMember makes a hit of a member by its own vector, if it is accepted.
func (g *Graph) hitMember(s *scratch, id int64, accept func(id int64) bool) {
	if accept != nil && !accept(id) {
		return
	}
	if v := g.own(id, s.own[:0]); len(v) == g.Dim {
		s.top.Push(index.Hit{ID: id, Score: s.scorer.Score(v)})
	}
}

// amongSigns measures the members that may be among the nearest by what their signs tell of them, and answers how many those
// are; ok is false where they are more than most. Those nearest are a tenth of ef, of which hardly one is missed, as of the
// first of a walk; further down the hits are as sure as the last ones of a walk. There are ef of them or more.
func (g *Graph) amongSigns(s *scratch, ef, most int, accept func(id int64) bool) (measured int, ok bool) {
	m := &s.members
	s.nearest.Reset((ef+9)/10, g.Metric.Ascending())
	s.met, s.farthest = s.met[:0], 0
	g.aimSigned(&s.target, s.target.floats)
	m.sums = slices.Grow(m.sums[:0], len(m.nodes))[:len(m.nodes)]
	s.target.signed.Rows(g.signs, m.nodes, m.sums)
	e := g.estimate(s)
	m.pickLeast(s, max(firstMeasured, ef))
	g.measurePicked(s, accept)
	measured = len(m.picked)
	for _, i := range m.picked {
		m.sums[i] = beyond // not to be measured again
	}

	m.picked = m.picked[:0]
	limit := e.limit(&s.nearest)
	for i, sum := range m.sums {
		if sum > limit {
			continue
		}
		if m.picked = append(m.picked, uint32(i)); len(m.picked) < scanBlock {
			continue
		}
		if measured += scanBlock; measured > most {
			return measured, false
		}
		g.measurePicked(s, accept)
		m.picked, limit = m.picked[:0], e.limit(&s.nearest)
	}
	g.measurePicked(s, accept)
	measured += len(m.picked)
	if accept != nil && !g.takeMet(s, ef, accept) {
		s.top.Reset(ef, g.Metric.Ascending())
		g.amongAll(s, accept)
		measured = len(m.nodes)
	}
	return measured, true
}

// takeMet makes hits of the ef nearest of the members met that accept takes, whatever is wanted: how many there are decides
// whether more are to be measured. It is false where there are fewer.
func (g *Graph) takeMet(s *scratch, ef int, accept func(id int64) bool) bool {
	s.top.Reset(ef, g.Metric.Ascending())
	s.met.order()
	for len(s.met) > 0 {
		k := s.met.pop()
		node := s.members.nodes[k.node()]
		h := index.Hit{ID: s.members.ids[k.node()], Score: s.scorer.FromRaw(k.distance(), g.rows.Row(int(node)))}
		if s.over(k, h.Score) {
			break
		}
		if s.top.Takes(h) && accept(h.ID) {
			s.top.Push(h)
		}
	}
	return s.top.Full()
}

// pickLeast picks the n members with the least sums, the least first: so that accept is asked about few.
func (m *members) pickLeast(s *scratch, n int) {
	s.taken = s.taken[:0]
	for i, sum := range m.sums {
		switch k := keyOf(float32(sum), uint32(i)); {
		case len(s.taken) < n:
			s.taken.push(^k)
		case k < ^s.taken[0]:
			s.taken.replace(^k)
		}
	}
	m.picked = m.picked[:0]
	for len(s.taken) > 0 {
		m.picked = append(m.picked, (^s.taken.pop()).node())
	}
	slices.Reverse(m.picked)
}

// measurePicked measures the members picked and keeps the nearest. It makes hits of them, where not all are accepted later.
func (g *Graph) measurePicked(s *scratch, accept func(id int64) bool) {
	m := &s.members
	s.todo = s.todo[:0]
	for _, i := range m.picked {
		s.todo = append(s.todo, m.nodes[i])
	}
	for i, d := range s.measure(&g.space, &s.target, s.todo) {
		h := index.Hit{ID: m.ids[m.picked[i]], Score: s.scorer.FromRaw(d, g.rows.Row(int(s.todo[i])))}
		if accept != nil {
			s.meet(keyOf(d, m.picked[i]))
		} else {
			s.top.Push(h)
		}
		if s.nearest.Takes(h) && (accept == nil || accept(h.ID)) {
			s.nearest.Push(h)
		}
	}
}

// estimate is what sum of signs a member has by its raw distance: the line from which sums are off least, by least squares.
type estimate struct {
	at, slope float64
	off       float64 // the standard deviation of sums from the line
	squared   bool    // the distance is the square of the score, not the score with its sign changed
}

// estimate measures a sample of the members, evenly spread.
func (g *Graph) estimate(s *scratch) estimate {
	m := &s.members
	m.picked, s.todo = m.picked[:0], s.todo[:0]
	for i := range sampled {
		at := i * len(m.nodes) / sampled
		m.picked = append(m.picked, uint32(at))
		s.todo = append(s.todo, m.nodes[at])
	}
	distances := s.measure(&g.space, &s.target, s.todo)
	var x, y float64
	for i, d := range distances {
		x += float64(d)
		y += float64(m.sums[m.picked[i]])
	}
	x, y = x/sampled, y/sampled
	var xx, xy, yy float64
	for i, d := range distances {
		dx, dy := float64(d)-x, float64(m.sums[m.picked[i]])-y
		xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
	}
	e := estimate{slope: xy / xx, squared: g.Metric == vector.L2}
	e.at = y - e.slope*x
	e.off = math.Sqrt(max(yy-e.slope*xy, 0) / sampled)
	return e
}

// beyond is above the sums there are.
const beyond = math.MaxInt32

// limit is the greatest sum to be reckoned with of a member that is nearer than the worst of the nearest.
func (e *estimate) limit(nearest *index.TopK) int32 {
	if !nearest.Full() {
		return beyond - 1
	}
	worst := float64(nearest.Worst().Score)
	if e.squared {
		worst *= worst
	} else {
		worst = -worst
	}
	sum := e.at + e.slope*worst + doubt*e.off
	if e.slope > 0 && sum < beyond-1 {
		return int32(max(sum, math.MinInt32))
	}
	return beyond - 1 // the signs tell nothing, or distances are beyond numbers
}
