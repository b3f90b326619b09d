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
// measured, which may be fewer than k. Who wants more asks again with a larger ef, or measures them. Accept is asked about
// documents that would be among the best so far; twice, where others have the same vector.
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
	s.scorer.Reset(g.Metric, q)
	g.aim(&s.target, s.scorer.Query())
	w := walk{ef: min(max(ef, k), g.Nodes()), living: true, accept: accept, most: k}
	if g.Quant != 0 {
		w.most = w.ef // codes are no more than a guess at which are the k best
	}
	if g.linked <= w.ef*g.M {
		s.begin(g.linked)
		g.scan(s, 0, g.linked, w)
	} else {
		g.walk(s, g.descend(s, 0), w)
		if accept == nil && len(s.found) < k {
			g.scanMissed(s, w)
		}
	}
	s.top.Reset(k, g.Metric.Ascending())
	if g.Quant == 0 {
		g.scan(s, g.linked, g.Nodes(), w)
		g.answer(s, accept)
	} else {
		g.answerOwn(s, accept)
	}
	return s.top.Append(dst)
}

// scanBlock is how many nodes a scan measures at a time.
const scanBlock = 64

// scan measures the nodes from a number up to another.
func (g *Graph) scan(s *scratch, from, to int, w walk) {
	for from < to {
		s.todo = s.todo[:0]
		for ; from < to && len(s.todo) < scanBlock; from++ {
			s.todo = append(s.todo, uint32(from))
		}
		g.meetAll(s, w)
	}
}

// scanMissed measures the linked nodes that the walk did not come to.
func (g *Graph) scanMissed(s *scratch, w walk) {
	for node := 0; node < g.linked; {
		s.todo = s.todo[:0]
		for ; node < g.linked && len(s.todo) < scanBlock; node++ {
			if s.stamps[node] != s.stamp {
				s.todo = append(s.todo, uint32(node))
			}
		}
		g.meetAll(s, w)
	}
}

func (g *Graph) meetAll(s *scratch, w walk) {
	for i, d := range s.measure(&g.space, &s.target, s.todo) {
		g.meet(s, keyOf(d, s.todo[i]), w)
	}
	s.near = s.near[:0]
}

// nearest is what the walk found to answer, turned.
func (s *scratch) nearest(accept func(id int64) bool) heap {
	if accept != nil {
		return s.taken
	}
	return s.found
}

// answer makes hits of what was found.
func (g *Graph) answer(s *scratch, accept func(id int64) bool) {
	for _, k := range s.nearest(accept) {
		node, raw := (^k).node(), (^k).distance()
		g.hit(s, node, s.scorer.FromRaw(raw, g.rows.Row(int(node))), accept)
	}
}

// answerOwn makes hits of what was found by codes, and of what is pending, by the documents' own vectors.
func (g *Graph) answerOwn(s *scratch, accept func(id int64) bool) {
	own := func(node uint32) {
		if v := g.own(g.first(int(node)), s.own[:0]); len(v) == g.Dim {
			g.hit(s, node, s.scorer.Score(v), accept)
		}
	}
	for _, k := range s.nearest(accept) {
		own((^k).node())
	}
	for node := uint32(g.linked); int(node) < g.Nodes(); node++ {
		if g.admits(node, accept) {
			own(node)
		}
	}
}

// hit puts a node's documents among the hits.
func (g *Graph) hit(s *scratch, node uint32, score float32, accept func(id int64) bool) {
	h := index.Hit{ID: g.first(int(node)), Score: score}
	if g.ids[node] > 0 { // it was accepted
		s.top.Push(h)
		return
	}
	// Some of them were. Past the first they come in the order of their ids: one that is not among the best ends it.
	if accept == nil || accept(h.ID) {
		s.top.Push(h)
	}
	g.more.Ascend(uint64(node), func(id int64) bool {
		h.ID = id
		return accept != nil && !accept(id) || s.top.Push(h)
	})
}
