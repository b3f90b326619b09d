package query

import (
	"strconv"

	"fenec/engine/doc"
	"fenec/engine/query/syntax"
)

// collections compiles the statement that lists them: a row {"name", "documents"} each, by name.
func (c *compiler) collections() {
	c.plan.run = func(f *frame, s Reader) (Result, error) {
		f.out = append(f.out, '[')
		for _, name := range s.Names() {
			t, err := table(s, name)
			if err != nil {
				return Result{}, err
			}
			live := f.live(t)
			if err := f.take(); err != nil {
				return Result{}, err
			}
			f.out = append(f.next(), `{"name":`...)
			f.out = doc.AppendQuoted(f.out, []byte(name))
			f.out = append(f.out, `,"documents":`...)
			f.out = strconv.AppendInt(f.out, int64(live), 10)
			f.out = append(f.out, '}')
		}
		return f.answer(), nil
	}
}

// next returns the answer so far, ready for one more row.
func (f *frame) next() []byte {
	f.rows++
	if f.rows > 1 {
		return append(f.out, ',')
	}
	return f.out
}

// describe compiles a describe: a row {"field", "type", "required", "collate", "index"} a field, then one
// for each indexed path.
func (c *compiler) describe(st *syntax.Describe) error {
	schema, err := c.collection(st.Collection)
	if err != nil {
		return err
	}
	c.plan.run = func(f *frame, _ Reader) (Result, error) {
		f.out = append(f.out, '[')
		for i := range schema.Fields {
			field := &schema.Fields[i]
			f.describe(field.Name, field.Type, field.Required, field.Collate.String(), field.Index.String())
		}
		for _, p := range schema.Paths {
			f.describe(p.Path, doc.Type{Kind: doc.TypeJSON}, false, "", p.Index.String())
		}
		return f.answer(), nil
	}
	return nil
}

func (f *frame) describe(name string, t doc.Type, required bool, collate, index string) {
	out := append(f.next(), `{"field":`...)
	out = doc.AppendQuoted(out, []byte(name))
	out = append(out, `,"type":`...)
	out = doc.AppendQuoted(out, []byte(t.String()))
	out = append(out, `,"required":`...)
	out = strconv.AppendBool(out, required)
	out = appendDeclared(append(out, `,"collate":`...), collate)
	out = appendDeclared(append(out, `,"index":`...), index)
	f.out = append(out, '}')
}

// appendDeclared appends the word of a declaration, or null if it is empty.
func appendDeclared(out []byte, word string) []byte {
	if word == "" {
		return append(out, "null"...)
	}
	return doc.AppendQuoted(out, []byte(word))
}
