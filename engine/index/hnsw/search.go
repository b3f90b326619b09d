package hnsw

import (
	"math"

	"fenec/engine/index"
)

// Search appends to dst the k documents whose vectors are nearest to q and that accept takes, best first, of equal scores the
// lower id; a nil accept takes all. The score is the cosine similarity, the dot product or the Euclidean distance.
//
// Ef is how many nodes the walk keeps in sight, at least k: more find more of the true nearest, in more time. Tombstones do not
// count, and where nodes cannot be walked to they are measured one by one: without accept a page is short only where there are
// no more documents. Ef alone decides what is measured: of two searches that differ in k, neither above ef, the shorter answer
// is the beginning of the longer.
//
// What accept refuses counts, so that the walk is no longer than without: the answer is the best accepted ones of all it
// measured, which may be fewer than k. A caller that wants more asks again with a larger ef, or measures them. Accept is asked
// about the nearest first, until k are found; by codes once more about a document whose vector others have too.
//
// A graph of few nodes is not walked: measuring all of them is faster and finds all.
func (g *Graph) Search(q []float32, k, ef int, accept func(id int64) bool, dst []index.Hit) []index.Hit {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if k <= 0 || g.Len() == 0 {
		return dst
	}
	s := g.scratch()
	defer g.scratches.Put(s)
	return g.search(s, q, k, ef, accept, dst)
}

// search is Search under the lock, of a graph that has documents.
func (g *Graph) search(s *scratch, q []float32, k, ef int, accept func(id int64) bool, dst []index.Hit) []index.Hit {
	s.scorer.Reset(g.Metric, q)
	g.aim(&s.target, s.scorer.Query())
	s.top.Reset(k, g.Metric.Ascending())
	w := walk{ef: min(max(ef, k), g.Nodes()), living: true, all: accept != nil}
	s.met, s.farthest = s.met[:0], 0
	if g.linked <= w.ef*g.M {
		s.begin(g.linked)
		g.scan(s, 0, g.linked, w)
	} else {
		g.walk(s, g.descend(s, 0), w)
		if !w.all {
			for _, k := range s.found {
				g.take(s, ^k, w)
			}
			if len(s.found) < min(w.ef, g.living()) {
				g.scanMissed(s, w)
			}
		}
	}
	if g.Quant == 0 {
		g.scan(s, g.linked, g.Nodes(), w)
	}
	if w.all {
		g.takeAccepted(s, w, accept)
	}
	if g.Quant != 0 {
		g.order(s, accept)
	}
	return s.top.Append(dst)
}

// scanBlock is how many nodes a scan measures at a time.
const scanBlock = 64

// scan takes of the nodes from a number up to another.
func (g *Graph) scan(s *scratch, from, to int, w walk) {
	for from < to {
		s.todo = s.todo[:0]
		for ; from < to && len(s.todo) < scanBlock; from++ {
			s.todo = append(s.todo, uint32(from))
		}
		g.takeAll(s, w)
	}
}

// scanMissed takes of the linked nodes that the walk did not come to.
func (g *Graph) scanMissed(s *scratch, w walk) {
	for node := 0; node < g.linked; {
		s.todo = s.todo[:0]
		for ; node < g.linked && len(s.todo) < scanBlock; node++ {
			if s.stamps[node] != s.stamp {
				s.todo = append(s.todo, uint32(node))
			}
		}
		g.takeAll(s, w)
	}
}

func (g *Graph) takeAll(s *scratch, w walk) {
	for i, d := range s.measure(&g.space, &s.target, s.todo) {
		g.take(s, keyOf(d, s.todo[i]), w)
	}
}

// take makes hits of a node that was measured. By codes it does not know the scores yet: it keeps the ef nearest. Where all nodes
// are kept, that comes later.
func (g *Graph) take(s *scratch, k key, w walk) {
	node := k.node()
	full := len(s.taken) == w.ef
	switch {
	case w.all:
		s.meet(k)
	case g.Quant == 0:
		g.hit(s, node, s.scorer.FromRaw(k.distance(), g.rows.Row(int(node))), nil)
	case full && k > ^s.taken[0] || g.ids[node] == 0:
	case full:
		s.taken.replace(^k)
	default:
		s.taken.push(^k)
	}
}

// takeAccepted makes hits of the nearest of the nodes met that accept takes, as many as are wanted. By codes it keeps the ef
// nearest.
func (g *Graph) takeAccepted(s *scratch, w walk, accept func(id int64) bool) {
	s.met.order()
	for len(s.met) > 0 && len(s.taken) < w.ef {
		k := s.met.pop()
		node := k.node()
		if g.Quant != 0 {
			if g.admits(node, accept) {
				s.taken.push(^k)
			}
			continue
		}
		score := s.scorer.FromRaw(k.distance(), g.rows.Row(int(node)))
		if s.over(k, score) {
			return
		}
		g.hit(s, node, score, accept)
	}
}

// over says that what was met and is no nearer than k, of that score, can be no hit. It cannot be said where distances are past
// what a float holds, which leaves them in no order.
func (s *scratch) over(k key, score float32) bool {
	return s.top.Full() && s.top.Better(s.top.Worst(), index.Hit{Score: score}) &&
		s.farthest < keyOf(float32(math.Inf(1)), 0) && !math.IsInf(float64(k.distance()), -1)
}

// order makes hits of what was found by codes, and of what is pending, by the documents' own vectors.
func (g *Graph) order(s *scratch, accept func(id int64) bool) {
	own := func(node uint32) {
		if v := g.own(g.first(int(node)), s.own[:0]); len(v) == g.Dim {
			g.hit(s, node, s.scorer.Score(v), accept)
		}
	}
	for _, k := range s.taken {
		own((^k).node())
	}
	for node := uint32(g.linked); int(node) < g.Nodes(); node++ {
		if g.admits(node, accept) {
			own(node)
		}
	}
}

// hit puts those of a node's documents that are accepted among the hits, if they are among the best.
func (g *Graph) hit(s *scratch, node uint32, score float32, accept func(id int64) bool) {
	if s.top.Full() && s.top.Better(s.top.Worst(), index.Hit{Score: score}) {
		return
	}
	first := g.ids[node]
	switch {
	case first > 0:
		if accept == nil || accept(first) {
			s.top.Push(index.Hit{ID: first, Score: score})
		}
	case first < 0:
		if accept == nil || accept(-first) {
			s.top.Push(index.Hit{ID: -first, Score: score})
		}
		// The others come in the order of their ids: the first that is not among the best ends it.
		g.more.Ascend(uint64(node), func(id int64) bool {
			return accept != nil && !accept(id) || s.top.Push(index.Hit{ID: id, Score: score})
		})
	}
}
