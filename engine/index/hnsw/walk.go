package hnsw

import (
	"fenec/engine/index"
	"fenec/engine/vector"
)

// scratch is the memory that one walk needs. It is reused.
type scratch struct {
	stamps    []uint8 // of each node; it is visited if its stamp equals stamp
	stamp     uint8
	near      heap // nodes to continue from, the nearest on top
	found     heap // the nearest nodes so far, inverted: the farthest on top
	taken     heap // by codes: the nearest, to be ordered by their own vectors, inverted
	met       heap // if only some are accepted, all nodes that were measured,
	farthest  key  // and the greatest of their keys
	todo      []uint32
	distances []float32
	target    target
	probe     target
	sorted    []key    // candidates for links
	fellows   []key    // candidates of the same batch
	picks     []key    // the chosen ones
	chosen    []uint32 // the nodes of picks
	scorer    vector.Scorer
	top       index.TopK
	nearest   index.TopK // see amongSigns
	own       []float32
	prepared  []float32 // of code
	room      []float32
	members   members
}

func (g *Graph) scratch() *scratch {
	s, _ := g.scratches.Get().(*scratch)
	if s == nil {
		s = &scratch{own: make([]float32, 0, g.Dim)}
	}
	return s
}

// begin clears which nodes were visited.
func (s *scratch) begin(nodes int) {
	if len(s.stamps) < nodes {
		s.stamps = make([]uint8, nodes+nodes/4)
		s.stamp = 0
	}
	if s.stamp++; s.stamp == 0 {
		clear(s.stamps)
		s.stamp = 1
	}
	s.near, s.found, s.taken = s.near[:0], s.found[:0], s.taken[:0]
}

// meet keeps a node that was measured.
func (s *scratch) meet(k key) {
	s.met = append(s.met, k)
	s.farthest = max(s.farthest, k)
}

// measure returns the distances from the target to nodes, valid until the next call.
func (s *scratch) measure(sp *space, t *target, nodes []uint32) []float32 {
	if cap(s.distances) < len(nodes) {
		s.distances = make([]float32, 2*len(nodes))
	}
	d := s.distances[:len(nodes)]
	sp.measure(t, nodes, d)
	return d
}

// descend goes from the entry to the node nearest to the target that greedy steps reach at the lowest level above level
// (algorithm 2 with ef = 1).
func (g *Graph) descend(s *scratch, level int) key {
	s.todo = append(s.todo[:0], g.entry)
	best := keyOf(s.measure(&g.space, &s.target, s.todo)[0], g.entry)
	for l := g.top; l > level; l-- {
		for from := best; ; from = best {
			nodes := g.neighbours(from.node(), l)
			for i, d := range s.measure(&g.space, &s.target, nodes) {
				best = min(best, keyOf(d, nodes[i]))
			}
			if best == from {
				break
			}
		}
	}
	return best
}

// walk are the parameters of a walk.
type walk struct {
	level  int
	ef     int  // how many nodes it keeps in sight
	living bool // tombstones are walked through and not kept
	all    bool // all nodes that it measures are also kept in s.met
}

// walk collects in s.found the ef nodes nearest to the target that a walk from start finds (algorithm 2).
func (g *Graph) walk(s *scratch, start key, w walk) {
	s.begin(g.linked)
	s.stamps[start.node()] = s.stamp
	g.meet(s, start, w)
	for len(s.near) > 0 {
		k := s.near.pop()
		if len(s.found) == w.ef && k > ^s.found[0] {
			break
		}
		todo := s.todo[:0]
		for _, n := range g.neighbours(k.node(), w.level) {
			if s.stamps[n] != s.stamp {
				s.stamps[n] = s.stamp
				todo = append(todo, n)
			}
		}
		s.todo = todo
		for i, d := range s.measure(&g.space, &s.target, todo) {
			g.meet(s, keyOf(d, todo[i]), w)
		}
		if len(s.near) > 0 && w.level == 0 {
			g.links.Prefetch(int(s.near[0].node()))
		}
	}
}

// meet processes a node that was measured.
func (g *Graph) meet(s *scratch, k key, w walk) {
	if w.all {
		s.meet(k)
	}
	full := len(s.found) == w.ef
	if full && k > ^s.found[0] {
		return
	}
	s.near.push(k)
	switch {
	case w.living && g.ids[k.node()] == 0:
	case full:
		s.found.replace(^k)
	default:
		s.found.push(^k)
	}
}
