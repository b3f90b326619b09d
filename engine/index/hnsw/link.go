package hnsw

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"fenec/engine/vector"
)

// batchSize is how many nodes are linked at a time. Nodes of the same batch are found by measuring all of them, so it is well
// below what a walk measures. It does not depend on the number of workers, and so neither does the graph.
const batchSize = 64

// batch is the scratch for linking some nodes. It is reused.
type batch struct {
	from, to int
	plans    []plan
	edges    []edge
	groups   []int    // the start of each group of edges, to one node at one level
	lists    []uint32 // the node's new list for each group
}

// plan is the links that a node of the batch will make, at levels from its highest down.
type plan struct {
	level int // -1 if it makes none
	picks []key
	ends  [maxLevel + 2]int // the end of each level's picks, where those of the level below begin
}

// at returns the picks of a level.
func (p *plan) at(level int) []key { return p.picks[p.ends[level+1]:p.ends[level]] }

// edge is a reverse link: from a node that was chosen at a level to the node that chose it.
type edge struct {
	level int
	to    uint32
	from  key // with its distance
}

func (b *batch) bytes() int64 {
	n := int64(cap(b.plans))*int64(unsafe.Sizeof(plan{})) + int64(cap(b.edges))*int64(unsafe.Sizeof(edge{})) +
		int64(cap(b.groups))*8 + int64(cap(b.lists))*4
	for i := range b.plans {
		n += int64(cap(b.plans[i].picks)) * 8
	}
	return n
}

// Build adds the vectors that each passes to add, about n, and links them with workers goroutines. The graph depends only on
// the vectors and their order.
func (g *Graph) Build(n, workers int, each func(add func(id int64, v []float32))) {
	g.Reserve(n)
	each(g.Add)
	g.Link(workers, g.Pending())
}

// Reserve makes room for n more nodes.
func (g *Graph) Reserve(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.space.reserve(n)
	g.links.Reserve(n)
	g.ids = slices.Grow(g.ids, n)
	g.hashes = slices.Grow(g.hashes, n)
	g.upperRow = slices.Grow(g.upperRow, n)
	g.table.reserve(g.hashes, n)
}

// Link links at most most pending nodes with workers goroutines, at least 1, and returns how many are left. Searches may run
// concurrently. A batch blocks them only while it copies its links into the graph.
func (g *Graph) Link(workers, most int) (left int) {
	for most = min(most, g.Pending()); most > 0; most -= batchSize {
		g.linkBatch(workers, min(most, batchSize))
	}
	return g.Pending()
}

// linkBatch links the next n nodes (algorithm 1). It searches for all of them in the graph as it was before and among each
// other, then makes the lists of all nodes that they chose, then copies these into the graph.
func (g *Graph) linkBatch(workers, n int) {
	b := &g.batch
	b.from, b.to = g.linked, g.linked+n
	if g.Quant == vector.Bit {
		g.codeBatch(workers)
	}
	for len(b.plans) < n {
		b.plans = append(b.plans, plan{})
	}
	g.parallel(workers, n, func(s *scratch, i int) { g.plan(s, &b.plans[i], b.from+i) })
	b.gather()
	width := 1 + g.width(0)
	b.lists = slices.Grow(b.lists[:0], len(b.groups)*width)[:len(b.groups)*width]
	g.parallel(workers, len(b.groups), func(s *scratch, i int) { g.linkBack(s, i, b.lists[i*width:][:width]) })

	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range b.plans[:n] {
		g.commit(&b.plans[i], uint32(b.from+i))
	}
	for i, start := range b.groups {
		made := b.lists[i*width:]
		copy(g.list(b.edges[start].to, b.edges[start].level), made[:1+made[0]])
	}
	g.linked = b.to
}

// parallel calls do with each number below n, with a scratch per worker.
func (g *Graph) parallel(workers, n int, do func(s *scratch, i int)) {
	var next atomic.Int64
	work := func() {
		s := g.scratch()
		defer g.scratches.Put(s)
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(s, i)
		}
	}
	var others sync.WaitGroup
	for range min(workers, n) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}

// plan chooses the links of a node of the batch, among the nodes that are linked and those of the batch before it. A pending
// tombstone gets none: no walk will reach it.
func (g *Graph) plan(s *scratch, p *plan, node int) {
	p.level, p.picks = -1, p.picks[:0]
	if g.ids[node] == 0 {
		return
	}
	p.level = g.level(node)
	p.ends[p.level+1] = 0
	g.aimAt(&s.target, node)
	g.measureFellows(s, g.linked, node)
	var start key
	if g.top >= 0 {
		start = g.descend(s, min(p.level, g.top))
	}
	for l := p.level; l >= 0; l-- {
		s.sorted = s.sorted[:0]
		if l <= g.top {
			g.walk(s, start, walk{level: l, ef: g.EFConstruction})
			for _, k := range s.found {
				s.sorted = append(s.sorted, ^k)
			}
			start = slices.Min(s.sorted)
		}
		for _, k := range s.fellows {
			if l == 0 || g.level(int(k.node())) >= l {
				s.sorted = append(s.sorted, k)
			}
		}
		slices.Sort(s.sorted)
		p.picks = g.choose(s, p.picks, s.sorted, g.M)
		p.ends[l] = len(p.picks)
	}
}

// measureFellows measures the nodes of [from, to) that will be linked.
func (g *Graph) measureFellows(s *scratch, from, to int) {
	s.todo, s.fellows = s.todo[:0], s.fellows[:0]
	for n := from; n < to; n++ {
		if g.ids[n] != 0 {
			s.todo = append(s.todo, uint32(n))
		}
	}
	for i, d := range s.measure(&g.space, &s.target, s.todo) {
		s.fellows = append(s.fellows, keyOf(d, s.todo[i]))
	}
}

// chooseBlock is how many chosen nodes a candidate is measured against before the result is checked.
const chooseBlock = 8

// choose appends to dst up to most of the candidates, which are in the order of their distances from one node: those that are
// nearer to it than to any chosen before (algorithm 4, without extending the candidates or keeping pruned ones).
func (g *Graph) choose(s *scratch, dst, candidates []key, most int) []key {
	s.chosen = s.chosen[:0]
next:
	for _, k := range candidates {
		if len(s.chosen) == most {
			break
		}
		g.aimAt(&s.probe, int(k.node()))
		for rest := s.chosen; len(rest) > 0; {
			block := rest[:min(len(rest), chooseBlock)]
			rest = rest[len(block):]
			for _, d := range s.measure(&g.space, &s.probe, block) {
				if d < k.distance() {
					continue next
				}
			}
		}
		s.chosen = append(s.chosen, k.node())
		dst = append(dst, k)
	}
	return dst
}

// gather sorts and groups the reverse links by the nodes that they belong to.
func (b *batch) gather() {
	b.edges, b.groups = b.edges[:0], b.groups[:0]
	for i := range b.plans[:b.to-b.from] {
		p := &b.plans[i]
		for l := p.level; l >= 0; l-- {
			for _, k := range p.at(l) {
				b.edges = append(b.edges, edge{level: l, to: k.node(), from: keyOf(k.distance(), uint32(b.from+i))})
			}
		}
	}
	slices.SortFunc(b.edges, func(x, y edge) int {
		return cmp.Or(cmp.Compare(x.level, y.level), cmp.Compare(x.to, y.to), cmp.Compare(x.from, y.from))
	})
	for i, e := range b.edges {
		if i == 0 || e.to != b.edges[i-1].to || e.level != b.edges[i-1].level {
			b.groups = append(b.groups, i)
		}
	}
}

// linkBack makes the list of a node that others chose: its links and them, or, if those are too many, a choice among all of
// them.
func (g *Graph) linkBack(s *scratch, group int, list []uint32) {
	b := &g.batch
	end := len(b.edges)
	if group+1 < len(b.groups) {
		end = b.groups[group+1]
	}
	edges := b.edges[b.groups[group]:end]
	to, level := edges[0].to, edges[0].level
	s.sorted = s.sorted[:0]
	if int(to) >= b.from {
		s.sorted = append(s.sorted, b.plans[int(to)-b.from].at(level)...)
	} else {
		g.aimAt(&s.target, int(to))
		nodes := g.neighbours(to, level)
		for i, d := range s.measure(&g.space, &s.target, nodes) {
			s.sorted = append(s.sorted, keyOf(d, nodes[i]))
		}
	}
	for _, e := range edges {
		s.sorted = append(s.sorted, e.from)
	}
	if most := g.width(level); len(s.sorted) > most {
		slices.Sort(s.sorted)
		s.picks = g.choose(s, s.picks[:0], s.sorted, most)
	} else {
		s.picks = append(s.picks[:0], s.sorted...)
	}
	write(list, s.picks)
}

// write sets list to the links to the picks.
func write(list []uint32, picks []key) {
	list[0] = uint32(len(picks))
	for i, k := range picks {
		list[1+i] = k.node()
	}
}

// commit adds a node of the batch to the graph.
func (g *Graph) commit(p *plan, node uint32) {
	for l := p.level; l >= 0; l-- {
		write(g.list(node, l), p.at(l))
	}
	if p.level > g.top {
		g.top, g.entry = p.level, node
	}
}
