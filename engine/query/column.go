package query

import (
	"strings"

	"fenec/engine/collation"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// column is the target of a path: the id, a field, or a value inside a json field.
type column struct {
	name string // as written, and its name in indexes
	what string // its name in messages
	id   bool
	slot int
	typ  doc.Type
	keys []string // inside a json field

	collate collation.Collation // declared on a text field: used by < and > and orders
}

// like reports whether two columns have the same path and collation.
func (c *column) like(d *column) bool { return c.name == d.name && c.collate == d.collate }

// raw returns the column's encoded value in d. It is not for the id.
func (c *column) raw(d doc.Document) doc.Raw {
	r := d.Field(c.slot)
	if c.keys != nil {
		return r.Path(c.keys)
	}
	return r
}

// eval returns the column's value of the row.
func (c *column) eval() evalFunc {
	slot, keys := c.slot, c.keys
	switch {
	case c.id:
		return func(f *frame) doc.Value { return doc.Value{Kind: doc.Int, N: uint64(f.doc.ID())} }
	case keys != nil:
		return func(f *frame) doc.Value { return f.doc.Field(slot).Path(keys).Value() }
	}
	return func(f *frame) doc.Value { return f.doc.Field(slot).Value() }
}

// kindOf returns the kind of a type's values.
func kindOf(t doc.Type) doc.Kind {
	switch t.Kind {
	case doc.TypeBool:
		return doc.Bool
	case doc.TypeInt:
		return doc.Int
	case doc.TypeFloat:
		return doc.Float
	case doc.TypeText:
		return doc.Text
	case doc.TypeBytes:
		return doc.Bytes
	case doc.TypeTimestamp:
		return doc.Timestamp
	case doc.TypeList:
		return doc.List
	case doc.TypeVector:
		return doc.Vector
	case doc.TypeSparse:
		return doc.Sparse
	}
	return doc.Untyped
}

// resolve finds the column a path names.
func resolve(s *doc.Schema, parts []string, pos syntax.Pos) (*column, error) {
	name := strings.Join(parts, ".")
	if parts[0] == "id" {
		if len(parts) > 1 {
			return nil, errorAt(fail.NotFound, pos, "%s has no field %s: id is an int", s.Name, name)
		}
		return &column{name: "id", what: "id", id: true, typ: doc.Type{Kind: doc.TypeInt}}, nil
	}
	field := s.Field(parts[0])
	if field == nil {
		return nil, errorAt(fail.NotFound, pos, "%s has no field %s", s.Name, parts[0])
	}
	col := &column{name: name, what: "field " + name, slot: field.Slot, typ: field.Type, collate: field.Collate}
	if len(parts) > 1 {
		if field.Type.Kind != doc.TypeJSON {
			return nil, errorAt(fail.NotFound, pos, "%s has no field %s: %s is %s, and only json holds paths",
				s.Name, name, parts[0], field.Type)
		}
		col.keys = parts[1:]
	}
	return col, nil
}

func columnNode(col *column, pos syntax.Pos) node {
	n := node{eval: col.eval(), kind: kindOf(col.typ), column: col, collate: col.collate, pos: pos}
	if col.typ.Kind == doc.TypeBool && !col.id {
		n.test = condition(n)
	}
	return n
}

// value returns the column's value in d.
func (c *column) value(d doc.Document) doc.Value {
	if c.id {
		return doc.IntValue(d.ID())
	}
	return c.raw(d).Value()
}
