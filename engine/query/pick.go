package query

import (
	"math"
	"slices"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// picker finds a statement's rows: one page, in its order, of those for which its terms hold.
type picker struct {
	terms  []term
	scan   access
	paths  []access // the other access paths, which narrow the rows
	walked []access // for an order on one sorted index: a walk of that index; else none
	byID   bool     // the order is by ascending id, the default
	downID bool     // the order is by descending id
	keys   []orderKey
	limit  *bound
	offset *bound
}

// bound is a limit, an offset or a require: a count given when the statement runs.
type bound struct {
	name string
	eval evalFunc
	pos  syntax.Pos
}

// picker compiles the clauses that choose rows. A row must also pass the terms in further. limit and
// offset may be nil.
func (c *compiler) picker(where syntax.Expr, order []syntax.OrderKey, limit, offset syntax.Expr, further ...term) (*picker, error) {
	p := &picker{}
	var err error
	if p.terms, err = c.where(where); err != nil {
		return nil, err
	}
	p.terms = append(p.terms, further...)
	p.scan = access{kind: byScan, rest: remaining(p.terms), whole: len(p.terms) == 0}
	p.paths = accessPaths(c.schema, p.terms, p.scan.rest)
	if err := c.order(p, order); err != nil {
		return nil, err
	}
	p.excludeExpired(c.schema)
	if p.limit, err = c.bound("limit", limit); err != nil {
		return nil, err
	}
	p.offset, err = c.bound("offset", offset)
	return p, err
}

// order compiles an order's keys. Keys after the id are ignored, since ids are unique.
func (c *compiler) order(p *picker, order []syntax.OrderKey) error {
	for _, k := range order {
		n, err := c.expr(k.Expr)
		if err != nil {
			return err
		}
		if n.column == nil {
			return errorAt(fail.Invalid, n.pos, "order: expected a field or a path")
		}
		if hasNoOrder(n.kind) {
			return errorAt(fail.Invalid, n.pos, "order: expected values that have an order, and %s is %s: near answers the nearest first", n.column.name, n.column.typ)
		}
		by, err := collationOf(k, n.column.what, n.column.typ, n.column.collate)
		if err != nil {
			return err
		}
		if len(p.keys) == 0 || !p.keys[len(p.keys)-1].column.id {
			p.keys = append(p.keys, orderKey{column: n.column, collate: by, desc: k.Desc})
		}
	}
	// Ties are broken by ascending id anyway.
	if n := len(p.keys); n > 1 && p.keys[n-1].column.id && !p.keys[n-1].desc {
		p.keys = p.keys[:n-1]
	}
	if len(p.keys) == 0 {
		p.byID = true
		return nil
	}
	key := p.keys[0]
	if len(p.keys) > 1 {
		return nil
	}
	p.byID, p.downID = key.column.id && !key.desc, key.column.id && key.desc
	if kind := indexOn(c.schema, key.column.name); !key.column.id && kind.Ordered() && key.collate == key.column.collate {
		ranged := rangedOn(p.terms, key.column)
		p.walked = []access{{
			kind: byOrder, on: key.column, index: kind, probes: ranged,
			rest: remaining(p.terms, ranged...), desc: key.desc,
		}}
	}
	return nil
}

// bound compiles a count that may be a parameter.
func (c *compiler) bound(name string, e syntax.Expr) (*bound, error) {
	if e == nil {
		return nil, nil
	}
	n, err := c.expr(e)
	if err != nil {
		return nil, err
	}
	return &bound{name: name, eval: n.given(), pos: n.pos}, nil
}

// value returns the count, or otherwise if none is given.
func (b *bound) value(f *frame, otherwise int) (int, error) {
	if b == nil {
		return otherwise, nil
	}
	v := b.eval(f)
	if v.Kind != doc.Null {
		if n, err := (doc.Type{Kind: doc.TypeInt}).Convert(v, b.name); err == nil && n.Int() >= 0 {
			return int(min(n.Int(), math.MaxInt)), nil
		}
	}
	return 0, errorAt(fail.Invalid, b.pos, "%s: expected an int of 0 or more, got %s", b.name, doc.Describe(v))
}

// walk is the state of a run's iteration over the rows.
type walk struct {
	picker  *picker
	table   Table
	access  *access
	test    testFunc
	last    int64 // the highest id of a range of ids
	sink    func(f *frame) bool
	tested  int // documents read
	matched int // of them, those that passed
	skip    int // rows before the page that are still to be skipped
	left    int // rows of the page that are still wanted
	sorts   bool
	ids     []int64        // collected from an index
	docs    []doc.Document // one window of a walk to lower ids
}

func (w *walk) reset() {
	clear(w.docs)
	*w = walk{ids: kept(w.ids), docs: kept(w.docs)}
}

// each calls emit for each of the page's rows in f.doc, in order, until it returns false.
func (p *picker) each(f *frame, t Table, emit func(f *frame) bool) error {
	limit, err := p.limit.value(f, math.MaxInt)
	if err != nil {
		return err
	}
	offset, err := p.offset.value(f, 0)
	if err != nil {
		return err
	}
	need := limit + min(offset, math.MaxInt-limit)
	w := &f.walk
	w.picker, w.table = p, t
	w.skip, w.left, w.sink = offset, limit, emit
	if p.choose(f, t, need); limit == 0 || f.err != nil {
		return f.take()
	}
	if f.doing == atStart {
		f.doing = atRows
	}
	if !w.sorts {
		f.travel()
		return f.take()
	}
	f.sorter.begin(f, p.keys, need)
	w.skip, w.left, w.sink = 0, math.MaxInt, addToSorter
	f.travel()
	if err := f.take(); err != nil {
		return err
	}
	f.doing = atAnswer
	f.sorter.sorted(offset, func(d doc.Document) bool {
		f.doc = d
		f.arena = f.arena[:f.mark]
		return emit(f) && f.err == nil
	})
	return f.take()
}

func addToSorter(f *frame) bool {
	return f.sorter.add(f.doc)
}

// count counts the rows, without reading them if they are one range of an index.
func (p *picker) count(f *frame, t Table) (int, error) {
	w := &f.walk
	w.picker, w.table = p, t
	live := f.live(t)
	if f.err != nil {
		return 0, f.take()
	}
	if len(p.terms) == 0 {
		w.access, w.matched = &p.scan, live
		return live, nil
	}
	for i := range p.paths {
		if a := &p.paths[i]; a.kind == byRange && a.rest == nil && live == t.Len() {
			w.access, w.matched = a, a.reach(f, t)
			return w.matched, f.take()
		}
	}
	w.left, w.sink = math.MaxInt, func(*frame) bool { return true }
	if p.choose(f, t, math.MaxInt); f.err != nil {
		return 0, f.take()
	}
	w.sorts, f.doing = false, atRows
	f.travel()
	return w.matched, f.take()
}

// visitDocument tests one document and passes it on. It returns false if the walk may stop.
func (f *frame) visitDocument(d doc.Document) bool {
	w := &f.walk
	w.tested++
	if w.tested&(f.every-1) == 0 && !f.goesOn() {
		return false
	}
	f.doc = d
	if len(f.arena) != f.mark {
		f.arena = f.arena[:f.mark]
	}
	if w.test != nil && w.test(f) != yes || f.err != nil {
		return f.err == nil
	}
	w.matched++
	if w.skip > 0 {
		w.skip--
		return true
	}
	w.left--
	return w.sink(f) && w.left > 0 && f.err == nil
}

// visitID is visitDocument for the document of that id.
func (f *frame) visitID(id int64) bool {
	d := f.walk.table.Get(id)
	return d == nil || f.visitDocument(d)
}

// visitGathered visits the collected ids, each once, ascending.
func (f *frame) visitGathered() {
	if f.err != nil {
		return
	}
	slices.Sort(f.walk.ids)
	for _, id := range slices.Compact(f.walk.ids) {
		if !f.visitID(id) {
			return
		}
	}
}
