package engine

import "fenec/engine/wal"

// When a graph is saved. It is written whole each time, so it must have changed by a share of itself: what is saved over
// the life of a file is then a small multiple of its graphs, and what an open finds unlinked is no more than that share.
type grown int

const (
	// grownBusy is while vectors wait: a graph being made saves itself as it doubles, so that a crash costs half of the work.
	grownBusy grown = 2
	// grownIdle is once they are linked.
	grownIdle grown = 8
	// savedBeside is how many vectors must have been linked for a save beside the queries: fewer are soon linked again.
	savedBeside = 1024
)

// due tells that the graph has changed by a share of itself since it was saved last, and by at least that many vectors.
func (s *graphIndex) due(share grown, atLeast int64) bool {
	gained := s.gained()
	return gained >= max(atLeast, 1) && gained*int64(share) >= int64(s.Nodes())
}

// gained counts the vectors that were linked or taken out since the graph was saved.
func (s *graphIndex) gained() int64 { return s.moved.Load() - int64(s.waiting()) - s.saved.Load() }

// savedGraph is a graph to be written.
type savedGraph struct {
	*keptGraph
	index *derived

	built *graphIndex // nil where no statement has needed it
	mark  int64       // how far built is in its changes

	from *keptGraph // where it is not built: what the file had, of which this is a copy
}

// done says that the file has the graph.
func (g *savedGraph) done() {
	g.index.kept.filed.Store(g.recordBytes())
	switch {
	case g.built != nil:
		g.built.saved.Store(g.mark)
	case g.from != nil: // and unless it was needed meanwhile
		g.index.kept.whole.CompareAndSwap(g.from, g.keptGraph)
	}
}

// graphsLocked are all graphs, to be written to another file. It needs the lock, shared or not.
func (db *DB) graphsLocked() (out []savedGraph) {
	for _, t := range db.numbers {
		for _, x := range t.derived {
			if s, ok := x.there().(*graphIndex); ok {
				out = append(out, x.snapshotGraph(s))
			} else if kept := x.kept.whole.Load(); kept != nil {
				out = append(out, savedGraph{keptGraph: kept.copy(), index: x, from: kept})
			}
		}
	}
	return out
}

// grownLocked are the graphs that are due, as they are now. It needs the lock, shared or not.
func (db *DB) grownLocked(share grown, atLeast int64) (out []savedGraph) {
	for _, t := range db.numbers {
		for _, x := range t.derived {
			if s, ok := x.there().(*graphIndex); ok && s.due(share, atLeast) {
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

// saveGrown writes the graphs that have changed much to the file, beside the queries and the writers.
func (db *DB) saveGrown(share grown) {
	db.mu.RLock()
	var graphs []savedGraph
	if db.storableLocked() == nil {
		graphs = db.grownLocked(share, savedBeside)
	}
	db.mu.RUnlock()
	for i := range graphs {
		if err := db.saveGraph(&graphs[i]); err != nil {
			return // a storage failure, which is told as one; or no time to write, and Close may do so
		}
	}
}

// saveGraph writes a graph to the file. Until it is there whole, the graph before it is the latest.
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
	db.writer.Lock() // no compaction is about to leave it out
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

// saveLast writes the graphs that have changed since they were saved to the file of a database that is closing, once
// everything else is on disk. Where that fails, nothing but time is lost: the log is told, and Close is not.
func (db *DB) saveLast() (failed bool) {
	if db.opts.ReadOnly || db.log.Err() != nil {
		return false
	}
	db.mu.RLock()
	graphs := db.grownLocked(grownIdle, 1)
	db.mu.RUnlock()
	if len(graphs) == 0 || db.log.Sync() != nil { // which Close meets again
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
		db.opts.Log.Warn().Err(err).Msg("the graph of a vector index could not be saved as the database closed: it is made again when it is needed")
	}
	return err != nil
}
