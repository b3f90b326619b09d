// Package hnsw finds the documents whose vectors are nearest to one, in a hierarchical navigable small world graph: Malkov and
// Yashunin, "Efficient and robust approximate nearest neighbor search using hierarchical navigable small world graphs", 2018.
// Algorithm numbers in comments are that paper's.
//
// A node is a vector; documents with equal vectors share it. Nodes are numbered in the order in which they are added. Those
// below a mark are linked. The rest are pending, and a search measures each of them until [Graph.Link] links them. A node whose
// last document is removed is a tombstone: searches walk through it but do not return it, and it is reused if its vector is
// added again.
//
// Vectors are copied, at length 1 if the metric is the cosine, unless the index is quantised: then the graph holds codes,
// walks by them, and orders what it found by the documents' own vectors. DESIGN.md describes the codes. For long vectors that
// are not quantised the graph also holds their signs, by which [Graph.SearchAmong] decides which of many it need not measure.
//
// Link starts goroutines for the length of a call and waits for them. There is one lock, held shared by Search and exclusively
// by Add, Remove and the short steps in which Link changes what searches read. No two of Add, Remove, Link, Build and
// AppendBinary may run at once; any number of searches may run concurrently with one of them.
package hnsw

import (
	"bytes"
	"sync"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"fenec/engine/index"
	"fenec/engine/vector"
)

// Options are the options of a graph. If M or EFConstruction is zero, the default is 16 or 200.
type Options struct {
	Dim            int // numbers in a vector, at least 1
	Metric         vector.Metric
	M              int // links that a new node makes at each level, at least 2; at level 0 a node has up to twice as many
	EFConstruction int // nodes in sight of the walk that finds the links of one
	Quant          vector.Quant
}

const (
	defaultM              = 16
	defaultEFConstruction = 200
)

// Own is a document's own vector, in dst's room or elsewhere, valid until the next call and not to be changed; nil if the
// document is gone or holds none. Searches call it concurrently from several goroutines.
type Own func(id int64, dst []float32) []float32

// Graph is an index of vectors.
type Graph struct {
	mu sync.RWMutex
	space
	own Own

	links    *vector.Matrix[uint32] // the links of each node at level 0: how many, and the nodes
	upper    *vector.Matrix[uint32] // the same for each level above
	upperRow []uint32               // the row in upper of each node for level 1
	ids      []int64                // the document of each node, 0 for none, negative if more holds others
	more     index.Hash             // the documents of a node except one
	places   index.IDs              // the node of each document
	hashes   []uint32               // the hash of each node's vector
	table    table                  // the nodes by their hashes

	linked int    // nodes below this one are linked
	top    int    // the highest level of a linked node, -1 if there is none
	entry  uint32 // a node at that level
	dead   int    // number of tombstones

	prepared  []float32 // of Add
	compared  []float32
	batch     batch
	recoding  recoding
	scratches sync.Pool
}

// New returns a graph without vectors. It calls own only if the graph is quantised.
func New(o Options, own Own) *Graph {
	if o.M == 0 {
		o.M = defaultM
	}
	if o.EFConstruction == 0 {
		o.EFConstruction = defaultEFConstruction
	}
	return &Graph{
		compared: make([]float32, 0, o.Dim),
		space:    newSpace(o),
		own:      own,
		links:    vector.NewMatrix[uint32](1 + 2*o.M),
		upper:    vector.NewMatrix[uint32](1 + o.M),
		top:      -1,
	}
}

// Len returns the number of documents.
func (g *Graph) Len() int { return g.places.Len() }

// Nodes returns the number of nodes: of distinct vectors, including tombstones.
func (g *Graph) Nodes() int { return len(g.ids) }

// Tombstones returns the number of nodes without a document. Only rebuilding the graph removes them.
func (g *Graph) Tombstones() int { return g.dead }

// Pending returns the number of nodes that are not linked yet.
func (g *Graph) Pending() int { return len(g.ids) - g.linked }

// Bytes returns the memory held, without pooled scratch of concurrent searches.
func (g *Graph) Bytes() int64 {
	return g.space.bytes() + g.links.Bytes() + g.upper.Bytes() + g.table.bytes() + g.places.Bytes() + g.more.Bytes() +
		int64(cap(g.upperRow))*4 + int64(cap(g.ids))*8 + int64(cap(g.hashes))*4 +
		int64(cap(g.prepared)+cap(g.compared))*4 + g.batch.bytes() + g.recoding.bytes()
}

// Add adds a document's vector, of Dim finite numbers; id is positive. It is found from now on and linked later. A previous
// vector of the document is removed.
func (g *Graph) Add(id int64, v []float32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if node, ok := g.places.Get(id); ok {
		g.detach(int(node), id)
	}
	g.prepared = g.prepare(g.prepared[:0], v)
	h := hash(g.prepared)
	node, ok := g.find(g.prepared, h)
	switch {
	case !ok:
		node = g.addNode(g.prepared, h)
	case g.ids[node] == 0 && node < g.recoding.done: // it was recoded while its vector was unknown
		g.room = g.recoding.to.encode(g.recoding.to.rows.Row(node), g.prepared, g.room)
	}
	g.attach(node, id)
}

// Remove removes a document. It does nothing if the graph does not have it.
func (g *Graph) Remove(id int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if node, ok := g.places.Delete(id); ok {
		g.detach(int(node), id)
	}
}

// hash returns the hash of a vector. It is part of the file format.
func hash(v []float32) uint32 {
	h := xxhash.Sum64(memory(v))
	return uint32(h ^ h>>32)
}

// memory returns v's bytes in memory, without a copy.
func memory(v []float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v)) }

// find returns the node of the vector v, prepared.
func (g *Graph) find(v []float32, h uint32) (node int, ok bool) {
	g.table.each(g.hashes, h, func(n uint32) bool {
		node, ok = int(n), g.holds(int(n), v)
		return !ok
	})
	return node, ok
}

// holds reports whether v, whose hash is the node's, is the node's vector. Of a quantised tombstone only the code is
// left to compare. That is enough, since no document is scored by it.
func (g *Graph) holds(node int, v []float32) bool {
	if g.Quant == 0 {
		return bytes.Equal(memory(g.rows.Row(node)), memory(v))
	}
	if g.ids[node] == 0 {
		return g.encodes(node, v)
	}
	of := g.own(g.first(node), g.compared[:0])
	if len(of) != len(v) {
		return false
	}
	g.compared = g.prepare(g.compared[:0], of)
	return bytes.Equal(memory(g.compared), memory(v))
}

// addNode adds a pending node for the vector v, prepared.
func (g *Graph) addNode(v []float32, h uint32) int {
	node := g.appendNode(h)
	if g.Quant != vector.Bit { // Bit codes are made when nodes are linked
		g.set(node, v)
	}
	g.table.add(g.hashes, uint32(node))
	return node
}

// appendNode adds a node without documents. Its vector, which has that hash, is set later.
func (g *Graph) appendNode(h uint32) int {
	node := len(g.ids)
	g.ids = append(g.ids, 0)
	g.dead++
	g.hashes = append(g.hashes, h)
	g.upperRow = append(g.upperRow, uint32(g.upper.Len()))
	g.upper.Grow(g.level(node))
	g.links.Grow(1)
	g.space.grow()
	return node
}

// attach makes id a document of the node.
func (g *Graph) attach(node int, id int64) {
	g.places.Set(id, uint64(node))
	switch has := g.ids[node]; {
	case has == 0:
		g.ids[node] = id
		g.dead--
	default:
		g.more.Add(uint64(node), id)
		g.ids[node] = -g.first(node)
	}
}

// detach removes id from the node's documents. A pending node without any will not be linked, so its vector is dropped.
func (g *Graph) detach(node int, id int64) {
	first, others := g.first(node), g.ids[node] < 0
	switch {
	case others && first != id:
		g.more.Remove(uint64(node), id)
	case others:
		g.more.Ascend(uint64(node), func(other int64) bool { first = other; return false })
		g.more.Remove(uint64(node), first)
	default:
		g.ids[node] = 0
		g.dead++
		if node >= g.linked {
			g.table.remove(g.hashes, uint32(node))
		}
		return
	}
	g.ids[node] = first
	if g.more.Count(uint64(node)) > 0 {
		g.ids[node] = -first
	}
}

// Document returns one of the documents of a node, 0 if it has none. Nodes are numbered from 0.
func (g *Graph) Document(node int) int64 { return g.first(node) }

// first returns one of the node's documents, 0 if it has none.
func (g *Graph) first(node int) int64 { return max(g.ids[node], -g.ids[node]) }

// eachID calls fn with the node's documents until fn returns false.
func (g *Graph) eachID(node uint32, fn func(id int64) bool) {
	switch id := g.ids[node]; {
	case id > 0:
		fn(id)
	case id < 0 && fn(-id):
		g.more.Ascend(uint64(node), fn)
	}
}

// admits reports whether the node has a document that accept accepts. A nil accept accepts all.
func (g *Graph) admits(node uint32, accept func(id int64) bool) bool {
	id := g.ids[node]
	switch {
	case id == 0:
		return false
	case accept == nil:
		return true
	case id > 0:
		return accept(id)
	}
	found := accept(-id)
	if !found {
		g.more.Ascend(uint64(node), func(id int64) bool { found = accept(id); return !found })
	}
	return found
}

// maxLevel is above the level of any node in practice.
const maxLevel = 24

// level returns the highest level of a node: at least l for one node of M to the power of l, chosen by its number (algorithm 1,
// line 4, with mL = 1/ln M).
func (g *Graph) level(node int) int {
	x := uint64(node) + 0x9e3779b97f4a7c15 // splitmix64: Steele, Lea and Flood 2014
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	level := 0
	for bound := ^uint64(0) / uint64(g.M); x < bound && level < maxLevel; bound /= uint64(g.M) {
		level++
	}
	return level
}

// list returns a node's row of links at a level: how many, and the nodes.
func (g *Graph) list(node uint32, level int) []uint32 {
	if level == 0 {
		return g.links.Row(int(node))
	}
	return g.upper.Row(int(g.upperRow[node]) + level - 1)
}

// neighbours returns a node's links at a level.
func (g *Graph) neighbours(node uint32, level int) []uint32 {
	l := g.list(node, level)
	return l[1 : 1+l[0]]
}

// width returns the number of links that a node may have at a level.
func (g *Graph) width(level int) int {
	if level == 0 {
		return 2 * g.M
	}
	return g.M
}
