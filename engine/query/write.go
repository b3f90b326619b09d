package query

import (
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// writer returns s as a Writer, and the collection to be written.
func writer(s Reader, name string) (Writer, Table, error) {
	w, ok := s.(Writer)
	if !ok {
		return nil, nil, fail.New(fail.ReadOnly, "the statement writes, and this is a read")
	}
	t, err := table(s, name)
	return w, t, err
}

// pause is called before the nth step of what the frame is doing, and checks the context at some of them.
func (f *frame) pause(n int) error {
	if n&(f.every-1) == f.every-1 {
		f.done = n
		if !f.goesOn() {
			return f.take()
		}
	}
	return nil
}

// write records that documents of that collection are about to be written.
func (f *frame) write(collection string) { f.doing, f.into = atWrite, collection }

// wrote ends a statement that wrote n documents, and returns them if it has a returning.
func (f *frame) wrote(w Writer, n int, returning *projection) (Result, error) {
	if err := w.EndStatement(f.ctx); err != nil {
		return Result{}, err
	}
	r := Result{Kind: Affected, Body: f.out}
	if returning != nil {
		r = f.answer()
	}
	r.Affected = int64(n)
	return r, nil
}

// show appends f.doc, which was written or deleted, to the answer.
func (f *frame) show(returning *projection) error {
	returning.appendRow(f)
	f.rows++
	f.outFits()
	return f.take()
}

// changer is what set and del share: the rows they pick, the number of rows they require and what they
// return.
type changer struct {
	collection string
	pick       *picker
	require    *bound
	returning  *projection // nil for a count
}

// changer compiles the clauses of a set or del.
func (c *compiler) changer(name syntax.Name, where syntax.Expr, order []syntax.OrderKey, limit syntax.Expr, returning *syntax.Returning, require syntax.Expr) (*changer, error) {
	var err error
	if c.schema, err = c.collection(name); err != nil {
		return nil, err
	}
	ch := &changer{collection: c.schema.Name}
	if ch.pick, err = c.picker(where, order, limit, nil); err != nil {
		return nil, err
	}
	if ch.require, err = c.bound("require", require); err != nil {
		return nil, err
	}
	if returning != nil {
		ch.returning, err = c.projection(returning.Items)
	}
	return ch, err
}

// rows collects all ids to be written before the first write.
func (ch *changer) rows(f *frame, t Table) error {
	want, err := ch.require.value(f, -1)
	if err != nil {
		return err
	}
	if err := ch.pick.each(f, t, pickRow); err != nil {
		return err
	}
	return ch.require.met(want, len(f.picked))
}

// met fails if found is not the wanted number of rows. A negative want accepts any.
func (b *bound) met(want, found int) error {
	if want < 0 || found == want {
		return nil
	}
	return errorAt(fail.Require, b.pos, "%s required, %d found", count(want, "row"), found)
}

func pickRow(f *frame) bool {
	f.picked = append(f.picked, f.doc.ID())
	return true
}

// change picks the rows and calls write for each of them. If the statement returns rows, write leaves
// the one to be shown in f.doc.
func (ch *changer) change(f *frame, s Reader, write func(f *frame, w Writer, t Table, id int64) error) (Result, error) {
	w, t, err := writer(s, ch.collection)
	if err != nil {
		return Result{}, err
	}
	if err := ch.rows(f, t); err != nil {
		return Result{}, err
	}
	if ch.returning != nil {
		f.out = append(f.out, '[')
	}
	f.write(ch.collection)
	for n, id := range f.picked {
		if err := f.pause(n); err != nil {
			return Result{}, err
		}
		f.arena = f.arena[:f.mark]
		if err := write(f, w, t, id); err != nil {
			return Result{}, err
		}
		if ch.returning != nil {
			if err := f.show(ch.returning); err != nil {
				return Result{}, err
			}
		}
	}
	return f.wrote(w, len(f.picked), ch.returning)
}

// set compiles a set.
func (c *compiler) set(st *syntax.Set) error {
	ch, err := c.changer(st.Collection, st.Where, st.Order, st.Limit, st.Returning, st.Require)
	if err != nil {
		return err
	}
	u, err := c.update(st.Items)
	if err != nil {
		return err
	}
	c.plan.run = func(f *frame, s Reader) (Result, error) { return ch.change(f, s, u.write) }
	return nil
}

// update is the compiled items of a set.
type update struct {
	schema  *doc.Schema
	assigns []assignment
	must    []*doc.Field
	dropped []int // slots of dropped fields
	pos     syntax.Pos
}

// update compiles the items of a set. They read documents of c.schema.
func (c *compiler) update(items []syntax.Item) (*update, error) {
	u := &update{
		schema: c.schema, assigns: make([]assignment, len(items)), must: required(c.schema), dropped: c.schema.Dropped(),
		pos: items[0].Key.Pos,
	}
	for i, item := range items {
		var err error
		if u.assigns[i], err = c.assign(c.schema, item); err != nil {
			return nil, err
		}
		if u.assigns[i].column.id {
			return nil, errorAt(fail.Invalid, item.Key.Pos, "the id of a document cannot be set")
		}
	}
	return u, nil
}

// write changes the document of an id and leaves it in f.doc.
func (u *update) write(f *frame, w Writer, t Table, id int64) error {
	f.doc = t.Get(id)
	f.build.Reset(u.schema.Slots)
	f.build.Copy(f.doc)
	f.build.Clear(u.dropped)
	for i := range u.assigns {
		if err := u.assigns[i].apply(f); err != nil {
			return err
		}
	}
	if err := f.complete(u.schema.Name, u.must, u.pos); err != nil {
		return err
	}
	f.record = f.build.AppendTo(f.record[:0], id)
	f.doc = f.record
	return w.Put(u.schema.Name, f.record)
}

// del compiles a del.
func (c *compiler) del(st *syntax.Delete) error {
	ch, err := c.changer(st.Collection, st.Where, st.Order, st.Limit, st.Returning, st.Require)
	if err != nil {
		return err
	}
	write := func(f *frame, w Writer, t Table, id int64) error {
		if ch.returning == nil {
			return w.Delete(ch.collection, id)
		}
		// The row is copied before it is deleted: w may not keep its bytes.
		f.record = append(f.record[:0], t.Get(id)...)
		f.doc = f.record
		return w.Delete(ch.collection, id)
	}
	c.plan.run = func(f *frame, s Reader) (Result, error) { return ch.change(f, s, write) }
	return nil
}
