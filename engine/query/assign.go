package query

import (
	"strings"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// assignment gives a field, or a place inside a json field, a value.
type assignment struct {
	column *column
	eval   evalFunc
	raw    doc.Raw // the encoded value if it is the same in every run; else nil
	pos    syntax.Pos
}

// assign compiles one `key: value`.
func (c *compiler) assign(s *doc.Schema, item syntax.Item) (assignment, error) {
	col, err := resolve(s, item.Key.Parts, item.Key.Pos)
	if err != nil {
		return assignment{}, err
	}
	n, err := c.expr(item.Value)
	if err != nil {
		return assignment{}, err
	}
	a := assignment{column: col, eval: n.given(), pos: n.pos}
	if !n.fixed || col.id {
		return a, nil
	}
	f := &frame{}
	v := n.eval(f)
	if f.err != nil {
		return a, f.err
	}
	a.raw, err = a.typ().Append(nil, v, col.what)
	return a, placed(n.pos, err)
}

// typ returns the type of the value assigned.
func (a *assignment) typ() doc.Type {
	if a.column.keys != nil {
		return doc.Type{Kind: doc.TypeJSON}
	}
	return a.column.typ
}

// apply puts the value into the document being built.
func (a *assignment) apply(f *frame) error {
	if a.raw != nil {
		return a.applyRaw(f, a.raw)
	}
	v := a.eval(f)
	if err := f.take(); err != nil {
		return err
	}
	if a.column.keys == nil {
		if err := f.build.Set(a.column.slot, a.column.typ, v, a.column.what); err != nil {
			return placed(a.pos, err)
		}
		return nil
	}
	at := len(f.arena)
	arena, err := doc.Type{Kind: doc.TypeJSON}.Append(f.arena, v, a.column.what)
	if err != nil {
		return placed(a.pos, err)
	}
	f.arena = arena
	return a.applyRaw(f, doc.Raw(arena[at:len(arena):len(arena)]))
}

func (a *assignment) applyRaw(f *frame, r doc.Raw) error {
	if a.column.keys == nil {
		f.build.SetRaw(a.column.slot, r)
		return nil
	}
	return placed(a.pos, f.setPath(a.column, r))
}

// setPath puts an encoded value inside a json field of the document being built.
func (f *frame) setPath(col *column, r doc.Raw) error {
	at := len(f.arena)
	field, _, _ := strings.Cut(col.name, ".")
	arena, err := doc.AppendWithPath(f.arena, f.build.Field(col.slot), col.keys, r, "field "+field)
	if err != nil {
		return err
	}
	if f.arena = arena; !f.arenaFits() {
		return f.take()
	}
	return f.build.Set(col.slot, doc.Type{Kind: doc.TypeJSON}, doc.Raw(arena[at:]).Value(), col.what)
}

// required returns the fields of a schema that a document must hold.
func required(s *doc.Schema) []*doc.Field {
	var out []*doc.Field
	for i := range s.Fields {
		if s.Fields[i].Required {
			out = append(out, &s.Fields[i])
		}
	}
	return out
}

// complete fails if the document being built lacks a required field or is too large.
func (f *frame) complete(collection string, must []*doc.Field, pos syntax.Pos) error {
	for _, field := range must {
		if f.build.Field(field.Slot) == nil {
			return errorAt(fail.Invalid, pos, "field %s of %s is required", field.Name, collection)
		}
	}
	return f.build.Check()
}

// documentID reads an id that a put gives.
func documentID(v doc.Value) (int64, error) {
	if v.Kind != doc.Null {
		if n, err := (doc.Type{Kind: doc.TypeInt}).Convert(v, "id"); err == nil && n.Int() > 0 {
			return n.Int(), nil
		}
	}
	return 0, fail.New(fail.Invalid, "id: expected a positive int, got %s", doc.Describe(v))
}
