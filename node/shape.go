package node

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// shapeKeys are the keys of a shape that are no field.
const shapeKeys = keySelect | keyWhere | keySince

// shape is the rows a live query is about: those of one collection that pass a filter. The streams of a tenant that ask
// for the same share it, and the events of it.
type shape struct {
	key        string // the same of the same shape
	collection string
	all        *engine.Query // every row
	one        *engine.Query // that of the id in the last parameter, where it is one
	params     []doc.Value   // of all

	uses   atomic.Int64 // streams of it; changed under streams.mu
	making sync.Mutex   // held while an event is made, so that of many streams one makes it
	last   atomic.Pointer[advance]
}

// advance is how a shape moved from one change to another, the same for every stream that stands at the first.
type advance struct {
	from, to uint64
	event    []byte // nil where nothing of it concerns the shape
}

// maxShared is the most bytes of an event that a shape keeps for other streams.
const maxShared = 64 << 10

// checkShapeKey refuses a key that asks for a window, an answer of another kind, or other collections.
func checkShapeKey(which keys, key []byte) error {
	name := which.String()
	switch {
	case which&^shapeKeys != 0:
	case string(key) == "near", string(key) == "match":
		name = string(key)
	default:
		return nil
	}
	return fail.New(fail.Invalid, "%s does not go with a live query: it is a set of rows, which takes filters, select and since", name)
}

// readShape reads the query string of a live query.
func (c *call) readShape() (*shape, error) {
	if err := c.readQuery(shapeKeys); err != nil {
		return nil, err
	}
	if bytes.IndexByte(c.selected, '(') >= 0 {
		return nil, fail.New(fail.Invalid, "aggregates do not go with a live query: it is a set of rows, which takes filters, select and since")
	}
	c.keepID()
	c.text = append(append(c.text, "get "...), c.name...)
	if len(c.selected) > 0 {
		c.text = append(append(c.text, " select "...), c.selected...)
	}
	selected := len(c.text)
	c.appendWhere()
	s := &shape{collection: string(c.name)}
	var err error
	if s.all, err = c.shapeQuery(string(c.text)); err != nil {
		return nil, err
	}
	c.text = append(c.text[:selected], " where "...)
	if len(c.condition) > 0 {
		c.text = append(append(append(c.text, '('), c.condition...), ") and "...)
	}
	c.text = strconv.AppendInt(append(c.text, "id = $"...), int64(len(c.params)+1), 10)
	if s.one, err = c.tenant.db.Query(string(c.text)); err != nil {
		return nil, err
	}
	s.params = c.keptParams()
	s.key = shapeKey(c.text, s.params)
	return s, nil
}

// keepID has the id among the fields selected.
func (c *call) keepID() {
	if len(c.selected) == 0 {
		return
	}
	for list, more := c.selected, true; more; {
		var item []byte
		if item, list, more = bytes.Cut(list, comma); string(item) == "id" {
			return
		}
	}
	c.selected = slices.Insert(c.selected, 0, []byte("id,")...)
}

// shapeQuery is a shape's statement, whose rows are those of its collection and change with writes to it alone.
func (c *call) shapeQuery(text string) (*engine.Query, error) {
	tree, err := syntax.Parse(text)
	if err != nil {
		return nil, err
	}
	syntax.Inspect(tree.(*syntax.Get).Where, func(x syntax.Expr) {
		switch x := x.(type) {
		case *syntax.Call:
			if x.Name == "now" {
				err = fail.New(fail.Invalid, "now() does not go with a live query, whose rows change with writes and not with the time")
			}
		case *syntax.InnerGet:
			err = fail.New(fail.Invalid, "a get inside the filter does not go with a live query, whose rows change with writes to %s alone", c.name)
		}
	})
	if err != nil {
		return nil, err
	}
	return c.tenant.db.Query(text)
}

// keptParams are the call's parameters, copied out of what belongs to the call and its request.
func (c *call) keptParams() []doc.Value {
	params := slices.Clone(c.params)
	for i := range params {
		params[i].B = bytes.Clone(params[i].B)
	}
	return params
}

func shapeKey(text []byte, params []doc.Value) string {
	key := slices.Clone(text)
	for _, p := range params {
		key = append(key, 0, byte(p.Kind))
		key = binary.AppendUvarint(key, p.N)
		key = binary.AppendUvarint(key, uint64(len(p.B)))
		key = append(key, p.B...)
	}
	return string(key)
}

// reading is a shape being read in a view.
type reading struct {
	*shape
	view   *engine.View
	params []doc.Value // of one
}

func (s *shape) in(v *engine.View) reading {
	return reading{s, v, append(slices.Clip(s.params), doc.Value{})}
}

// appendAll appends the rows of the shape, as a list.
func (r reading) appendAll(dst []byte) ([]byte, error) {
	res, err := r.view.Run(r.all, r.shape.params, dst)
	return res.Body, err
}

// appendOne appends the row of an id, and tells whether the shape has it.
func (r reading) appendOne(dst []byte, id int64) (_ []byte, found bool, err error) {
	start := len(dst)
	r.params[len(r.params)-1] = doc.IntValue(id)
	res, err := r.view.Run(r.one, r.params, dst)
	if err != nil {
		return dst, false, err
	}
	if res.Rows == 0 {
		return res.Body[:start], false, nil
	}
	body := slices.Delete(res.Body, start, start+1) // the row, out of its list
	return body[:len(body)-1], true, nil
}

// check finds out whether the shape can still be read.
func (r reading) check() error {
	_, _, err := r.appendOne(nil, 0)
	return err
}
