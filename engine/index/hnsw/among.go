package hnsw

import (
	"math"
	"slices"

	"fenec/engine/index"
	"fenec/engine/vector"
)

// members are the documents of SearchAmong that have a vector.
type members struct {
	refs   []uint64
	ids    []int64
	nodes  []uint32 // the node of each
	sums   []int32  // the estimate of each, see estimate
	picked []uint32 // indexes of members to be measured
}

const (
	// leastEstimated is the number of members from which on estimates save time.
	leastEstimated = 1024
	// sampled is how many members are measured to find out how good the estimates are.
	sampled = 256
	// firstMeasured is the least number of members, of the least estimates, that are measured before the others are compared with the nearest
	// of them.
	firstMeasured = 64
	// doubt is how many standard deviations an estimate is assumed to be off at most. One in fifty may be off further on the
	// side that matters.
	doubt = 2
)

// How many members can be examined in the time that a walk takes for one more node in sight.
const (
	estimatedPerEF = 256
	measuredPerEF  = 32
)

// Surveys estimates whether examining n documents takes less time than a walk that has ef of them in sight.
func (g *Graph) Surveys(n, ef int) bool {
	perEF := estimatedPerEF
	if g.Quant == 0 && g.signs == nil {
		perEF = measuredPerEF
	}
	return float64(n) < float64(perEF)*g.widened(n, ef)
}

// widened returns how many nodes a walk must have in sight for ef of them to be among n documents.
func (g *Graph) widened(n, ef int) float64 { return float64(ef) * float64(g.Len()) / float64(n) }

// SearchAmong is Search restricted to the documents of ids that accept accepts; ids are strictly ascending. It does not walk
// but examines all of these, so it is for few enough of them, see [Graph.Surveys]. A page is never short. It also returns how
// many it measured.
//
// If they are at most ef x 2M and the graph is not quantised, all of them are measured by their vectors, and the result is
// exact.
//
// If they are more, and vectors are long, the distance of each is estimated by its signs. A sample shows how far estimates
// are off, and only those are measured that may be among the nearest. If the signs say so little that this would take longer
// than a walk that has ef of them in sight, ok is false and there are no hits. If the graph is quantised, the codes of all
// are measured, and the ef nearest are ordered by the documents' own vectors.
//
// As in Search, only ef determines what is measured.
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

// find sets m to the documents of ids that are in the graph.
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

// takeMember adds a member that was measured to the hits, if it is accepted and among the best.
func (g *Graph) takeMember(s *scratch, id int64, node uint32, raw float32, accept func(id int64) bool) {
	h := index.Hit{ID: id, Score: s.scorer.FromRaw(raw, g.rows.Row(int(node)))}
	if s.top.Takes(h) && (accept == nil || accept(id)) {
		s.top.Push(h)
	}
}

// amongCodes measures all members by codes and adds the ef nearest to the hits, scored by their own vectors. Members without
// a code are all measured by their own vectors.
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

// hitMember adds a member to the hits, scored by its own vector, if it is accepted.
func (g *Graph) hitMember(s *scratch, id int64, accept func(id int64) bool) {
	if accept != nil && !accept(id) {
		return
	}
	if v := g.own(id, s.own[:0]); len(v) == g.Dim {
		s.top.Push(index.Hit{ID: id, Score: s.scorer.Score(v)})
	}
}

// amongSigns measures the members that, judged by their signs, may be among the nearest, and returns how many those are. ok
// is false if they are more than most. "Nearest" means a tenth of ef: hardly one of these is missed, as among the first of a
// walk. Further down the hits are as reliable as the last ones of a walk. There are at least ef hits.
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
		m.sums[i] = beyond // so that it is not measured again
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

// takeMet adds the ef nearest of the met members that accept accepts to the hits, whatever k is: their number decides whether
// more have to be measured. It returns false if there are fewer than ef.
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

// pickLeast picks the n members with the least sums, the least first, so that accept is called for few.
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

// measurePicked measures the picked members and keeps the nearest. It adds them to the hits if accept is nil, and otherwise
// to s.met, from which takeMet does.
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

// estimate is the line that fits the members' sums of signs as a function of their raw distance best, by least squares.
type estimate struct {
	at, slope float64
	off       float64 // the standard deviation of sums from the line
	squared   bool    // the distance is the square of the score, not the score with its sign changed
}

// estimate fits the line to a sample of the members, evenly spread.
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

// beyond is greater than every sum.
const beyond = math.MaxInt32

// limit returns the greatest sum to expect of a member that is nearer than the worst of the nearest.
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
	return beyond - 1 // the signs give no information, or distances overflow
}
