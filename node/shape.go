package node

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"fenec/engine"
	"fenec/engine/doc"
)

// shape is the rows of a live query: those of one collection that pass a filter. The streams of a tenant that ask for the
// same rows share it, and its events.
type shape struct {
	key        shapeKey
	collection string
	fields     []string      // that the filter and select read, without the id
	whole      bool          // every field is selected
	all        *engine.Query // every row
	one        *engine.Query // the row of the id in the last parameter, if it passes
	params     []doc.Value   // of all

	uses   atomic.Int64 // streams of it; changed under streams.mu
	making sync.Mutex   // held while an event is made, so that only one of many streams makes it
	last   atomic.Pointer[advance]
}

// shapeKey identifies a shape. What one scope reads is not sent to another.
type shapeKey struct {
	scope engine.Scope
	rows  string // the statement and its parameters
}

// maxShared is the largest event in bytes that a shape keeps for other streams.
const maxShared = 64 << 10

// readShape reads the query string of a live query.
func (c *call) readShape() (*shape, error) {
	since, err := c.statement.LiveRows(c.request.Query)
	if err == nil && since != nil {
		c.cursor, err = parseCursor("since", since)
	}
	if err != nil {
		return nil, err
	}
	s := &shape{collection: string(c.statement.Name)}
	if s.all, err = c.tenant.DB.Query(string(c.statement.Text)); err == nil {
		err = s.all.FollowsWrites()
	}
	if err != nil {
		return nil, err
	}
	s.fields, s.whole = s.all.Fields()
	c.statement.LiveRow()
	if s.one, err = c.tenant.DB.Query(string(c.statement.Text)); err != nil {
		return nil, err
	}
	s.params = c.keptParams()
	s.key = shapeKey{c.scope, rowsKey(c.statement.Text, s.params)}
	return s, nil
}

// next returns the advance from where a stream is, nil if there was no change since. If another stream of the shape has made
// it, it is reused.
func (s *shape) next(st *stream) (*advance, error) {
	if last := s.made(st); last != nil {
		return last, nil
	}
	s.making.Lock()
	defer s.making.Unlock()
	if last := s.made(st); last != nil {
		return last, nil
	}
	next, err := st.advance()
	if next != nil && next.end == nil && s.uses.Load() > 1 && cap(next.event) <= maxShared {
		s.last.Store(next)
	}
	return next, err
}

// made returns the advance from where a stream is if another stream has made it.
func (s *shape) made(st *stream) *advance {
	last := s.last.Load()
	if last == nil || last.from != st.seq || !st.isThere(last) {
		return nil
	}
	return last
}

// altered reports whether two schemas of the collection read the shape from different fields. A field is its slot: a slot is
// never reused, and its type and collation never change. An unknown schema counts as different.
func (s *shape) altered(before, after *doc.Schema) bool {
	switch {
	case before == nil || after == nil:
		return true
	case s.whole:
		return !slices.EqualFunc(before.Fields, after.Fields, func(a, b doc.Field) bool { return a.Name == b.Name && a.Slot == b.Slot })
	}
	return slices.ContainsFunc(s.fields, func(name string) bool {
		was, is := before.Field(name), after.Field(name)
		return was == nil || is == nil || was.Slot != is.Slot
	})
}

// keptParams returns copies of the call's parameters that do not refer to the call or its request.
func (c *call) keptParams() []doc.Value {
	params := slices.Clone(c.statement.Params)
	for i := range params {
		params[i].B = bytes.Clone(params[i].B)
	}
	return params
}

func rowsKey(text []byte, params []doc.Value) string {
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
	view    *engine.View
	params  []doc.Value     // of one
	account *engine.Account // of the event being made
}

func (s *shape) in(v *engine.View, account *engine.Account) reading {
	return reading{s, v, append(slices.Clip(s.params), doc.Value{}), account}
}

// run runs a query that appends to the event, all of which the account then counts.
func (r reading) run(q *engine.Query, params []doc.Value, event []byte) (engine.Result, error) {
	r.account.Return(0) // the event so far is counted with the answer
	res, err := r.view.Run(q, params, event)
	if err == nil {
		r.account.Return(0)
		err = r.account.Hold(long(int64(cap(res.Body))), "making an event")
	}
	return res, err
}

// appendAll appends the rows of the shape, as a list.
func (r reading) appendAll(dst []byte) ([]byte, error) {
	res, err := r.run(r.all, r.shape.params, dst)
	return res.Body, err
}

// appendOne appends the row of an id, and reports whether the shape has it.
func (r reading) appendOne(dst []byte, id int64) (_ []byte, found bool, err error) {
	start := len(dst)
	r.params[len(r.params)-1] = doc.IntValue(id)
	res, err := r.run(r.one, r.params, dst)
	if err != nil {
		return dst, false, err
	}
	if res.Rows == 0 {
		return res.Body[:start], false, nil
	}
	body := slices.Delete(res.Body, start, start+1) // the row, without its list
	return body[:len(body)-1], true, nil
}

// check returns an error if the shape can no longer be read.
func (r reading) check() error {
	_, _, err := r.appendOne(nil, 0)
	return err
}
