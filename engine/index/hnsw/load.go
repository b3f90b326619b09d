package hnsw

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"fenec/engine/fail"
	"fenec/engine/index"
	"fenec/engine/vector"
)

// stale is the share of a loaded graph's nodes, one in so many, that may have lost their documents since it was saved. Past
// that, rebuilding is better.
const stale = 4

// Load returns a graph from what [Graph.AppendBinary] saved and the current documents: each passes them, about n, with their
// vectors to add; own returns the same vectors. A document that is new or whose vector has changed is pending. A node without
// documents is a tombstone. As its vector is unknown, walks use the mean of its neighbours.
//
// Every error means that the graph has to be rebuilt: it is damaged, has other options, or too much of it is gone.
func Load(b []byte, o Options, own Own, n int, each func(add func(id int64, v []float32))) (*Graph, error) {
	g := New(o, own)
	d := decoder{b: b}
	nodes, entry, err := g.loadHeader(&d)
	if err != nil {
		return nil, err
	}
	if g.Quant == vector.Bit {
		if err := g.loadCentre(&d); err != nil {
			return nil, err
		}
	}
	g.Reserve(max(n, nodes))
	l := loader{Graph: g, decoder: &d}
	for node := range nodes {
		if err := l.node(node, nodes); err != nil {
			return nil, err
		}
	}
	if len(d.b) > 0 {
		return nil, damaged("%d bytes after the last node", len(d.b))
	}
	g.linked = nodes
	if err := l.check(entry); err != nil {
		return nil, err
	}
	each(l.document)
	if lost := g.dead - l.holes; lost*stale > nodes {
		return nil, fail.New(fail.Damaged, "of the %d nodes of the saved graph %d have no document any more", nodes, lost)
	}
	l.fillTombstones()
	for _, id := range l.others {
		if v := own(id, g.compared[:0]); len(v) == g.Dim {
			g.Add(id, v)
		}
	}
	return g, nil
}

func damaged(format string, args ...any) error {
	return fail.New(fail.Damaged, "the saved graph is damaged: "+format, args...)
}

// loadHeader reads and checks the header and the checksum.
func (g *Graph) loadHeader(d *decoder) (nodes int, entry uint32, err error) {
	b := d.b
	if len(b) < len(magic)+1+sumSize || string(b[:len(magic)]) != magic {
		return 0, 0, damaged("it does not begin with %q", magic)
	}
	if want, got := g.version(), b[len(magic)]; got != want {
		return 0, 0, fail.New(fail.Damaged, "the saved graph is of version %d, want %d", got, want)
	}
	end := len(b) - sumSize
	if want, got := binary.LittleEndian.Uint64(b[end:]), xxhash.Sum64(b[:end]); got != want {
		return 0, 0, damaged("its checksum is %x, want %x", got, want)
	}
	d.b = b[len(magic)+1 : end]
	want, names := g.header(), [...]string{"dimension", "metric", "m", "ef_construction", "quantisation", "node count", "entry"}
	var got [len(want)]uint64
	for i := range got {
		if got[i], err = d.uvarint(); err != nil {
			return 0, 0, err
		}
		if i < 5 && got[i] != want[i] {
			return 0, 0, fail.New(fail.Damaged, "the saved graph's %s is %d, want %d", names[i], got[i], want[i])
		}
	}
	const leastNode = 5 // the bytes of a node without links: its hash and a mark
	if got[5] > uint64(len(d.b)/leastNode) {
		return 0, 0, damaged("%d nodes in %d bytes", got[5], len(d.b))
	}
	if got[6] >= max(got[5], 1) {
		return 0, 0, damaged("entry %d of %d nodes", got[6], got[5])
	}
	return int(got[5]), uint32(got[6]), nil
}

// loadCentre reads the centre of a graph by bits.
func (g *Graph) loadCentre(d *decoder) error {
	taken, err := d.uvarint()
	if err != nil {
		return err
	}
	if taken == 0 {
		return nil
	}
	if taken > math.MaxUint32 {
		return damaged("its centre is of %d nodes", taken)
	}
	if len(d.b) < 1+4*g.Dim || d.b[0] > 1 {
		return damaged("the centre is cut short, with %d bytes left, or of no kind", len(d.b))
	}
	c := centre{taken: int(taken), direction: make([]float32, g.Dim), uneven: d.b[0] == 1}
	d.b = d.b[1:]
	for i := range c.direction {
		x := math.Float32frombits(binary.LittleEndian.Uint32(d.b[4*i:]))
		if x-x != 0 {
			return damaged("number %d of the centre is not finite", i)
		}
		c.direction[i] = x
	}
	d.b = d.b[4*g.Dim:]
	g.bit.setCentre(c)
	return nil
}

// loader reads the nodes.
type loader struct {
	*Graph
	*decoder
	saved    index.IDs // the node of each saved document
	previous int64     // the last saved document read
	linkless []bool    // nodes without links
	holes    int       // how many those are
	others   []int64   // documents that belong to no saved node
}

// node reads a node of n.
func (l *loader) node(node, n int) error {
	if len(l.b) < 4 {
		return damaged("node %d is cut short", node)
	}
	h := binary.LittleEndian.Uint32(l.b)
	l.b = l.b[4:]
	count, err := l.uvarint()
	if err != nil {
		return err
	}
	l.appendNode(h)
	l.linkless = append(l.linkless, count == 1)
	if count == 1 {
		l.holes++
		return nil
	}
	if count%2 != 0 || count/2 > uint64(len(l.b)) {
		return damaged("node %d has %d documents in %d bytes", node, count/2, len(l.b))
	}
	for range count / 2 {
		less, err := l.varint()
		if err != nil {
			return err
		}
		id := l.previous + less
		l.previous = id
		if _, ok := l.saved.Set(id, uint64(node)); ok || id <= 0 {
			return damaged("document %d of node %d is no document or is named twice", id, node)
		}
	}
	for level := l.level(node); level >= 0; level-- {
		if err := l.list(uint32(node), level, n); err != nil {
			return err
		}
	}
	return nil
}

// document attaches a document to its saved node if its vector is unchanged. The first document of a node gives the node its
// vector.
func (l *loader) document(id int64, v []float32) {
	node, ok := l.saved.Get(id)
	l.prepared = l.prepare(l.prepared[:0], v)
	switch {
	case !ok || hash(l.prepared) != l.hashes[node]:
		l.others = append(l.others, id)
		return
	case l.ids[node] == 0:
		l.set(int(node), l.prepared)
		l.table.add(l.hashes, uint32(node))
	case !l.holds(int(node), l.prepared):
		l.others = append(l.others, id)
		return
	}
	l.attach(int(node), id)
}

// list reads a node's links at a level. Whether the linked nodes have that level is checked after all nodes are read.
func (l *loader) list(node uint32, level, n int) error {
	count, err := l.uvarint()
	if err != nil {
		return err
	}
	if count > uint64(l.width(level)) {
		return damaged("node %d has %d links at level %d, want at most %d", node, count, level, l.width(level))
	}
	list := l.Graph.list(node, level)
	list[0] = uint32(count)
	for i := range count {
		to, err := l.uvarint()
		if err != nil {
			return err
		}
		if to >= uint64(n) || to == uint64(node) || l.level(int(to)) < level {
			return damaged("node %d is linked to %d at level %d", node, to, level)
		}
		if slices.Contains(list[1:1+i], uint32(to)) {
			return damaged("node %d is linked to %d twice at level %d", node, to, level)
		}
		list[1+i] = uint32(to)
	}
	return nil
}

// check sets the entry and checks that no linked node is above it and that the links are valid.
func (l *loader) check(entry uint32) error {
	for node := range l.linked {
		if l.linkless[node] {
			continue
		}
		l.top = max(l.top, l.level(node))
		for _, to := range l.neighbours(uint32(node), 0) {
			if l.linkless[to] {
				return damaged("node %d is linked to %d, which has no links", node, to)
			}
		}
	}
	if l.top >= 0 && (l.linkless[entry] || l.level(int(entry)) != l.top) {
		return damaged("entry %d is not at the highest level %d", entry, l.top)
	}
	l.entry = entry
	return nil
}

// fillTombstones gives each linked node without a document the mean of its neighbours that have one.
func (l *loader) fillTombstones() {
	sum := make([]float32, l.Dim)
	for node := range l.linked {
		if l.ids[node] != 0 || l.linkless[node] {
			continue
		}
		clear(sum)
		n := float32(0)
		for _, to := range l.neighbours(uint32(node), 0) {
			if l.ids[to] == 0 {
				continue
			}
			if v := l.own(l.first(int(to)), l.compared[:0]); len(v) == l.Dim {
				n++
				l.prepared = l.prepare(l.prepared[:0], v)
				for i, x := range l.prepared {
					sum[i] += (x - sum[i]) / n
				}
			}
		}
		l.prepared = l.prepare(l.prepared[:0], sum)
		l.set(node, l.prepared)
	}
}

// decoder reads numbers off the front of b.
type decoder struct{ b []byte }

func (d *decoder) uvarint() (uint64, error) {
	x, n := binary.Uvarint(d.b)
	if n <= 0 {
		return 0, damaged("a number is cut short, with %d bytes left", len(d.b))
	}
	d.b = d.b[n:]
	return x, nil
}

func (d *decoder) varint() (int64, error) {
	x, n := binary.Varint(d.b)
	if n <= 0 {
		return 0, damaged("a number is cut short, with %d bytes left", len(d.b))
	}
	d.b = d.b[n:]
	return x, nil
}
