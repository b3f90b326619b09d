package query

import (
	"strings"

	"fenec/engine/collation"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// reservedNames are routes of the HTTP surface and cannot be collections.
var reservedNames = map[string]bool{"query": true, "batch": true, "collections": true}

// schemaWriter returns s as a Writer for a statement that changes schemas.
func schemaWriter(s Reader) (Writer, error) {
	w, ok := s.(Writer)
	if !ok {
		return nil, fail.New(fail.ReadOnly, "the statement changes a schema, and this is a read")
	}
	return w, nil
}

// message returns the answer of a statement that changed schemas.
func (f *frame) message(w Writer, text string) (Result, error) {
	if err := w.EndStatement(f.ctx); err != nil {
		return Result{}, err
	}
	return Result{Kind: Message, Body: f.out, Message: text}, nil
}

// createCollection compiles a create collection.
func (c *compiler) createCollection(st *syntax.CreateCollection) error {
	name := st.Name.Text
	if strings.HasPrefix(name, "_") || reservedNames[name] {
		return errorAt(fail.Invalid, st.Name.Pos, "%s is no name for a collection: query, batch, collections and names that begin with _ are taken", name)
	}
	schema := &doc.Schema{Name: name, Slots: len(st.Fields)}
	if len(st.Fields) > doc.MaxSlots {
		return errorAt(fail.Invalid, st.Name.Pos, "a collection has %d fields at most, got %d", doc.MaxSlots, len(st.Fields))
	}
	for i := range st.Fields {
		d := &st.Fields[i]
		if err := fieldName(d.Name); err != nil {
			return err
		}
		if err := declared(d); err != nil {
			return err
		}
		if err := oneTTL(schema, d.Index.Kind, fail.Invalid, d.Name.Pos); err != nil {
			return err
		}
		schema.Fields = append(schema.Fields, doc.Field{
			Name: d.Name.Text, Type: d.Type, Required: d.Required, Index: d.Index, Collate: d.Collate, Slot: i,
		})
	}
	c.plan.run = func(f *frame, s Reader) (Result, error) {
		w, err := schemaWriter(s)
		if err != nil {
			return Result{}, err
		}
		if w.Table(name) != nil {
			if st.IfNotExists {
				return f.message(w, "collection "+name+" exists already")
			}
			return Result{}, errorAt(fail.Conflict, st.Name.Pos, "collection %s exists already", name)
		}
		if err := w.CreateCollection(schema.Clone()); err != nil {
			return Result{}, err
		}
		return f.message(w, "collection "+name+" created")
	}
	return nil
}

// fieldName fails for names that no field can have.
func fieldName(n syntax.Name) error {
	switch n.Text {
	case "id":
		return errorAt(fail.Invalid, n.Pos, "a field cannot be called id: every document has that by itself")
	case scoreKey:
		return errorAt(fail.Invalid, n.Pos, "a field cannot be called %s: the rows of near and match have their score there", scoreKey)
	}
	return nil
}

// declared fails if the type, collation and index of a field do not fit together.
func declared(d *syntax.FieldDef) error {
	what := "field " + d.Name.Text
	if d.Collate != collation.None && d.Type.Kind != doc.TypeText {
		return errorAt(fail.Invalid, d.Name.Pos, "collate goes on text, and %s is %s", what, d.Type)
	}
	return indexable(d.Index.Kind, d.Type, what, false, d.Name.Pos)
}

// homes are the field types of the indexes that need a certain type and cannot be on a path.
var homes = map[doc.IndexKind]struct {
	kind doc.TypeKind
	name string
}{
	doc.IndexTTL:      {doc.TypeTimestamp, "a timestamp"},
	doc.IndexText:     {doc.TypeText, "a text"},
	doc.IndexHNSW:     {doc.TypeVector, "a vector"},
	doc.IndexInverted: {doc.TypeSparse, "a sparse vector"},
}

// indexable fails if an index cannot hold values of the type. k is 0 for no index.
func indexable(k doc.IndexKind, t doc.Type, what string, path bool, pos syntax.Pos) error {
	home, only := homes[k]
	switch {
	case only && path:
		return errorAt(fail.Invalid, pos, "%s goes on %s, and %s is a path into json", k, home.name, what)
	case only && t.Kind != home.kind:
		return errorAt(fail.Invalid, pos, "%s goes on %s, and %s is %s", k, home.name, what, t)
	case k == 0 || path || only:
		return nil
	}
	switch t.Kind {
	case doc.TypeJSON:
		return errorAt(fail.Invalid, pos, "%s goes on a scalar or on a path into json, and %s is json", k, what)
	case doc.TypeList:
		return errorAt(fail.Invalid, pos, "%s goes on a scalar, and %s is %s", k, what, t)
	case doc.TypeVector:
		return errorAt(fail.Invalid, pos, "%s goes on a scalar, and %s is %s: the index of a vector is @hnsw", k, what, t)
	case doc.TypeSparse:
		return errorAt(fail.Invalid, pos, "%s goes on a scalar, and %s is %s: the index of a sparse vector is @inverted", k, what, t)
	case doc.TypeBool, doc.TypeBytes:
		if k == doc.IndexSorted {
			return errorAt(fail.Invalid, pos, "@sorted goes on int, float, timestamp, text or a path into json, and %s is %s", what, t)
		}
	}
	return nil
}

// dropCollection compiles a drop collection.
func (c *compiler) dropCollection(st *syntax.DropCollection) error {
	name := st.Name.Text
	c.plan.run = func(f *frame, s Reader) (Result, error) {
		w, err := schemaWriter(s)
		if err != nil {
			return Result{}, err
		}
		if w.Table(name) == nil {
			if st.IfExists {
				return f.message(w, "there is no collection "+name)
			}
			return Result{}, errorAt(fail.NotFound, st.Name.Pos, "there is no collection %s", name)
		}
		if err := w.DropCollection(name); err != nil {
			return Result{}, err
		}
		return f.message(w, "collection "+name+" dropped")
	}
	return nil
}

// createIndex compiles a create index.
func (c *compiler) createIndex(st *syntax.CreateIndex) error {
	schema, err := c.collection(st.Collection)
	if err != nil {
		return err
	}
	col, err := resolve(schema, st.On.Parts, st.On.Pos)
	if err != nil {
		return err
	}
	if col.id {
		return errorAt(fail.Invalid, st.On.Pos, "id needs no index: documents are found by it already")
	}
	if err := indexable(st.Index.Kind, col.typ, col.what, col.keys != nil, st.On.Pos); err != nil {
		return err
	}
	on := st.Collection.Text + "." + col.name
	has, declared := indexName(schema, col.name), st.Index.String()
	c.plan.run = func(f *frame, s Reader) (Result, error) {
		w, err := schemaWriter(s)
		switch {
		case err != nil:
			return Result{}, err
		case has == declared && st.IfNotExists:
			return f.message(w, "index "+has+" on "+on+" exists already")
		case has != "":
			return Result{}, errorAt(fail.Conflict, st.On.Pos, "%s has the index %s already", on, has)
		}
		if err := oneTTL(schema, st.Index.Kind, fail.Conflict, st.On.Pos); err != nil {
			return Result{}, err
		}
		if err := w.CreateIndex(f.ctx, schema.Name, col.name, st.Index); err != nil {
			return Result{}, err
		}
		return f.message(w, "index "+declared+" on "+on+" created")
	}
	return nil
}

// compact records what is to be compacted; the engine does it.
func (c *compiler) compact(st *syntax.Compact) error {
	name := ""
	if st.Collection != nil {
		if _, err := c.collection(*st.Collection); err != nil {
			return err
		}
		name = st.Collection.Text
	}
	c.plan.writes, c.plan.compact = true, &name
	c.plan.run = func(*frame, Reader) (Result, error) {
		return Result{}, fail.New(fail.Unsupported, "compact runs by itself, not within a statement")
	}
	return nil
}
