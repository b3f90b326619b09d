package derived

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/vector"
)

// The links of a graph of vectors are kept in the file, in derived records of at most graphPart bytes each, so that a
// concurrent writer waits for no more than one. A part names its graph, its number and the number of parts, and does not
// count as a change. A graph is complete with its last part; until then the one before it is the latest.
//
// Nothing depends on these records. One that cannot be read, that names an unknown index or whose links are invalid is
// skipped, and the graph is built from the documents.

// graphPart is the most bytes of a graph that one record holds.
const graphPart = 1 << 20

// graphRecord is the first byte of the payload. It is the only kind of derived record so far.
const graphRecord = 1

// maxCollection is the largest number of a collection.
const maxCollection = 1 << 48

// graphName is the part of the head that all parts of one graph share.
type graphName struct {
	collection uint64
	slot       int
	dim        int
	options    doc.HNSWOptions // EFSearch, an option of searches and not of the graph, is 0
	seq        uint64          // the change the graph is as of
	parts      int
}

// graphPartHead is the largest head of a part, in bytes.
const graphPartHead = 1 + 8 + 2 + 7*binary.MaxVarintLen64

// appendGraphPart appends the payload of a part.
func appendGraphPart(dst []byte, g graphName, part int, b []byte) []byte {
	dst = append(dst, graphRecord)
	dst = binary.LittleEndian.AppendUint64(dst, g.seq)
	dst = append(dst, byte(g.options.Metric), byte(g.options.Quant))
	for _, n := range [...]uint64{
		g.collection, uint64(g.slot), uint64(g.dim), uint64(g.options.M), uint64(g.options.EFConstruction), uint64(g.parts), uint64(part),
	} {
		dst = binary.AppendUvarint(dst, n)
	}
	return append(dst, b...)
}

// decodeGraphPart decodes the payload of a part; b is its share of the graph's bytes.
func decodeGraphPart(payload []byte) (g graphName, part int, b []byte, err error) {
	const fixed = 1 + 8 + 2
	if len(payload) < fixed || payload[0] != graphRecord {
		return g, 0, nil, fail.New(fail.Damaged, "a derived record is of a kind that this version does not know")
	}
	g.seq = binary.LittleEndian.Uint64(payload[1:])
	g.options.Metric, g.options.Quant = vector.Metric(payload[9]), vector.Quant(payload[10])
	b = payload[fixed:]
	number := func(limit uint64) uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > limit {
			err = fail.New(fail.Damaged, "a part of a vector index's graph has a broken head")
			b = nil
			return 0
		}
		b = b[size:]
		return n
	}
	g.collection = number(maxCollection)
	g.slot = int(number(doc.MaxSlots))
	g.dim = int(number(doc.MaxDim))
	g.options.M = int(number(doc.MaxM))
	g.options.EFConstruction = int(number(doc.MaxEF))
	g.parts = int(number(1 << 32))
	part = int(number(1 << 32))
	if err == nil && part >= g.parts {
		err = fail.New(fail.Damaged, "a part of a vector index's graph is number %d of %d", part, g.parts)
	}
	return g, part, b, err
}

// graphName returns the graphName of the graph of x, without its change and number of parts.
func (x *Index) graphName() graphName {
	g := graphName{collection: x.of.number, slot: x.slot, dim: x.vector.Dim, options: x.declared.HNSW}
	g.options.EFSearch = 0
	return g
}

// keptGraph is the encoded graph in the file, not decoded yet.
type keptGraph struct {
	name   graphName
	parts  [][]byte
	copied bool // the parts are copies and no longer bytes of the file's segment
}

// splitGraph splits the bytes of a graph into parts.
func splitGraph(name graphName, b []byte) *keptGraph {
	g := &keptGraph{name: name, parts: slices.Collect(slices.Chunk(b, graphPart))}
	g.name.parts = len(g.parts)
	return g
}

// recordBytes returns about how many bytes the graph takes in the file, whose records have a head of so many bytes.
func (g *keptGraph) recordBytes(head int) (n int64) {
	for _, b := range g.parts {
		n += int64(head + graphPartHead/2 + len(b))
	}
	return n
}

// bytes returns the graph in one piece.
func (g *keptGraph) bytes() []byte { return slices.Concat(g.parts...) }

// copy returns g with copies of its parts.
func (g *keptGraph) copy() *keptGraph {
	c := splitGraph(g.name, g.bytes())
	c.copied = true
	return c
}

// keptGraphs are what the file holds for one index: the latest complete graph, until the index is built, and, during
// replay, the one whose parts are being read.
type keptGraphs struct {
	whole  atomic.Pointer[keptGraph]
	coming *keptGraph
	filed  atomic.Int64 // bytes of the latest one in the file, whether the index is built or not
}

// take adds the next part in the file.
func (k *keptGraphs) take(name graphName, part int, b []byte, head int) {
	switch {
	case part == 0:
		k.coming = &keptGraph{name: name}
	case k.coming == nil || k.coming.name != name || part != len(k.coming.parts):
		k.coming = nil // the parts are not consecutive: that graph was never written whole
		return
	}
	k.coming.parts = append(k.coming.parts, b)
	if len(k.coming.parts) == name.parts {
		k.whole.Store(k.coming)
		k.filed.Store(k.coming.recordBytes(head))
		k.coming = nil
	}
}

// bytes returns how much memory they take in addition to the file's segment.
func (k *keptGraphs) bytes() (n int64) {
	if kept := k.whole.Load(); kept != nil && kept.copied {
		for _, part := range kept.parts {
			n += int64(len(part))
		}
	}
	return n
}

// Restore adds the payload of a record of the file to its index, if that exists. It skips a graph as of a change after seq, the
// latest in the file so far: such a graph is not of this file. It fails with fail.Damaged if the payload cannot be read. It
// needs the exclusive lock, and keeps the payload.
func (d *Database) Restore(payload []byte, seq uint64) error {
	name, part, b, err := decodeGraphPart(payload)
	if err != nil {
		return err
	}
	c := d.collections[name.collection]
	if c == nil || name.seq > seq {
		return nil
	}
	for _, x := range c.indexes {
		own := x.graphName()
		own.seq, own.parts = name.seq, name.parts
		if x.declared.Kind == doc.IndexHNSW && own == name {
			x.kept.take(name, part, b, d.opts.RecordHead)
		}
	}
	return nil
}
