package hnsw

import (
	"encoding/binary"
	"math"

	"github.com/cespare/xxhash/v2"

	"fenec/engine/vector"
)

// The saved form is
//
//	magic, version
//	dim, metric, M, ef construction, quant, nodes, entry   uvarint each
//	if quant is Bit: nodes when the centre was taken       uvarint
//	and unless that is 0 whether it is uneven              1 byte
//	                     its direction                     4 bytes a number
//	for each linked node:
//	  hash of its vector                                   4 bytes
//	  documents*2, or 1 for one without links              uvarint
//	  the documents' ids, each less the one before         varint each
//	  for each level from the highest down: how many links, and the nodes   uvarint each
//	xxhash64 of all that                                   8 bytes
//
// Fixed widths are little-endian. Levels follow from the nodes' numbers. The version changes with any of this, with how a level
// is chosen and with how a vector is hashed.
const (
	magic   = "hnsw"
	sumSize = 8

	plainVersion = 1
	// bitVersion is the version of graphs with Bit codes. Those of version 1 had no centre.
	bitVersion = 2
)

// version returns the version of the saved form.
func (g *Graph) version() byte {
	if g.Quant == vector.Bit {
		return bitVersion
	}
	return plainVersion
}

// AppendBinary appends the links and the ids of the documents to dst, but no vectors. Pending nodes are left out.
func (g *Graph) AppendBinary(dst []byte) []byte {
	at := len(dst)
	dst = append(append(dst, magic...), g.version())
	for _, n := range g.header() {
		dst = binary.AppendUvarint(dst, n)
	}
	if g.Quant == vector.Bit {
		dst = g.appendCentre(dst)
	}
	var previous int64
	for node := range g.linked {
		dst = binary.LittleEndian.AppendUint32(dst, g.hashes[node])
		if g.unlinked(node) {
			dst = append(dst, 1)
			continue
		}
		count := uint64(0)
		g.eachID(uint32(node), func(int64) bool { count++; return true })
		dst = binary.AppendUvarint(dst, 2*count)
		g.eachID(uint32(node), func(id int64) bool {
			dst = binary.AppendVarint(dst, id-previous)
			previous = id
			return true
		})
		for l := g.level(node); l >= 0; l-- {
			links := g.neighbours(uint32(node), l)
			dst = binary.AppendUvarint(dst, uint64(len(links)))
			for _, n := range links {
				dst = binary.AppendUvarint(dst, uint64(n))
			}
		}
	}
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[at:]))
}

// appendCentre appends the centre of a graph with Bit codes, so that a loaded graph has the same codes.
func (g *Graph) appendCentre(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(g.bit.taken))
	if g.bit.taken == 0 {
		return dst
	}
	uneven := byte(0)
	if g.bit.uneven {
		uneven = 1
	}
	dst = append(dst, uneven)
	for _, x := range g.bit.direction {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
	}
	return dst
}

// header returns the numbers that the saved form begins with.
func (g *Graph) header() [7]uint64 {
	return [...]uint64{
		uint64(g.Dim), uint64(g.Metric), uint64(g.M), uint64(g.EFConstruction), uint64(g.Quant),
		uint64(g.linked), uint64(g.entry),
	}
}

// unlinked reports whether a node below the mark has no links, because it was a tombstone when its batch was linked.
func (g *Graph) unlinked(node int) bool {
	return g.ids[node] == 0 && len(g.neighbours(uint32(node), 0)) == 0 && (g.top < 0 || uint32(node) != g.entry)
}
