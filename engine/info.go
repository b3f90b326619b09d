package engine

import (
	"fenec/engine/doc"
)

// CollectionInfo is one collection's schema and size.
type CollectionInfo struct {
	Schema    *doc.Schema // not to be changed
	Documents int         // those there now, of a collection with a ttl
}

// Collections lists the collections by name.
func (db *DB) Collections() []CollectionInfo {
	db.mu.RLock()
	defer db.mu.RUnlock()
	now := db.opts.Clock()
	infos := make([]CollectionInfo, 0, len(db.names))
	for _, name := range db.names {
		t := db.tables[name]
		infos = append(infos, CollectionInfo{t.schema, t.Len() - t.expired(now)})
	}
	return infos
}

// Stats is what a database holds.
type Stats struct {
	Seq       uint64
	Documents int // of the collections statements know, those whose ttl is over and that are not yet deleted too
	FileBytes int64
	// LiveBytes are those of the documents there are. DeadBytes are about what a compact takes off the file.
	LiveBytes, DeadBytes int64
	// MemoryBytes is what the database holds in the heap: the mirror of its file, the indexes built,
	// the statements kept and what is counted of them, and during a compact the mirror of the new file.
	MemoryBytes int64
	// Waiting are the vectors that are not linked into the graph of their index yet: searches measure each of them.
	Waiting int
	Frozen  bool
	Failed  error // the storage error that stopped writes, nil where none did
}

// fixedBytes is about what an open database takes beside what it counts.
const fixedBytes = 4096

// Stats counts what the database holds now.
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
		s.Waiting += t.waiting()
	}
	return s
}
