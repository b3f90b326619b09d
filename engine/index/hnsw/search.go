package hnsw

import (
	"math"

	"fenec/engine/index"
)

// Search appends to dst the k documents whose vectors are nearest to q and that accept accepts, best first, at equal scores by
// ascending id. A nil accept accepts all. The score is the cosine similarity, the dot product or the Euclidean distance.
//
// ef is how many nodes the walk keeps in sight, at least k. A larger ef finds more of the true nearest, in more time.
// Tombstones do not count, and nodes that the walk cannot reach are measured one by one, so without accept a page is short
// only if there are no more documents. Only ef determines what is measured: if two searches differ in k, neither above ef, the
// shorter result is a prefix of the longer.
//
// Documents that accept refuses count, so that the walk is no longer than without it. The result is the best accepted ones of
// all that it measured, which may be fewer than k. A caller that wants more searches again with a larger ef, or measures them.
// accept is called for the nearest first, until k are found, and by codes a second time for a document whose vector others
// share.
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

// search is Search under the lock, for a graph that has documents.
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

// scan measures the nodes of [from, to) and takes them.
func (g *Graph) scan(s *scratch, from, to int, w walk) {
	for from < to {
		s.todo = s.todo[:0]
		for ; from < to && len(s.todo) < scanBlock; from++ {
			s.todo = append(s.todo, uint32(from))
		}
		g.takeAll(s, w)
	}
}

// scanMissed measures the linked nodes that the walk did not reach and takes them.
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

// take adds the documents of a node that was measured to the hits. By codes it does not know the scores yet and keeps the ef
// nearest instead. If all nodes are kept, that is done later.
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

// takeAccepted adds the nearest of the met nodes that accept accepts to the hits, as many as are wanted. By codes it keeps the
// ef nearest.
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

// over reports whether met nodes that are not nearer than k, which has that score, cannot be hits. It returns false if
// distances overflow a float and so have no order.
func (s *scratch) over(k key, score float32) bool {
	return s.top.Full() && s.top.Better(s.top.Worst(), index.Hit{Score: score}) &&
		s.farthest < keyOf(float32(math.Inf(1)), 0) && !math.IsInf(float64(k.distance()), -1)
}

// order adds what was found by codes, and what is pending, to the hits, scored by the documents' own vectors.
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

// hit adds those of a node's documents that are accepted to the hits, if they are among the best.
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
		// The others are in the order of their ids: the first that is not among the best ends the loop.
		g.more.Ascend(uint64(node), func(id int64) bool {
			return accept != nil && !accept(id) || s.top.Push(index.Hit{ID: id, Score: score})
		})
	}
}
