package query

import (
	"bytes"

	"fenec/engine/doc"
	"fenec/engine/query/syntax"
)

// projection writes a row as a JSON object.
type projection struct {
	items []projected
}

// projected is one key of the object with its value.
type projected struct {
	key    []byte // the bytes before the value: `{"id":` or `,"title":`
	column *column
	eval   evalFunc // if it is not a column
	kind   doc.Kind // of the values, as a node's
}

// projection compiles a select; nil items are the id and every field.
func (c *compiler) projection(items []syntax.SelectItem) (*projection, error) {
	p := &projection{}
	if items == nil {
		p.add("id", node{column: &column{name: "id", id: true}})
		for i := range c.schema.Fields {
			field := &c.schema.Fields[i]
			p.add(field.Name, node{column: &column{name: field.Name, slot: field.Slot, typ: field.Type}})
		}
		return p, nil
	}
	for _, item := range items {
		n, err := c.expr(item.Expr)
		if err != nil {
			return nil, err
		}
		p.add(item.As, n)
	}
	return p, nil
}

func (p *projection) add(key string, n node) {
	item := projected{key: openKey(len(p.items) == 0, key), column: n.column, kind: n.kind}
	if n.column == nil {
		item.eval = n.eval
	}
	p.items = append(p.items, item)
}

// openKey returns the bytes before a value in an object.
func openKey(first bool, key string) []byte {
	open := byte(',')
	if first {
		open = '{'
	}
	return append(doc.AppendQuoted([]byte{open}, []byte(key)), ':')
}

// value returns the item's value for the frame's row.
func (p *projected) value(f *frame) doc.Value {
	if p.column != nil {
		return p.column.value(f.doc)
	}
	return p.eval(f)
}

// appendRow appends the frame's row to its answer.
func (p *projection) appendRow(f *frame) {
	p.appendOpen(f)
	f.out = append(f.out, '}')
}

// has reports whether the objects have the key.
func (p *projection) has(key string) bool {
	open := openKey(false, key)
	for i := range p.items {
		if bytes.Equal(p.items[i].key[1:], open[1:]) {
			return true
		}
	}
	return false
}

// appendOpen is appendRow without the end of the object, which more keys may follow.
func (p *projection) appendOpen(f *frame) {
	out := f.out
	if out[len(out)-1] != '[' {
		out = append(out, ',')
	}
	for i := range p.items {
		item := &p.items[i]
		out = append(out, item.key...)
		switch {
		case item.column == nil:
			out = doc.AppendValueJSON(out, item.eval(f))
		case item.column.id:
			out = doc.AppendValueJSON(out, doc.IntValue(f.doc.ID()))
		default:
			out = doc.AppendJSON(out, item.column.raw(f.doc))
		}
	}
	f.out = out
}
