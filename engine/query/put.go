package query

import (
	"strings"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// putPlan is a compiled put or insert.
type putPlan struct {
	collection string
	schema     *doc.Schema
	fields     []*column // of the schema, in the order in which putObject met them
	must       []*doc.Field
	insert     bool
	rows       []putRow
	param      int         // as of syntax.Put
	absent     *absence    // nil if a row that exists is an error
	returning  *projection // nil for a count
	pos        syntax.Pos
}

// putRow is one document of a put.
type putRow struct {
	id     *assignment // nil if the counter assigns it
	fields []assignment
	pos    syntax.Pos
}

// verb returns how the statement was written.
func (p *putPlan) verb() string {
	if p.insert {
		return "insert"
	}
	return "put"
}

// put compiles a put or insert.
func (c *compiler) put(st *syntax.Put) error {
	schema, err := c.collection(st.Collection)
	if err != nil {
		return err
	}
	p := &putPlan{collection: schema.Name, schema: schema, must: required(schema), insert: st.Insert, param: st.Param, pos: st.Pos}
	for i := range schema.Fields {
		col, err := resolve(schema, []string{schema.Fields[i].Name}, st.Pos)
		if err != nil {
			return err
		}
		p.fields = append(p.fields, col)
	}
	c.why = p.verb() + " reads no document"
	c.plan.params = st.Param
	for _, object := range st.Rows {
		row := putRow{pos: object.Pos}
		for _, item := range object.Items {
			a, err := c.assign(schema, item)
			if err != nil {
				return err
			}
			if a.column.id {
				row.id = &a
			} else {
				row.fields = append(row.fields, a)
			}
		}
		p.rows = append(p.rows, row)
	}
	c.plan.nodes = 0  // each is computed once per run, not once per row
	c.schema = schema // from here on expressions read the existing document
	if st.IfAbsent {
		if p.absent, err = c.absence(st); err != nil {
			return err
		}
	}
	if st.Returning != nil {
		if p.returning, err = c.projection(st.Returning.Items); err != nil {
			return err
		}
	}
	c.plan.run = p.run
	return nil
}

func (p *putPlan) run(f *frame, s Reader) (Result, error) {
	w, t, err := writer(s, p.collection)
	if err != nil {
		return Result{}, err
	}
	f.write(p.collection)
	if p.absent != nil {
		if err := p.absent.ready(f, t); err != nil {
			return Result{}, err
		}
	}
	if p.returning != nil {
		f.out = append(f.out, '[')
	}
	if p.param > 0 {
		err = p.putParam(f, w, t)
	} else {
		err = p.putRows(f, w, t)
	}
	if err != nil {
		return Result{}, err
	}
	return f.wrote(w, f.total, p.returning)
}

// putRows writes the documents that the statement contains.
func (p *putPlan) putRows(f *frame, w Writer, t Table) error {
	for i := range p.rows {
		if err := f.pause(i); err != nil {
			return err
		}
		if err := p.putRow(f, w, t, &p.rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// putRow writes one of them.
func (p *putPlan) putRow(f *frame, w Writer, t Table, row *putRow) error {
	f.arena = f.arena[:f.mark]
	f.build.Reset(p.schema.Slots)
	for i := range row.fields {
		if err := row.fields[i].apply(f); err != nil {
			return err
		}
	}
	id := int64(0)
	if row.id != nil {
		v := row.id.eval(f)
		if err := f.take(); err != nil {
			return err
		}
		var err error
		if id, err = documentID(v); err != nil {
			return placed(row.id.pos, err)
		}
	}
	return p.store(f, w, t, id, row.pos)
}

// store writes the document that was built under the id given, or the counter's next if that is 0. If a document exists
// and the insert has an if absent, it changes that document, or nothing.
func (p *putPlan) store(f *frame, w Writer, t Table, id int64, pos syntax.Pos) error {
	if err := f.complete(p.collection, p.must, pos); err != nil {
		return err
	}
	if p.absent != nil {
		by, err := p.absent.taken(f, t, id, pos)
		if err != nil || by != 0 && p.absent.update == nil {
			return err
		}
		if by != 0 {
			if err := p.absent.update.write(f, w, t, by); err != nil {
				return err
			}
			return p.stored(f)
		}
	}
	switch {
	case id == 0:
		if id = w.NextID(p.collection); id == 0 {
			return errorAt(fail.Conflict, pos, "%s has no ids left", p.collection)
		}
	case p.insert && f.exists(t, id):
		return errorAt(fail.Conflict, pos, "%s holds a document of id %d already", p.collection, id)
	default:
		w.TakeID(p.collection, id)
	}
	f.record = f.build.AppendTo(f.record[:0], id)
	if err := w.Put(p.collection, f.record); err != nil {
		return err
	}
	f.doc = f.record
	return p.stored(f)
}

// stored counts f.doc, which was written, and appends it to the answer if rows are returned.
func (p *putPlan) stored(f *frame) error {
	f.total++
	if p.returning == nil {
		return nil
	}
	return f.show(p.returning)
}

// putParam writes the object, or the list of objects, in the statement's parameter.
func (p *putPlan) putParam(f *frame, w Writer, t Table) error {
	v := f.params[p.param-1]
	if v.Kind == doc.Untyped {
		raw, err := doc.ParseDocuments(nil, v.B)
		if err != nil {
			return placed(p.pos, err)
		}
		v = doc.Raw(raw).Value()
	}
	if v.Kind == doc.Object {
		return p.putObject(f, w, t, doc.Raw(v.B))
	}
	if v.Kind != doc.List {
		return errorAt(fail.Invalid, p.pos, "%s: expected an object or a list of objects, got %s", p.verb(), doc.Describe(v))
	}
	n := 0
	var err error
	doc.Raw(v.B).Elements(func(r doc.Raw) bool {
		if r.Kind() != doc.Object {
			err = errorAt(fail.Invalid, p.pos, "%s: expected objects, got %s as element %d", p.verb(), doc.Describe(r.Value()), n+1)
			return false
		}
		if err = f.pause(n); err == nil {
			err = p.putObject(f, w, t, r)
		}
		n++
		return err == nil
	})
	return err
}

// putObject writes one JSON object as a document. A key with dots in it is a path.
func (p *putPlan) putObject(f *frame, w Writer, t Table, object doc.Raw) error {
	f.arena = f.arena[:f.mark]
	f.build.Reset(p.schema.Slots)
	id := int64(0)
	var err error
	object.Entries(func(key []byte, r doc.Raw) bool {
		if col := p.field(key); col != nil {
			err = f.build.Set(col.slot, col.typ, r.Value(), col.what)
		} else if string(key) == "id" {
			id, err = documentID(r.Value())
		} else {
			err = p.putPath(f, object, string(key), r)
		}
		return err == nil
	})
	if err != nil {
		return placed(p.pos, err)
	}
	return p.store(f, w, t, id, p.pos)
}

// field returns the field that a key names, nil if it names none.
func (p *putPlan) field(key []byte) *column {
	for _, col := range p.fields {
		if col.name == string(key) {
			return col
		}
	}
	return nil
}

// putPath puts a value of an object under the path that is its key.
func (p *putPlan) putPath(f *frame, object doc.Raw, key string, r doc.Raw) error {
	parts := []string{key}
	if syntax.IsPath(key) {
		if parts = strings.Split(key, "."); len(parts) > syntax.MaxPath {
			return fail.New(fail.Invalid, "a path has at most %d keys below its field", syntax.MaxPath-1)
		}
	}
	col, err := resolve(p.schema, parts, p.pos)
	if err != nil {
		return err
	}
	if other := p.clash(object, col); other != "" {
		return fail.New(fail.Invalid, "%s and %s are both given", other, key)
	}
	return f.setPath(col, r)
}

// clash returns another key of the object that gives a value around the path col, or "".
func (p *putPlan) clash(object doc.Raw, col *column) string {
	for i, c := range col.name {
		if c == '.' && object.Key(col.name[:i]) != nil {
			return col.name[:i]
		}
	}
	return ""
}
