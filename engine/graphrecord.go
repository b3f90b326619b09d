package engine

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/vector"
	"fenec/engine/wal"
)

// A graph of vectors is kept in the file as its links, in derived records of graphPart bytes at most each, so that whoever
// writes beside them waits for no more than one. A part says whose graph it is of, which part it is and of how many, and
// counts as no change; a graph is there once its last part is, and until then the one before it is the latest.
//
// Nothing depends on these records. One that cannot be read, that names what there is not or whose links are not those of
// a graph is passed over, and the graph is made from the documents.

// graphPart is the most bytes of a graph that one record holds.
const graphPart = 1 << 20

// graphRecord is the first byte of the payload: the one thing kept so far.
const graphRecord = 1

// graphName is what all parts of one graph say.
type graphName struct {
	table   uint64
	slot    int
	dim     int
	options doc.HNSWOptions // EFSearch, which a search has and not a graph, is 0
	seq     uint64          // the change the graph is as of
	parts   int
}

// graphPartHead is the most bytes a part has before those of its graph.
const graphPartHead = 1 + 8 + 2 + 7*binary.MaxVarintLen64

// appendGraphPart appends the payload of a part.
func appendGraphPart(dst []byte, g graphName, part int, b []byte) []byte {
	dst = append(dst, graphRecord)
	dst = binary.LittleEndian.AppendUint64(dst, g.seq)
	dst = append(dst, byte(g.options.Metric), byte(g.options.Quant))
	for _, n := range [...]uint64{
		g.table, uint64(g.slot), uint64(g.dim), uint64(g.options.M), uint64(g.options.EFConstruction), uint64(g.parts), uint64(part),
	} {
		dst = binary.AppendUvarint(dst, n)
	}
	return append(dst, b...)
}

// decodeGraphPart reads the payload of a part; b is what it holds of its graph.
func decodeGraphPart(payload []byte) (g graphName, part int, b []byte, err error) {
	const fixed = 1 + 8 + 2
	if len(payload) < fixed || payload[0] != graphRecord {
		return g, 0, nil, fail.New(fail.Damaged, "a derived record is none that this version knows")
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
	g.table = number(maxTables)
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

// graphName is what the graph of x is called in the file, but for when it is of and its parts.
func (x *derived) graphName() graphName {
	g := graphName{table: x.table.number, slot: x.slot, dim: x.vector.Dim, options: x.index.HNSW}
	g.options.EFSearch = 0
	return g
}

// keptGraph is a graph as the file has it, not looked into yet.
type keptGraph struct {
	name   graphName
	parts  [][]byte
	copied bool // the parts are no more those of the file's segment
}

// splitGraph makes parts of the bytes of a graph.
func splitGraph(name graphName, b []byte) *keptGraph {
	g := &keptGraph{name: name, parts: slices.Collect(slices.Chunk(b, graphPart))}
	g.name.parts = len(g.parts)
	return g
}

// records calls fn with the record of each part, which is the callee's.
func (g *keptGraph) records(fn func(record []byte) error) error {
	for i, b := range g.parts {
		record := make([]byte, wal.HeaderSize, wal.HeaderSize+graphPartHead+len(b))
		if err := fn(appendGraphPart(record, g.name, i, b)); err != nil {
			return err
		}
	}
	return nil
}

// recordBytes is about what the graph takes in the file.
func (g *keptGraph) recordBytes() (n int64) {
	for _, b := range g.parts {
		n += int64(wal.HeaderSize + graphPartHead/2 + len(b))
	}
	return n
}

// bytes is the graph in one piece.
func (g *keptGraph) bytes() []byte { return slices.Concat(g.parts...) }

// copy is g with parts of its own.
func (g *keptGraph) copy() *keptGraph {
	c := splitGraph(g.name, g.bytes())
	c.copied = true
	return c
}

// keptGraphs are what the file holds for one index: the latest graph that is whole, until the index is built, and while the
// file is read the one whose parts are coming in.
type keptGraphs struct {
	whole  atomic.Pointer[keptGraph]
	coming *keptGraph
	filed  atomic.Int64 // what the latest one takes in the file, built or not
}

// take is the next part that the file has.
func (k *keptGraphs) take(name graphName, part int, b []byte) {
	switch {
	case part == 0:
		k.coming = &keptGraph{name: name}
	case k.coming == nil || k.coming.name != name || part != len(k.coming.parts):
		k.coming = nil // the rest of one that was never written whole
		return
	}
	k.coming.parts = append(k.coming.parts, b)
	if len(k.coming.parts) == name.parts {
		k.whole.Store(k.coming)
		k.filed.Store(k.coming.recordBytes())
		k.coming = nil
	}
}

// bytes is what they take beside the file's segment.
func (k *keptGraphs) bytes() (n int64) {
	if kept := k.whole.Load(); kept != nil && kept.copied {
		for _, part := range kept.parts {
			n += int64(len(part))
		}
	}
	return n
}

// keep is a derived record of the file: it is remembered by the index it is of, should there be that. A graph of changes
// that are not in the file yet is none of this file.
func (db *DB) keep(payload []byte) error {
	name, part, b, err := decodeGraphPart(payload)
	if err != nil {
		return err
	}
	t := db.numbers[name.table]
	if t == nil || name.seq > db.seq {
		return nil
	}
	for _, x := range t.derived {
		own := x.graphName()
		own.seq, own.parts = name.seq, name.parts
		if x.index.Kind == doc.IndexHNSW && own == name {
			x.kept.take(name, part, b)
		}
	}
	return nil
}
