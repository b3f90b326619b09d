// Package derived keeps the indexes of a database: hash, sorted, unique, text, inverted and vector indexes, which are derived
// from the documents and hold nothing that the documents do not.
//
// An index is built by the first statement that needs it (Collection.Ready) or, when it is declared, beside the writes of
// other statements (Build). Every write updates it from then on (Collection.Remove and Add). A Collection has the indexes of
// one collection, and a Database those of all.
//
// A write adds its vectors to a graph unlinked. The linker, a goroutine of the Database, links them and has the graphs that
// have changed much saved to the file (Graph), from which Restore takes them when the file is opened again.
//
// The package knows nothing of the file, and of the documents only Documents. Its caller, the engine, holds a lock that
// readers share and writers have alone. The methods say whether they need it, and how. What the package needs of the
// engine is in Options.
//
// Locks, in the order they are taken, all under the caller's lock, shared or not:
//
//	Index.mu       serializes the readers that build one index
//	graph.linking  serializes linking, writing and counting a graph
//	linker.mu      guards whether the linker runs
package derived

import (
	"sync"

	"fenec/engine/doc"

	"github.com/rs/zerolog"
)

// Documents are those of one collection: the current ones, or those of a snapshot.
type Documents interface {
	Len() int
	// Get returns the document of an id, or nil.
	Get(id int64) doc.Document
	// Ascend calls fn with the documents in the order of their ids, from an id on, until fn returns false.
	Ascend(from int64, fn func(doc.Document) bool)
}

// Lookup returns the document of an id, or nil.
type Lookup func(id int64) doc.Document

// Host is what a Database calls of the engine. None of it is called under the lock.
type Host interface {
	// Writable returns nil if a write may begin, and otherwise the reason.
	Writable() error
	// SaveGraphs saves the graphs that are Due.
	SaveGraphs(m Moment)
	// Trim frees the bytes of the saved graphs once they are no longer Needed.
	Trim()
}

// Options is what a Database needs of the engine. All of it is required.
type Options struct {
	Host   Host
	Shared sync.Locker // locks the engine's lock, shared
	Log    zerolog.Logger
	// RecordHead is how many bytes of room a record of the file has before its payload.
	RecordHead int
}

// Database is the indexes of all collections of a database.
type Database struct {
	opts        Options
	collections map[uint64]*Collection // by number
	linker      linker
}

// New returns a Database without collections. Stop must be called once it is no longer used.
func New(o Options) *Database {
	d := &Database{opts: o, collections: map[uint64]*Collection{}}
	d.linker.database, d.linker.maxUnlinked = d, maxUnlinked
	return d
}

// Insert adds the indexes of a collection. It needs the exclusive lock.
func (d *Database) Insert(c *Collection) { d.collections[c.number] = c }

// Delete removes the indexes of a collection, which remain built and can be inserted again. It needs the exclusive lock.
func (d *Database) Delete(c *Collection) { delete(d.collections, c.number) }

// Stop ends the linker for good and waits for it. It must not be called under the lock.
func (d *Database) Stop() { d.linker.stop() }

// Wait blocks until the linker has nothing to do. It must not be called under the lock.
func (d *Database) Wait() { d.linker.ended.Wait() }

// graphs calls fn with each graph that is built, until fn returns false. It needs the lock, shared or not.
func (d *Database) graphs(fn func(x *Index, s *graph) bool) {
	for _, c := range d.collections {
		for _, x := range c.indexes {
			if s, ok := x.ifBuilt().(*graph); ok && !fn(x, s) {
				return
			}
		}
	}
}
