package feed

import (
	"slices"

	"fenec/engine"
	"fenec/engine/doc"
)

// schemas are the schemas of the collections, by number, and the change from which each was valid: a document is read
// by the schema it was written under, and a dropped collection still has a name.
type schemas map[uint64][]version

type version struct {
	from   uint64      // the change that made it
	schema *doc.Schema // nil if that dropped the collection
}

func (s schemas) add(number, from uint64, schema *doc.Schema) {
	s[number] = append(s[number], version{from, schema})
}

// follow applies what a block, which begins after the change before, does to collections.
func (s schemas) follow(r engine.Record, before uint64) {
	// The database made the record and has applied it, so it can be read.
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

// at returns the schema of a collection after a change, nil if there was none.
func (s schemas) at(number, seq uint64) *doc.Schema {
	for _, v := range slices.Backward(s[number]) {
		if v.from <= seq {
			return v.schema
		}
	}
	return nil
}

// number returns the number of the collection of that name after a change, 0 if there was none.
func (s schemas) number(name string, seq uint64) uint64 {
	for number := range s {
		if schema := s.at(number, seq); schema != nil && schema.Name == name {
			return number
		}
	}
	return 0
}

// forget drops what no change after seq needs.
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

// versionBytes is the approximate memory of a version in bytes. Its schema is not counted: the database has it too.
const versionBytes = 64

func (s schemas) bytes() (n int64) {
	for _, versions := range s {
		n += int64(len(versions)) * versionBytes
	}
	return n
}
