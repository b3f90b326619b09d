package doc

import (
	"slices"
	"strings"

	"fenec/engine/collation"
)

// Field is one field of a collection.
type Field struct {
	Name     string
	Type     Type
	Required bool
	Index    Index
	Collate  collation.Collation // of text: the collation it is ordered by
	Slot     int
}

// PathIndex is an index on a path into a json field.
type PathIndex struct {
	Path  string // meta.source.rank
	Index IndexKind
}

// Schema describes what a collection's documents hold. It is immutable once in use: a change makes a clone.
type Schema struct {
	Name   string
	Fields []Field
	Paths  []PathIndex
	Slots  int // the next free slot; a slot is never reused
}

// Field returns the field of that name, nil if there is none. The id is not a field.
func (s *Schema) Field(name string) *Field {
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return &s.Fields[i]
		}
	}
	return nil
}

// Clone returns a copy that shares nothing with s.
func (s *Schema) Clone() *Schema {
	c := *s
	c.Fields = slices.Clone(s.Fields)
	c.Paths = slices.Clone(s.Paths)
	return &c
}

// AddField adds f with the next free slot, which no document has yet.
func (s *Schema) AddField(f Field) {
	f.Slot = s.Slots
	s.Slots++
	s.Fields = append(s.Fields, f)
}

// DropField removes a field of s with its index and those on paths into it. Its slot stays used.
func (s *Schema) DropField(name string) {
	s.Fields = slices.DeleteFunc(s.Fields, func(f Field) bool { return f.Name == name })
	s.Paths = slices.DeleteFunc(s.Paths, func(p PathIndex) bool { return strings.HasPrefix(p.Path, name+".") })
}

// RenameField gives a field of s another name, also in the paths that lead into it.
func (s *Schema) RenameField(name, to string) {
	s.Field(name).Name = to
	for i := range s.Paths {
		if keys, ok := strings.CutPrefix(s.Paths[i].Path, name+"."); ok {
			s.Paths[i].Path = to + "." + keys
		}
	}
}

// Dropped returns the slots of dropped fields, ascending: documents written before may hold values in them.
func (s *Schema) Dropped() []int {
	if len(s.Fields) == s.Slots {
		return nil
	}
	live := make([]bool, s.Slots)
	for _, f := range s.Fields {
		live[f.Slot] = true
	}
	var out []int
	for slot := range live {
		if !live[slot] {
			out = append(out, slot)
		}
	}
	return out
}
