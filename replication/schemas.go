package replication

import (
	"slices"

	"fenec/engine"
	"fenec/engine/doc"
)

// schemas are the schemas of the collections, by number, as they were from each change on: a document is read by the
// schema it was written under, and a collection that ended still has a name.
type schemas map[uint64][]version

type version struct {
	from   uint64      // the change that made it
	schema *doc.Schema // nil where that ended the collection
}

func (s schemas) add(number, from uint64, schema *doc.Schema) {
	s[number] = append(s[number], version{from, schema})
}

// follow takes in what a block, which begins behind a change, says of collections.
func (s schemas) follow(r engine.Record, before uint64) {
	// The database made the record and has applied it: there is nothing in it that cannot be read.
	_ = r.Changes(func(c *engine.Change) error {
		before++
		switch c.Op {
		case engine.Created, engine.Altered:
			s.add(c.Table, before, c.Schema)
		case engine.Dropped:
			s.add(c.Table, before, nil)
		}
		return nil
	})
}

// at is the schema of a collection once a change was made, nil where there was none.
func (s schemas) at(number, seq uint64) *doc.Schema {
	for _, v := range slices.Backward(s[number]) {
		if v.from <= seq {
			return v.schema
		}
	}
	return nil
}

// number is the collection of that name once a change was made, 0 where there was none.
func (s schemas) number(name string, seq uint64) uint64 {
	for number := range s {
		if schema := s.at(number, seq); schema != nil && schema.Name == name {
			return number
		}
	}
	return 0
}

// forget lets go of what no change after seq needs.
func (s schemas) forget(seq uint64) {
	for number, versions := range s {
		n := 0
		for n+1 < len(versions) && versions[n+1].from <= seq {
			n++
		}
		if n == len(versions)-1 && versions[n].schema == nil && versions[n].from <= seq {
			n++
		}
		if s[number] = slices.Delete(versions, 0, n); len(s[number]) == 0 {
			delete(s, number)
		}
	}
}

// What a version takes in memory, about, beside a schema that the database has too.
const versionBytes = 64

func (s schemas) bytes() (n int64) {
	for _, versions := range s {
		n += int64(len(versions)) * versionBytes
	}
	return n
}
