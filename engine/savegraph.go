package engine

import "fenec/engine/wal"

// grown is the share of a graph, one in so many, that must have changed for it to be saved. A graph is written whole each
// time. With a share, the total written over the life of a file is a small multiple of its graphs, and no more than that
// share is unlinked after an open.
type grown int

const (
	// grownBusy applies while vectors are unlinked: a growing graph is saved each time it has doubled, so that a crash
	// costs at most half of the work.
	grownBusy grown = 2
	// grownIdle applies once all vectors are linked.
	grownIdle grown = 8
	// savedBeside is how many vectors must have been linked for a save while queries run: fewer are soon linked again.
	savedBeside = 1024
)

// due reports whether the graph has changed since the last save by a share of itself and by at least atLeast vectors.
func (s *graphIndex) due(share grown, atLeast int64) bool {
	gained := s.gained()
	return gained >= max(atLeast, 1) && gained*int64(share) >= int64(s.Nodes())
}

// gained counts the vectors that were linked or removed since the graph was saved.
func (s *graphIndex) gained() int64 { return s.moved.Load() - int64(s.waiting()) - s.saved.Load() }

// savedGraph is a graph to be written.
type savedGraph struct {
	*keptGraph
	index *derived

	built *graphIndex // nil if no statement has needed it
	mark  int64       // the number of built's changes that the graph includes

	from *keptGraph // if it is not built: the graph in the file, of which this is a copy
}

// done records that the graph is in the file.
func (g *savedGraph) done() {
	g.index.kept.filed.Store(g.recordBytes())
	switch {
	case g.built != nil:
		g.built.saved.Store(g.mark)
	case g.from != nil: // does nothing if the index was built meanwhile
		g.index.kept.whole.CompareAndSwap(g.from, g.keptGraph)
	}
}

// graphsLocked returns all graphs, to be written to another file. It needs the lock, shared or not.
func (db *DB) graphsLocked() (out []savedGraph) {
	for _, t := range db.numbers {
		for _, x := range t.derived {
			if s, ok := x.ifBuilt().(*graphIndex); ok {
				out = append(out, x.snapshotGraph(s))
			} else if kept := x.kept.whole.Load(); kept != nil {
				out = append(out, savedGraph{keptGraph: kept.copy(), index: x, from: kept})
			}
		}
	}
	return out
}

// grownLocked returns snapshots of the graphs that are due to be saved. It needs the lock, shared or not.
func (db *DB) grownLocked(share grown, atLeast int64) (out []savedGraph) {
	for _, t := range db.numbers {
		for _, x := range t.derived {
			if s, ok := x.ifBuilt().(*graphIndex); ok && s.due(share, atLeast) {
				out = append(out, x.snapshotGraph(s))
			}
		}
	}
	return out
}

func (x *derived) snapshotGraph(s *graphIndex) savedGraph {
	name := x.graphName()
	name.seq = x.table.db.seq
	s.linking.Lock()
	defer s.linking.Unlock()
	return savedGraph{
		keptGraph: splitGraph(name, s.AppendBinary(nil)), index: x, built: s, mark: s.moved.Load() - int64(s.Pending()),
	}
}

// saveGrown writes the graphs that have changed much to the file, while queries and writers go on.
func (db *DB) saveGrown(share grown) {
	db.mu.RLock()
	var graphs []savedGraph
	if db.storableLocked() == nil {
		graphs = db.grownLocked(share, savedBeside)
	}
	db.mu.RUnlock()
	for i := range graphs {
		if err := db.saveGraph(&graphs[i]); err != nil {
			return // the log reports a storage failure; if writes are refused for now, Close may save the graph
		}
	}
}

// saveGraph writes a graph to the file. Until it is complete, the graph before it is the latest.
func (db *DB) saveGraph(g *savedGraph) error {
	staged := int64(0)
	err := g.records(func(record []byte) error {
		err := db.writeDerived(record)
		if err == nil {
			staged += int64(len(record))
		}
		return err
	})
	db.mu.Lock()
	defer db.mu.Unlock()
	db.space.coming -= staged
	if err == nil {
		g.done()
		db.watchDead()
	}
	return err
}

// writeDerived appends a derived record and returns once it is as durable as a write.
func (db *DB) writeDerived(record []byte) error {
	ticket, err := db.stageDerived(record)
	if err != nil {
		return err
	}
	return db.log.Commit(ticket)
}

func (db *DB) stageDerived(record []byte) (wal.Ticket, error) {
	db.writer.Lock() // so that no compaction leaves it out
	defer db.writer.Unlock()
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.storableLocked(); err != nil {
		return 0, err
	}
	db.last = db.log.Stage(wal.Derived, record)
	db.space.file += int64(len(record))
	db.space.coming += int64(len(record))
	return db.last, nil
}

// saveLast writes the graphs that have changed since their last save to the file of a database that is closing, after
// everything else is on disk. If that fails, only time is lost: the failure is logged, and Close does not return it.
func (db *DB) saveLast() (failed bool) {
	if db.opts.ReadOnly || db.log.Err() != nil {
		return false
	}
	db.mu.RLock()
	graphs := db.grownLocked(grownIdle, 1)
	db.mu.RUnlock()
	if len(graphs) == 0 || db.log.Sync() != nil { // Close returns the error of the sync
		return false
	}
	for _, g := range graphs {
		_ = g.records(func(record []byte) error {
			db.log.Stage(wal.Derived, record)
			return nil
		})
	}
	err := db.log.Sync()
	if err != nil {
		db.opts.Log.Warn().Err(err).Msg("the graph of a vector index could not be saved when the database closed: it is rebuilt when it is needed")
	}
	return err != nil
}
