package derived

// Moment is when a graph may be saved. A graph is written whole each time. So it is saved once a share of it has changed, and
// the total written over the life of a file is a small multiple of its graphs, and no more than that share is unlinked
// after an open.
type Moment int

const (
	// Linking is while vectors are unlinked: a growing graph is saved each time it has doubled, so that a crash costs at most
	// half of the work.
	Linking Moment = iota
	// Linked is once all vectors are linked.
	Linked
	// Closing is when the database closes.
	Closing
)

// due is how much of a graph must have changed for it to be saved.
type due struct {
	share   int64 // one vector in so many
	atLeast int64 // vectors
}

// leastSaved is how many vectors must have been linked for a save while queries run: fewer are soon linked again.
const leastSaved = 1024

var dueAt = [...]due{Linking: {2, leastSaved}, Linked: {8, leastSaved}, Closing: {8, 1}}

// due reports whether the graph has changed enough since the last save to be saved.
func (s *graph) due(m Moment) bool {
	gained := s.gained()
	return gained >= dueAt[m].atLeast && gained*dueAt[m].share >= int64(s.Nodes())
}

// gained counts the vectors that were linked or removed since the graph was saved.
func (s *graph) gained() int64 { return s.moved.Load() - int64(s.waiting()) - s.saved.Load() }

// Graph is a graph of vectors to be written to a file.
type Graph struct {
	kept  *keptGraph
	index *Index

	built *graph // nil if no statement has needed it
	mark  int64  // the number of built's changes that the graph includes

	from *keptGraph // if it is not built: the graph in the file, of which this is a copy
}

// Graphs returns all graphs, to be written to another file. The latest change is seq. It needs the lock, shared or not.
func (d *Database) Graphs(seq uint64) (out []Graph) {
	for _, c := range d.collections {
		for _, x := range c.indexes {
			if s, ok := x.ifBuilt().(*graph); ok {
				out = append(out, x.encode(s, seq))
			} else if kept := x.kept.whole.Load(); kept != nil {
				out = append(out, Graph{kept: kept.copy(), index: x, from: kept})
			}
		}
	}
	return out
}

// Due returns the graphs that are due to be saved. The latest change is seq. It needs the lock, shared or not.
func (d *Database) Due(m Moment, seq uint64) (out []Graph) {
	d.graphs(func(x *Index, s *graph) bool {
		if s.due(m) {
			out = append(out, x.encode(s, seq))
		}
		return true
	})
	return out
}

// encode returns the graph as of now.
func (x *Index) encode(s *graph, seq uint64) Graph {
	name := x.graphName()
	name.seq = seq
	s.linking.Lock()
	defer s.linking.Unlock()
	return Graph{kept: splitGraph(name, s.AppendBinary(nil)), index: x, built: s, mark: s.moved.Load() - int64(s.Pending())}
}

// Records calls fn with each record of the graph, in the order in which they have to be in the file: Options.RecordHead bytes
// of room, and the payload. fn owns the record. The graph is not in the file before the last one is.
func (g *Graph) Records(fn func(record []byte) error) error {
	head := g.index.of.database.opts.RecordHead
	for i, b := range g.kept.parts {
		record := make([]byte, head, head+graphPartHead+len(b))
		if err := fn(appendGraphPart(record, g.kept.name, i, b)); err != nil {
			return err
		}
	}
	return nil
}

// Saved records that the graph is in the file. It needs the exclusive lock.
func (g *Graph) Saved() {
	g.index.kept.filed.Store(g.kept.recordBytes(g.index.of.database.opts.RecordHead))
	switch {
	case g.built != nil:
		g.built.saved.Store(g.mark)
	case g.from != nil: // does nothing if the index was built meanwhile
		g.index.kept.whole.CompareAndSwap(g.from, g.kept)
	}
}

// Needed reports whether an index that is not built yet has a graph in the file. It needs the lock, shared or not.
func (d *Database) Needed() bool {
	for _, c := range d.collections {
		for _, x := range c.indexes {
			if x.kept.whole.Load() != nil {
				return true
			}
		}
	}
	return false
}

// renewShare sets the share of a graph's vectors, one in so many, without a document past which the graph is to be rebuilt: each
// of them takes memory, and time of the searches that pass it.
const renewShare = 8

// ToRebuild returns the indexes whose graphs have many vectors without a document. It needs the lock, shared or not.
func (d *Database) ToRebuild() (out []*Index) {
	d.graphs(func(x *Index, s *graph) bool {
		if s.Tombstones()*renewShare > s.Nodes() {
			out = append(out, x)
		}
		return true
	})
	return out
}
