package engine

import (
	"slices"

	"fenec/engine/derived"
	"fenec/engine/wal"
)

// upkeep is the derived.Host of a database.
type upkeep struct{ db *DB }

func newDerived(db *DB) *derived.Database {
	return derived.New(derived.Options{Host: upkeep{db}, Shared: db.mu.RLocker(), Log: db.opts.Log, RecordHead: wal.HeaderSize})
}

// Writable implements derived.Host.
func (u upkeep) Writable() error { return u.db.Writable() }

// SaveGraphs writes the graphs that have changed much to the file, while queries and writers go on.
func (u upkeep) SaveGraphs(m derived.Moment) { u.db.saveGraphs(m) }

func (db *DB) saveGraphs(m derived.Moment) {
	db.mu.RLock()
	var graphs []derived.Graph
	if db.storableLocked() == nil {
		graphs = db.derived.Due(m, db.seq)
	}
	db.mu.RUnlock()
	for i := range graphs {
		if err := db.saveGraph(&graphs[i]); err != nil {
			return // the log reports a storage failure; if writes are refused for now, Close may save the graph
		}
	}
}

// saveGraph writes a graph to the file. Until it is complete, the graph before it is the latest.
func (db *DB) saveGraph(g *derived.Graph) error {
	staged := int64(0)
	err := g.Records(func(record []byte) error {
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
		g.Saved()
		db.checkDue()
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
	graphs := db.derived.Due(derived.Closing, db.seq)
	db.mu.RUnlock()
	if len(graphs) == 0 || db.log.Sync() != nil { // Close returns the error of the sync
		return false
	}
	for _, g := range graphs {
		_ = g.Records(func(record []byte) error {
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

// trimmed sets which share of the file's segment, one in so many, graphs at its end must take to be trimmed.
const trimmed = 8

// Trim cuts the graphs off the end of the segment that is the file as it was opened, once no index needs them. If nothing
// was written after they were saved, these are all graphs in the segment, and otherwise nearly all.
func (u upkeep) Trim() {
	db := u.db
	db.mu.RLock()
	end := db.replayed
	needed := end == 0 || db.derived.Needed()
	var file []byte
	if !needed {
		file = db.memory.segments[0]
	}
	db.mu.RUnlock()
	if needed || len(file)-end < len(file)/trimmed {
		return
	}
	documents := slices.Clone(file[:end])
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.replayed != 0 { // no compact has replaced the segments
		db.memory.segments[0], db.replayed = documents, 0
		if db.opts.Feed != nil {
			db.opts.Feed.Relocated(0, documents)
		}
	}
}
