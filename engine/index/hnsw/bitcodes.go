package hnsw

import (
	"math"
	"math/bits"
	"slices"

	"fenec/engine/vector"
)

// bitCodes are the codes of vectors that are quantised to one bit per component.
//
// The signs of vectors without a component below zero are all the same. So codes are taken around a centre, a direction along
// which the vectors have a large component. The rest of a vector is its residual. A code holds a bit for each component of the
// residual, and factors that estimate distances, like those of RaBitQ (Gao and Long 2024). DESIGN.md derives the estimates.
//
// Only the rows of a bitCodes change: a new centre makes a new bitCodes.
type bitCodes struct {
	metric vector.Metric
	words  int // of signs
	centre
	rows *vector.Matrix[uint64] // the bits of each code, and a word of factors

	// likeness is the cosine of the angle between two residuals, by the number of signs that differ (Charikar 2002). If the centre
	// is uneven, it is the factor that turns the bits of a code into parts of a correlation, by the number of bits that are set.
	likeness []float32
}

// centre is the direction around which codes are taken.
type centre struct {
	taken     int       // the number of nodes when it was taken, 0 before the first
	direction []float32 // of length 1; zeros if there is none
	uneven    bool      // few components of a residual are large: a bit is set above a level, not below 0
}

// newBitCodes returns codes without rows and without a centre.
func newBitCodes(o Options) *bitCodes {
	b := &bitCodes{metric: o.Metric, words: wordsOf(o.Dim)}
	b.rows = vector.NewMatrix[uint64](b.words + 1)
	b.setCentre(centre{direction: make([]float32, o.Dim)})
	return b
}

// around returns codes around a centre. They have b's rows.
func (b *bitCodes) around(c centre) *bitCodes {
	n := *b
	n.setCentre(c)
	return &n
}

func (b *bitCodes) setCentre(c centre) {
	b.centre = c
	dim := float64(len(c.direction))
	b.likeness = make([]float32, len(c.direction)+1)
	for i := range b.likeness {
		n := float64(i)
		if !c.uneven {
			b.likeness[i] = float32(math.Cos(math.Pi * n / dim))
		} else if i > 0 && n < dim {
			b.likeness[i] = float32(1 / math.Sqrt(n*(1-n/dim)))
		}
	}
}

func (b *bitCodes) bytes() int64 {
	return b.rows.Bytes() + int64(cap(b.direction)+cap(b.likeness))*4
}

// residual returns v, prepared, less its part along the centre, in dst's room, and v's coordinate along the centre. If the
// centre is uneven the mean of the components is subtracted too.
func (c *centre) residual(dst, v []float32) (r []float32, along float32) {
	r = slices.Grow(dst[:0], len(v))[:len(v)]
	along = vector.Dot(v, c.direction)
	for i, x := range c.direction[:len(v)] {
		r[i] = v[i] - along*x
	}
	if c.uneven {
		mean := mean(r)
		for i := range r {
			r[i] -= mean
		}
	}
	return r, along
}

func mean(v []float32) float32 {
	var sum float32
	for _, x := range v {
		sum += x
	}
	return sum / float32(len(v))
}

// factors are the numbers stored with the bits of a code, in one word. The first one is added to estimates directly and so has
// full precision; the others are the upper 16 bits of a float.
type factors uint64

func factorsOf(along, scale, length float32) factors {
	return factors(math.Float32bits(along)) | factors(upper(scale))<<32 | factors(upper(length))<<48
}

// upper returns the upper 16 bits of a float that is not negative, rounded. NaN becomes 0.
func upper(x float32) uint32 {
	if x != x {
		return 0
	}
	return (math.Float32bits(x) + 1<<15) >> 16
}

// along returns the vector's coordinate along the centre.
func (f factors) along() float32 { return math.Float32frombits(uint32(f)) }

// scale times the inner product of the code and a residual estimates that of the two residuals.
func (f factors) scale() float32 { return math.Float32frombits(uint32(f>>32) << 16) }

// length returns the length of the residual.
func (f factors) length() float32 { return math.Float32frombits(uint32(f>>48) << 16) }

// encode sets row to the code of v, prepared. room is scratch for residuals; encode returns it, maybe grown.
func (b *bitCodes) encode(row []uint64, v, room []float32) []float32 {
	r, along := b.residual(room, v)
	square := vector.Dot(r, r)
	var code float32 // the inner product of the code and the residual
	if b.uneven {
		code = levels(row[:b.words], r)
	} else {
		signs(row[:b.words], r)
		code = sumOfSizes(r)
	}
	var scale float32
	if code > 0 {
		scale = square / code
	}
	row[b.words] = uint64(factorsOf(along, scale, float32(math.Sqrt(float64(square)))))
	return r
}

// levelRounds is how often a level is refined.
const levelRounds = 3

// sumOfSizes returns the inner product of v and its signs.
func sumOfSizes(v []float32) (sum float32) {
	for _, x := range v {
		sum += math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
	}
	return sum
}

// levels sets the bit of each component of v, whose mean is 0, that is above a level: midway between the mean of those above it
// and that of the others (Lloyd 1982). It returns the sum of those above, which is the inner product of the code and v.
func levels(words []uint64, v []float32) (above float32) {
	var level float32
	for range levelRounds {
		var n int
		above, n = 0, 0
		for _, x := range v {
			if x > level {
				above += x
				n++
			}
		}
		if n == 0 || n == len(v) {
			break
		}
		level = (above/float32(n) - above/float32(len(v)-n)) / 2
	}
	clear(words)
	above = 0
	for i, x := range v {
		if x > level {
			words[i/64] |= 1 << (i % 64)
			above += x
		}
	}
	return above
}

// decode appends to dst a vector whose code is about that of a row.
func (b *bitCodes) decode(dst []float32, row []uint64) []float32 {
	f := factors(row[b.words])
	step := f.length() / float32(math.Sqrt(float64(len(b.direction))))
	for i, c := range b.direction {
		x := step
		if set := row[i/64]>>(i%64)&1 == 1; set != b.uneven {
			x = -step
		}
		dst = append(dst, f.along()*c+x)
	}
	return dst
}

// aim makes v, prepared, the target of measurements.
func (b *bitCodes) aim(t *target, s *space, v []float32) {
	t.residual, t.along = b.residual(t.residual, v)
	t.coded = true
	step := s.aimSigned(t, t.residual)
	if b.metric == vector.L2 {
		step *= 2
	}
	if b.uneven {
		t.slope, t.base = -step, 0
		return
	}
	var sum int32
	for _, c := range t.buf[:len(v)] {
		sum += int32(c)
	}
	t.slope, t.base = 2*step, -step*float32(sum)
}

// measure stores an estimate of the raw distance of each node in out, up to a constant that is the same for all nodes.
func (b *bitCodes) measure(t *target, nodes []uint32, out []float32) {
	if !t.coded {
		b.measureBetween(t.signs, nodes, out)
		return
	}
	sums := t.sumsOf(len(nodes))
	t.signed.Rows(b.rows, nodes, sums)
	slope, base, along := t.slope, t.base, t.along
	out = out[:len(sums)]
	if b.metric != vector.L2 {
		for i, sum := range sums {
			f := b.factors(nodes[i])
			out[i] = f.scale()*(slope*float32(sum)+base) - f.along()*along
		}
		return
	}
	for i, sum := range sums {
		f := b.factors(nodes[i])
		farther, length := f.along()-along, f.length()
		out[i] = f.scale()*(slope*float32(sum)+base) + farther*farther + length*length
	}
}

// measureBetween measures nodes from the node that has the code from.
func (b *bitCodes) measureBetween(from []uint64, nodes []uint32, out []float32) {
	if b.uneven {
		b.correlate(from[:b.words], nodes, out)
	} else {
		b.compare(from[:b.words], nodes, out)
	}
	f := factors(from[b.words])
	along, length := f.along(), f.length()
	if b.metric == vector.DotProduct {
		for i, n := range nodes {
			g := b.factors(n)
			out[i] = -along*g.along() - length*g.length()*out[i]
		}
		return
	}
	for i, n := range nodes {
		g := b.factors(n)
		farther, longer := along-g.along(), length-g.length()
		out[i] = farther*farther + longer*longer + 2*length*g.length()*(1-out[i])
	}
}

func (b *bitCodes) factors(node uint32) factors { return factors(b.rows.At(int(node), b.words)) }

// compare stores an estimate of the cosine of the angle between the residual of the code from and that of each node in out.
func (b *bitCodes) compare(from []uint64, nodes []uint32, out []float32) {
	for i, n := range nodes {
		differ := 0
		row := b.rows.Row(int(n))[:len(from)]
		for j, w := range from {
			differ += bits.OnesCount64(w ^ row[j])
		}
		out[i] = b.likeness[differ]
	}
}

// correlate is compare around an uneven centre.
func (b *bitCodes) correlate(from []uint64, nodes []uint32, out []float32) {
	set := ones(from)
	share := float32(set) / float32(len(b.direction))
	for i, n := range nodes {
		both, in := 0, 0
		row := b.rows.Row(int(n))[:len(from)]
		for j, w := range from {
			both += bits.OnesCount64(w & row[j])
			in += bits.OnesCount64(row[j])
		}
		out[i] = sine((float32(both) - share*float32(in)) * b.likeness[set] * b.likeness[in])
	}
}

// sine approximates the sine of x right angles: the correlation of two normal variables if x is that of their signs
// (Sheppard 1899).
func sine(x float32) float32 { return x * (1.5706 - x*x*(0.6432-x*x*0.0727)) }

func ones(words []uint64) (n int) {
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	return n
}
