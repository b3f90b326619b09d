package hnsw

import (
	"math"
	"slices"

	"fenec/engine/vector"
)

// This file computes the centre of Bit codes, and computes it again when the graph has grown.

const (
	// centreSample is the most vectors that a centre is computed from, and centreNumbers the most numbers in them. They are
	// spread evenly over the nodes.
	centreSample  = 1024
	centreNumbers = 1 << 20
	// recentreGrowth is the factor by which the number of vectors must have grown since the last centre for a new one. So all
	// recoding together codes a vector about once more.
	recentreGrowth = 8
	// recodeBlock is how many nodes are recoded with each that is linked: few, so that no step of linking lasts long, and enough
	// to end before there are many more.
	recodeBlock = 64
	// powerIterations bounds the refinements of the direction of a centre. They end when the cosine of two in a row has
	// converged.
	powerIterations = 6
	settled         = 0.9999
	// unevenStep: one in so many vectors of the sample decides whether the centre is uneven.
	unevenStep = 8
	// unevenGain is the factor by which levels must preserve more of the residuals than signs for a centre to be uneven.
	unevenGain = 1.1
)

// recoding is the state of computing codes around a new centre, while the old ones are in use.
type recoding struct {
	to   *bitCodes // nil for none
	done int       // the nodes below this one have their new code
}

func (r *recoding) bytes() int64 {
	if r.to == nil {
		return 0
	}
	return r.to.bytes()
}

// living returns how many nodes have a document.
func (g *Graph) living() int { return g.Nodes() - g.dead }

// coded returns the number of nodes that have a code. Codes of a bit a component are made as nodes are linked.
func (g *Graph) coded() int {
	if g.Quant == vector.Bit {
		return g.linked
	}
	return g.Nodes()
}

// codeBatch makes the codes of the nodes of the batch, which no search reads before they are linked. It computes the first
// centre, and begins and continues the recoding around later ones.
func (g *Graph) codeBatch(workers int) {
	b := &g.batch
	switch {
	case g.recoding.to != nil:
		g.Recode(workers, b.to-b.from)
	case g.linked == 0:
		g.use(g.bit.around(g.takeCentre()))
	case g.living() >= max(recentreGrowth*g.bit.taken, 1):
		next := g.bit.around(g.takeCentre())
		next.rows = vector.NewMatrix[uint64](next.words + 1)
		g.recoding = recoding{to: next}
	}
	g.parallel(workers, b.to-b.from, func(s *scratch, i int) {
		if node := b.from + i; g.ids[node] != 0 {
			g.code(s, g.bit, node)
		}
	})
}

// use makes searches use the codes.
func (g *Graph) use(to *bitCodes) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bit = to
}

// Recode continues the recoding of the linked nodes around a new centre, if one is running, by a number of blocks of nodes. It
// returns the number of nodes recoded. Link does so too. After the last node searches use the new codes.
func (g *Graph) Recode(workers, blocks int) int {
	r := &g.recoding
	if r.to == nil {
		return 0
	}
	from, end := r.done, min(r.done+blocks*recodeBlock, g.linked)
	r.to.rows.Grow(end - r.to.rows.Len())
	g.parallel(workers, blocks, func(s *scratch, i int) {
		for node := from + i*recodeBlock; node < min(from+(i+1)*recodeBlock, end); node++ {
			g.code(s, r.to, node)
		}
	})
	if r.done = end; end == g.linked {
		r.to.rows.Grow(g.Nodes() - end)
		g.use(r.to)
		g.recoding = recoding{}
	}
	return end - from
}

// code makes a node's code from the vector of its document. If the node has no document any more, its code is made from its
// code around the previous centre.
func (g *Graph) code(s *scratch, to *bitCodes, node int) {
	v := g.own(g.first(node), s.own[:0])
	if len(v) == g.Dim {
		s.prepared = g.prepare(s.prepared[:0], v)
	} else {
		s.prepared = g.bit.decode(s.prepared[:0], g.bit.rows.Row(node))
	}
	s.room = to.encode(to.rows.Row(node), s.prepared, s.room)
}

// takeCentre computes the centre from a sample of the vectors.
func (g *Graph) takeCentre() centre {
	s := g.scratch()
	defer g.scratches.Put(s)
	most := min(centreSample, centreNumbers/g.Dim, g.Nodes())
	sample := make([]float32, 0, most*g.Dim)
	for i := range most {
		node, end := i*g.Nodes()/most, (i+1)*g.Nodes()/most
		for node < end && g.ids[node] == 0 {
			node++
		}
		if node == end {
			continue
		}
		if v := g.own(g.first(node), s.own[:0]); len(v) == g.Dim {
			sample = g.prepare(sample, v)
		}
	}
	c := centre{taken: g.living(), direction: leadingDirection(sample, g.Dim)}
	c.uneven = isUneven(c, sample)
	return c
}

// leadingDirection returns the direction along which the vectors of a sample, of dim components each, are largest: its first
// right singular vector, by power iterations from the mean. It is near the mean's direction if the vectors lie on one side
// of the origin, and their longest axis if they lie on both.
func leadingDirection(sample []float32, dim int) []float32 {
	sums := make([]float64, dim)
	for v := range slices.Chunk(sample, dim) {
		for i, x := range v {
			sums[i] += float64(x)
		}
	}
	direction := make([]float32, dim)
	next := func() {
		largest := 0.0
		for _, x := range sums {
			largest = max(largest, x, -x)
		}
		for i, x := range sums {
			direction[i] = float32(x / max(largest, math.SmallestNonzeroFloat64))
			sums[i] = 0
		}
		direction = vector.Normalize(direction[:0], direction)
	}
	next()
	before := make([]float32, dim)
	for range powerIterations {
		copy(before, direction)
		for v := range slices.Chunk(sample, dim) {
			along := float64(vector.Dot(v, direction))
			for i, x := range v {
				sums[i] += along * float64(x)
			}
		}
		next()
		if vector.Dot(before, direction) > settled {
			break
		}
	}
	if length := vector.Dot(direction, direction); !(length > 0.5 && length < 2) {
		clear(direction) // the vectors are zeros, or too long for a float to hold their products
	}
	return direction
}

// isUneven reports whether levels preserve more of the residuals of a sample than signs do, measured by the squares of the
// cosines of codes and residuals.
func isUneven(c centre, sample []float32) bool {
	dim := len(c.direction)
	words := make([]uint64, wordsOf(dim))
	even, uneven := c, c
	uneven.uneven = true
	var r []float32
	var bySigns, byLevels float32
	for at := 0; at < len(sample); at += unevenStep * dim {
		v := sample[at : at+dim]
		r, _ = even.residual(r, v)
		square := vector.Dot(r, r)
		if !(square > 0) {
			continue
		}
		sum := sumOfSizes(r)
		bySigns += sum * sum / float32(dim) / square
		r, _ = uneven.residual(r, v)
		above := levels(words, r)
		if n := float32(ones(words)); n > 0 && n < float32(dim) {
			byLevels += above * above / (n * (1 - n/float32(dim))) / square
		}
	}
	return byLevels > unevenGain*bySigns
}
