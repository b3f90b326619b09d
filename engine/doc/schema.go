package doc

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"fenec/engine/fail"
)

// IndexKind is the index a field or path has, 0 for none. The numbers are part of the file format.
type IndexKind uint8

const (
	IndexHash   IndexKind = iota + 1 // answers = and in
	IndexUnique                      // as IndexHash, and no two documents hold one value
	IndexSorted                      // answers ranges and orders
	IndexTTL                         // as IndexSorted, and says when a row is gone: see Field.Span
)

var indexNames = [...]string{IndexHash: "@hash", IndexUnique: "@unique", IndexSorted: "@sorted", IndexTTL: "@ttl"}

// Ordered tells an index that holds its values in order.
func (k IndexKind) Ordered() bool { return k == IndexSorted || k == IndexTTL }

// String is the index as the language writes it, empty for none.
func (k IndexKind) String() string {
	if int(k) < len(indexNames) {
		return indexNames[k]
	}
	return "unknown index"
}

// Field is one field of a collection.
type Field struct {
	Name     string
	Type     Type
	Required bool
	Index    IndexKind
	Span     time.Duration // of IndexTTL: how long past its time a row is there, in whole seconds
	Slot     int
}

// PathIndex is an index on a path into a json field.
type PathIndex struct {
	Path  string // meta.source.rank
	Index IndexKind
}

// Schema is what a collection's documents hold. It is never changed once it is in use: a change makes a clone.
type Schema struct {
	Name   string
	Fields []Field
	Paths  []PathIndex
	Slots  int // the next free slot; a slot is never handed out twice
}

// Field is the field of that name; nil where there is none. The id is no field.
func (s *Schema) Field(name string) *Field {
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return &s.Fields[i]
		}
	}
	return nil
}

// Clone is a copy that shares nothing with s.
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

// DropField takes out a field of s with its index and those on paths into it. Its slot stays used up.
func (s *Schema) DropField(name string) {
	s.Fields = slices.DeleteFunc(s.Fields, func(f Field) bool { return f.Name == name })
	s.Paths = slices.DeleteFunc(s.Paths, func(p PathIndex) bool { return strings.HasPrefix(p.Path, name+".") })
}

// RenameField gives a field of s another name, in the paths that lead into it too.
func (s *Schema) RenameField(name, to string) {
	s.Field(name).Name = to
	for i := range s.Paths {
		if keys, ok := strings.CutPrefix(s.Paths[i].Path, name+"."); ok {
			s.Paths[i].Path = to + "." + keys
		}
	}
}

// Dropped lists the slots of fields that are no more, ascending: documents written before may hold values in them.
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

// The versions of a schema's encoding. One with a ttl is of the second, so that a program that knows the first alone,
// which would answer rows that are gone, does not open it.
const (
	schemaVersion    = 1
	schemaTTLVersion = 2
)

// AppendBinary appends the schema's encoding: a version byte, name, slots, fields, paths; numbers as uvarints, texts with
// their length first. The span of a ttl, in seconds, is behind its field.
func (s *Schema) AppendBinary(dst []byte) []byte {
	version := byte(schemaVersion)
	if s.TTL() != nil {
		version = schemaTTLVersion
	}
	dst = append(dst, version)
	dst = AppendKey(dst, s.Name)
	dst = appendLength(dst, s.Slots)
	dst = appendLength(dst, len(s.Fields))
	for _, f := range s.Fields {
		dst = AppendKey(dst, f.Name)
		required := byte(0)
		if f.Required {
			required = 1
		}
		dst = append(dst, byte(f.Type.Kind), byte(f.Type.Elem), required, byte(f.Index))
		dst = appendLength(dst, f.Slot)
		if f.Index == IndexTTL {
			dst = appendLength(dst, int(f.Span/time.Second))
		}
	}
	dst = appendLength(dst, len(s.Paths))
	for _, p := range s.Paths {
		dst = append(AppendKey(dst, p.Path), byte(p.Index))
	}
	return dst
}

// DecodeSchema reads an encoding of a schema, all of b.
func DecodeSchema(b []byte) (*Schema, error) {
	if len(b) == 0 {
		return nil, fail.New(fail.Damaged, "a schema is empty")
	}
	if b[0] < schemaVersion || b[0] > schemaTTLVersion {
		return nil, fail.New(fail.Damaged, "a schema has version %d, where %d is known", b[0], schemaTTLVersion)
	}
	r := schemaReader{b: b[1:]}
	s := &Schema{Name: r.text(), Slots: r.number(MaxSlots)}
	for range r.number(MaxSlots) {
		f := r.field(b[0])
		if r.failed || f.Slot >= s.Slots || f.Index == IndexTTL && s.TTL() != nil {
			return nil, fail.New(fail.Damaged, "a schema has a broken field")
		}
		s.Fields = append(s.Fields, f)
	}
	for range r.number(MaxSlots) {
		p := PathIndex{Path: r.text(), Index: IndexKind(r.byte())}
		if r.failed || p.Index == 0 || p.Index > IndexSorted {
			return nil, fail.New(fail.Damaged, "a schema has a broken index")
		}
		s.Paths = append(s.Paths, p)
	}
	if r.failed || len(r.b) > 0 {
		return nil, fail.New(fail.Damaged, "a schema does not end where it should")
	}
	return s, nil
}

// known tells whether t is a type this version has.
func (t Type) known() bool {
	if t.Kind == TypeList {
		return t.Elem >= TypeBool && t.Elem < TypeList
	}
	return t.Kind >= TypeBool && t.Kind < TypeList && t.Elem == 0
}

// schemaReader reads the parts of a schema; after the first broken one everything reads as zero.
type schemaReader struct {
	b      []byte
	failed bool
}

// field reads one field as the version of the schema has it.
func (r *schemaReader) field(version byte) Field {
	f := Field{Name: r.text()}
	f.Type = Type{Kind: TypeKind(r.byte()), Elem: TypeKind(r.byte())}
	required := r.byte()
	f.Required = required == 1
	f.Index = IndexKind(r.byte())
	f.Slot = r.number(MaxSlots)
	r.failed = r.failed || required > 1 || !f.Type.known()
	switch {
	case f.Index <= IndexSorted:
	case f.Index == IndexTTL && version == schemaTTLVersion && f.Type.Kind == TypeTimestamp:
		f.Span = time.Duration(r.number(int(MaxSpan/time.Second))) * time.Second
		r.failed = r.failed || f.Span == 0
	default:
		r.failed = true
	}
	return f
}

func (r *schemaReader) byte() byte {
	if len(r.b) == 0 {
		r.failed = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *schemaReader) number(limit int) int {
	n, w := binary.Uvarint(r.b)
	if w <= 0 || n > uint64(limit) {
		r.failed = true
		r.b = nil
		return 0
	}
	r.b = r.b[w:]
	return int(n)
}

func (r *schemaReader) text() string {
	n := r.number(len(r.b))
	if n > len(r.b) {
		r.failed = true
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}
