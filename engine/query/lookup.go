package query

import (
	"math"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/index"
	"fenec/engine/query/syntax"
)

// level is one compiled lookup: it adds to a row of the level above the documents of another
// collection whose key equals the row's. They are found by id or by one lookup in an index.
type level struct {
	at       int // in getPlan.levels and frame.levels
	name     string
	key      []byte        // the bytes before the documents: `,"reviews":[`
	parent   *column       // of the row above
	child    *column       // the id, or a field with an index
	index    doc.IndexKind // of child
	pick     *picker       // the terms, order and page of one row's documents
	show     *projection
	required bool
	next     *level // the lookup on this one's documents; nil if there is none
}

// levelRun is the state of a level in a run. A level finds the documents of one row at a time.
type levelRun struct {
	level  *level
	table  Table
	hash   *index.Hash // nil if the key is the id
	limit  int
	offset int

	key    doc.Value // of the current row
	exists bool      // only whether there is a document is wanted,
	found  bool      // and there is
	sorts  bool
	skip   int // documents before the page that are still to be skipped
	left   int // still wanted
	sorter sorter

	finding bool // documents for a row

	asked  int // rows
	tested int // documents read
	rows   int // documents returned

	// Callbacks made once per frame, so that a row allocates none.
	onID     func(int64) bool
	onSorted func(doc.Document) bool
}

func (r *levelRun) reset() {
	r.table, r.hash, r.key = nil, nil, doc.Value{}
	r.asked, r.tested, r.rows = 0, 0, 0
	r.sorter.reset()
}

// lookups compiles the levels of a get, each against the schema of the one above.
func (c *compiler) lookups(g *getPlan, st *syntax.Get) error {
	top := c.schema
	defer func() { c.schema = top }()
	for i := range st.Lookups {
		l, err := c.level(&st.Lookups[i])
		if err != nil {
			return err
		}
		if l.at = i; i > 0 {
			above := g.levels[i-1]
			above.next = l
			if err := l.checkName(above.show, st.Lookups[i].Collection); err != nil {
				return err
			}
		}
		g.levels = append(g.levels, l)
	}
	// The innermost picker is first: a required level adds a term to the one above.
	for i := len(g.levels) - 1; i >= 0; i-- {
		e, l := &st.Lookups[i], g.levels[i]
		var err error
		if c.schema, err = c.collection(e.Collection); err != nil {
			return err
		}
		var further []term
		if l.next != nil {
			further = l.next.terms()
		}
		if l.pick, err = c.picker(e.Where, e.Order, e.Limit, e.Offset, further...); err != nil {
			return err
		}
	}
	return nil
}

// level compiles a lookup on the documents of c.schema, and sets c.schema to its own.
func (c *compiler) level(e *syntax.Lookup) (*level, error) {
	l := &level{name: e.Collection.Text, required: e.Required, key: append(openKey(false, e.Collection.Text), '[')}
	from, above := syntax.Name{Text: "id", Pos: e.On.Pos}, c.schema
	if e.Parent != nil {
		from = *e.Parent
	}
	var err error
	if c.schema, err = c.collection(e.Collection); err != nil {
		return nil, err
	}
	if l.parent, err = resolve(above, []string{from.Text}, from.Pos); err != nil {
		return nil, err
	}
	if l.child, err = resolve(c.schema, []string{e.On.Text}, e.On.Pos); err != nil {
		return nil, err
	}
	if !l.child.id {
		l.index = indexOn(c.schema, e.On.Text)
		if l.index != doc.IndexHash && l.index != doc.IndexUnique {
			return nil, errorAt(fail.Invalid, e.On.Pos, "lookup: expected an index @hash or @unique on %s of %s: create index on %s (%s) @hash",
				e.On.Text, l.name, l.name, e.On.Text)
		}
	}
	if a, b := kindOf(l.parent.typ), kindOf(l.child.typ); a != doc.Untyped && b != doc.Untyped && !alike(a, b) {
		return nil, errorAt(fail.Invalid, e.On.Pos, "%s of %s is %s and %s of %s is %s: they are never equal",
			e.On.Text, l.name, l.child.typ, from.Text, above.Name, l.parent.typ)
	}
	l.show, err = c.projection(e.Select)
	return l, err
}

// checkName fails if the rows above already have a key with the name of the level.
func (l *level) checkName(show *projection, name syntax.Name) error {
	if show.has(l.name) {
		return errorAt(fail.Invalid, name.Pos, "the rows of lookup %s have a key %s already: select them with that one under another name", l.name, l.name)
	}
	return nil
}

// further returns the terms that the get's rows have to pass in addition to its where.
func (g *getPlan) further() []term {
	if len(g.levels) == 0 {
		return nil
	}
	return g.levels[0].terms()
}

// terms returns the terms of a level on the rows above: if it is required, that there is a document.
func (l *level) terms() []term {
	if !l.required {
		return nil
	}
	return []term{{test: l.exists}}
}

// openLevels prepares the levels for a run.
func (g *getPlan) openLevels(f *frame, s Reader) error {
	if len(f.levels) != len(g.levels) {
		f.levels = make([]levelRun, len(g.levels))
		for i := range f.levels {
			r := &f.levels[i]
			r.level = g.levels[i]
			r.onID = func(id int64) bool { return r.visitID(f, id) }
			r.onSorted = func(d doc.Document) bool { return r.show(f, d) }
		}
	}
	for i, l := range g.levels {
		r := &f.levels[i]
		var err error
		if r.table, err = table(s, l.name); err != nil {
			return err
		}
		if !l.child.id {
			if !f.ready(r.table, l.child.name) {
				return f.take()
			}
			r.hash = r.table.Hash(l.child.name)
		}
		if r.limit, err = l.pick.limit.value(f, math.MaxInt); err != nil {
			return err
		}
		if r.offset, err = l.pick.offset.value(f, 0); err != nil {
			return err
		}
	}
	return nil
}

// emitWithChildren appends the frame's row with the documents of the levels.
func (g *getPlan) emitWithChildren(f *frame) bool {
	g.show.appendOpen(f)
	if f.err != nil {
		return false
	}
	g.levels[0].append(f)
	f.out = append(f.out, '}')
	f.rows++
	return f.outFits() && f.err == nil
}

// append appends the key of the level and the documents of the frame's row. It does not change the frame's row.
func (l *level) append(f *frame) {
	r, row := &f.levels[l.at], f.doc
	f.out = append(f.out, l.key...)
	r.exists, r.skip, r.left = false, r.offset, r.limit
	r.sorts = !l.pick.byID
	if r.limit > 0 {
		if r.sorts {
			r.sorter.begin(f, l.pick.keys, r.limit+min(r.offset, math.MaxInt-r.limit))
		}
		r.find(f)
		if r.sorts && f.err == nil {
			r.sorter.sorted(r.offset, r.onSorted)
		}
		r.sorter.reset()
	}
	f.out, f.doc = append(f.out, ']'), row
}

// exists tests whether there is a document for the frame's row, ignoring the level's page.
func (l *level) exists(f *frame) truth {
	r, row := &f.levels[l.at], f.doc
	r.exists, r.found = true, false
	r.find(f)
	f.doc = row
	return truthOf(r.found)
}

// find visits the documents of the frame's row by ascending id.
func (r *levelRun) find(f *frame) {
	r.asked++
	r.finding = true
	defer func() { r.finding = false }()
	r.key = r.level.parent.value(f.doc)
	switch {
	case r.key.Kind == doc.Null:
	case r.hash != nil:
		r.hash.Ascend(doc.Hash(r.key), r.onID)
	default:
		if id, err := (doc.Type{Kind: doc.TypeInt}).Convert(r.key, ""); err == nil {
			r.visitID(f, id.Int())
		}
	}
}

// visitID adds the document of that id if it is one of the row's. It returns false if no more are wanted.
func (r *levelRun) visitID(f *frame, id int64) bool {
	d := r.table.Get(id)
	if d == nil {
		return true
	}
	r.tested++
	if r.tested&(f.every-1) == 0 && !f.goesOn() {
		return false
	}
	// Two keys may share a hash.
	if r.hash != nil && !doc.Equal(r.level.child.value(d), r.key) {
		return true
	}
	f.doc, f.arena = d, f.arena[:f.mark]
	if test := r.level.pick.scan.test; test != nil && test(f) != yes || f.err != nil {
		return f.err == nil
	}
	switch {
	case r.exists:
		r.found = true
		return false
	case r.sorts:
		return r.sorter.add(d)
	case r.skip > 0:
		r.skip--
		return true
	}
	r.left--
	return r.show(f, d) && r.left > 0
}

// show appends a document with those of the next level.
func (r *levelRun) show(f *frame, d doc.Document) bool {
	f.doc, f.arena = d, f.arena[:f.mark]
	r.level.show.appendOpen(f)
	if r.level.next != nil && f.err == nil {
		r.level.next.append(f)
	}
	f.out = append(f.out, '}')
	r.rows++
	return f.outFits() && f.err == nil
}
