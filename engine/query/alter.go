package query

import (
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// addField compiles an alter that adds a field. Older documents read null for it: their slots end before its.
func (c *compiler) addField(st *syntax.AddField) error {
	d := &st.Field
	schema, err := c.collection(st.Collection)
	if err != nil {
		return err
	}
	if err := freeName(schema, d.Name); err != nil {
		return err
	}
	if schema.Slots >= doc.MaxSlots {
		return errorAt(fail.Invalid, d.Name.Pos, "%s has had %d fields, dropped ones too, and can have no more", schema.Name, schema.Slots)
	}
	if err := declared(d); err != nil {
		return err
	}
	if err := oneTTL(schema, d.Index.Kind, fail.Conflict, d.Name.Pos); err != nil {
		return err
	}
	altered := schema.Clone()
	altered.AddField(doc.Field{Name: d.Name.Text, Type: d.Type, Index: d.Index, Collate: d.Collate})
	c.alter(altered, "field "+d.Name.Text+" added to "+schema.Name)
	return nil
}

// dropField compiles an alter that drops a field.
func (c *compiler) dropField(st *syntax.DropField) error {
	schema, err := c.fieldOf(st.Collection, st.Field, "dropped")
	if err != nil {
		return err
	}
	name := st.Field.Text
	if len(schema.Fields) == 1 {
		return errorAt(fail.Invalid, st.Field.Pos, "%s is the last field of %s and cannot be dropped; drop collection %s drops the whole",
			name, schema.Name, schema.Name)
	}
	altered := schema.Clone()
	altered.DropField(name)
	c.alter(altered, "field "+name+" dropped from "+schema.Name)
	return nil
}

// renameField compiles an alter that renames a field.
func (c *compiler) renameField(st *syntax.RenameField) error {
	schema, err := c.fieldOf(st.Collection, st.Field, "renamed")
	if err != nil {
		return err
	}
	if err := freeName(schema, st.To); err != nil {
		return err
	}
	altered := schema.Clone()
	altered.RenameField(st.Field.Text, st.To.Text)
	c.alter(altered, "field "+st.Field.Text+" of "+schema.Name+" renamed to "+st.To.Text)
	return nil
}

// alter makes the plan's run set the schema of the collection. The plan is valid only for the schema it was made from, so
// the new one is known now.
func (c *compiler) alter(altered *doc.Schema, message string) {
	c.plan.run = func(f *frame, s Reader) (Result, error) {
		w, err := schemaWriter(s)
		if err != nil {
			return Result{}, err
		}
		// Expired documents must not reappear when the ttl is dropped.
		if t := s.Table(altered.Name); t.Schema().TTL() != nil && altered.TTL() == nil {
			if err := f.dropExpired(w, t); err != nil {
				return Result{}, err
			}
		}
		if err := w.AlterCollection(altered.Clone()); err != nil {
			return Result{}, err
		}
		return f.message(w, message)
	}
}

// fieldOf returns the schema of a collection that has the field. changed names the operation, for the error.
func (c *compiler) fieldOf(collection, field syntax.Name, changed string) (*doc.Schema, error) {
	schema, err := c.collection(collection)
	switch {
	case err != nil:
		return nil, err
	case field.Text == "id":
		return nil, errorAt(fail.Invalid, field.Pos, "id is no field and cannot be %s: every document has one by itself", changed)
	case schema.Field(field.Text) == nil:
		return nil, errorAt(fail.NotFound, field.Pos, "%s has no field %s", schema.Name, field.Text)
	}
	return schema, nil
}

// freeName fails if a field of the schema has the new name, or none can have it.
func freeName(s *doc.Schema, n syntax.Name) error {
	if s.Field(n.Text) != nil {
		return errorAt(fail.Conflict, n.Pos, "%s has a field %s already", s.Name, n.Text)
	}
	return fieldName(n)
}
