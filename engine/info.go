package engine

import (
	"fenec/engine/doc"
)

// CollectionInfo is one collection's schema and size.
type CollectionInfo struct {
	Schema    *doc.Schema // not to be changed
	Documents int         // without expired ones
}

// Collections lists the collections by name.
func (db *DB) Collections(scope Scope) ([]CollectionInfo, error) {
	if err := scope.MayRead(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	now := db.opts.Clock()
	infos := make([]CollectionInfo, 0, len(db.names))
	for _, name := range db.names {
		t := db.tables[name]
		infos = append(infos, CollectionInfo{t.schema, t.Len() - t.expired(now)})
	}
	return infos, nil
}

// Stats is the size of a database.
type Stats struct {
	Seq       uint64
	Documents int // in collections that statements can find, including expired ones that are not deleted yet
	FileBytes int64
	// LiveBytes are the bytes of the current documents. DeadBytes is about what a compact would free in the file.
	LiveBytes, DeadBytes int64
	// MemoryBytes is what the database takes in the heap: the mirror of its file, the built indexes, the cached statements
	// and their statistics, and during a compact the mirror of the new file.
	MemoryBytes int64
	// Waiting counts the vectors that are not linked into the graph of their index yet: searches measure each of them.
	Waiting int
	Frozen  bool
	Failed  error // the storage error that stopped writes, or nil
}

// fixedBytes is about what an open database takes in addition to what is counted.
const fixedBytes = 4096

// Stats returns the current sizes.
func (db *DB) Stats() Stats {
	db.mu.RLock()
	defer db.mu.RUnlock()
	s := Stats{
		Seq: db.seq, FileBytes: db.log.Size(), LiveBytes: db.space.live,
		MemoryBytes: fixedBytes + db.memory.bytes() + db.copying.Load() + db.statements.bytes() + db.shapes.bytes.Load(),
		Frozen:      db.frozen, Failed: db.failed,
	}
	s.DeadBytes = db.deadLocked(s.FileBytes)
	for name, t := range db.tables {
		if !isServers(name) {
			s.Documents += t.Len()
		}
		s.MemoryBytes += t.bytes()
		s.Waiting += t.indexes.Waiting()
	}
	return s
}
