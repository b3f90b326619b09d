package query

import (
	"strings"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// absence is the `if absent` of an insert: what to do with a row if a document has its id or one of its unique values.
type absence struct {
	unique []*column // those with a @unique index
	ttl    *doc.Field
	update *update // of the existing document; nil leaves it unchanged
}

// absence compiles the `if absent [else set {...}]` of an insert into c.schema.
func (c *compiler) absence(st *syntax.Put) (*absence, error) {
	a := &absence{ttl: c.schema.TTL()}
	var on []string
	for i := range c.schema.Fields {
		if f := &c.schema.Fields[i]; f.Index.Kind == doc.IndexUnique {
			on = append(on, f.Name)
		}
	}
	for _, p := range c.schema.Paths {
		if p.Index == doc.IndexUnique {
			on = append(on, p.Path)
		}
	}
	for _, name := range on {
		col, err := resolve(c.schema, strings.Split(name, "."), st.Pos)
		if err != nil {
			return nil, err
		}
		a.unique = append(a.unique, col)
	}
	if st.Else == nil {
		return a, nil
	}
	var err error
	a.update, err = c.update(st.Else)
	return a, err
}

// ready builds the indexes on the unique columns.
func (a *absence) ready(f *frame, t Table) error {
	for _, col := range a.unique {
		if !f.ready(t, col.name) {
			return f.take()
		}
	}
	return nil
}

// taken returns the id of the document that has the id or a unique value of the row that was built, or 0. id is the row's,
// 0 if the counter assigns it. Two such documents are a conflict, as it is ambiguous which one to change.
func (a *absence) taken(f *frame, t Table, id int64, pos syntax.Pos) (by int64, err error) {
	what := "id"
	if id != 0 && f.exists(t, id) {
		by = id
	}
	for _, col := range a.unique {
		v := a.built(f, col)
		if v.Kind == doc.Null {
			continue
		}
		if by != 0 && a.update == nil {
			return by, nil
		}
		t.Hash(col.name).Ascend(doc.Hash(v), func(at int64) bool {
			d := t.Get(at)
			switch {
			case d == nil || at == by || a.ttl != nil && a.ttl.Gone(d, f.now) || !doc.Equal(col.value(d), v):
			case by == 0:
				by, what = at, col.name
			default:
				err = errorAt(fail.Conflict, pos, "the %s of the row is that of the document with id %d and its %s that of the one with id %d: if absent else set changes one",
					what, by, col.name, at)
			}
			return err == nil && (by == 0 || a.update != nil)
		})
		if err != nil {
			return 0, err
		}
	}
	return by, nil
}

// built returns the value of a column in the row being built.
func (a *absence) built(f *frame, col *column) doc.Value {
	raw := f.build.Field(col.slot)
	if col.keys != nil {
		raw = raw.Path(col.keys)
	}
	return raw.Value()
}
