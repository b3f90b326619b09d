package hnsw

import "fenec/engine/index"

// Search appends to dst the k documents whose vectors are nearest to q and that accept takes, best first, of equal scores the
// lower id; a nil accept takes all. The score is the cosine similarity, the dot product or the Euclidean distance.
//
// Ef is how many nodes the walk keeps in sight, at least k: more find more of the true nearest, in more time. Tombstones do not
// count, and where nodes cannot be walked to they are measured one by one: without accept a page is short only where there are
// no more documents.
//
// What accept refuses counts, so that the walk is no longer than without: the answer is the best accepted ones of all it
// measured, which may be fewer than k. Who wants more asks again with a larger ef, or measures them. Accept is asked once about
// a document that would be among the best so far; by codes once more about one whose vector others have too.
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
	w := walk{ef: min(max(ef, k), g.Nodes()), living: true, accept: accept}
	if g.linked <= w.ef*g.M {
		s.begin(g.linked)
		g.scan(s, 0, g.linked, w)
	} else {
		g.walk(s, g.descend(s, 0), w)
		if accept == nil {
			for _, k := range s.found {
				g.take(s, ^k, w)
			}
			if len(s.found) < k {
				g.scanMissed(s, w)
			}
		}
	}
	if g.Quant == 0 {
		g.scan(s, g.linked, g.Nodes(), w)
	} else {
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

// take makes hits of a node that was measured. By codes it does not know the scores yet: it keeps the ef nearest.
func (g *Graph) take(s *scratch, k key, w walk) {
	node := k.node()
	if g.Quant == 0 {
		g.hit(s, node, s.scorer.FromRaw(k.distance(), g.rows.Row(int(node))), w.accept)
		return
	}
	full := len(s.taken) == w.ef
	switch {
	case full && k > ^s.taken[0] || !g.admits(node, w.accept):
	case full:
		s.taken.replace(^k)
	default:
		s.taken.push(^k)
	}
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
