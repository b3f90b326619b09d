package query

import (
	"math"
	"slices"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/index"
	"fenec/engine/query/syntax"
)

// Due determines when a set or del that found nothing to write, or a get whose require was not met, may succeed: for which
// documents its condition holds, and from when on if that depends on the time.
//
// Time makes a condition true only through comparisons of a field with now(), plus or minus a number. Each of them flips
// at times known from the document. So the first time at which a condition holds for a document is one of those times, and
// trying them in order finds it.
type Due struct {
	collection string
	plan       *Plan // of the condition, with its constants and frames
	test       testFunc
	timeless   testFunc // the terms that do not read the time; nil if there are none
	key        *probe   // the first of them that requires one value of a column; nil if there is none
	flips      []flip
	indexed    *doc.Field // if there is only one flip: its field, if an index orders documents by the time of the flip
	inner      bool       // the condition reads other collections
	loose      bool       // documents that do not pass may matter too, so none is tested
}

// flip is a comparison of a field with the time.
type flip struct {
	column *column
	side   evalFunc // what the field is compared with
}

// PrepareDue compiles the condition of a set, a del or a get with require, as Prepare does the statement. The result is
// valid as long as a Plan. It fails with fail.Invalid on other statements, and on a condition that reads the time in
// another way.
func PrepareDue(st syntax.Statement, r Reader) (*Due, error) {
	name, where, require, err := conditionOf(st)
	if err != nil {
		return nil, err
	}
	x := &Due{plan: &Plan{}, loose: require}
	c := &compiler{reader: r, plan: x.plan}
	if c.schema, err = c.collection(name); err != nil {
		return nil, err
	}
	x.collection = c.schema.Name
	timed, inner, err := readsOfTime(where)
	if err != nil {
		return nil, err
	}
	if get, ok := st.(*syntax.Get); ok {
		inner = inner || len(get.Lookups) > 0
		if err := timeElsewhere(get); err != nil {
			return nil, err
		}
	}
	x.inner, x.loose = inner, x.loose || inner
	p, err := c.picker(where, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	x.test = p.scan.test
	x.splitTerms(p)
	for _, t := range timed {
		if err := x.addFlip(c, t); err != nil {
			return nil, err
		}
	}
	if len(timed) == 1 && !x.loose {
		x.indexed = indexedFlip(c.schema, p, timed[0], x.flips[0].column)
	}
	return x, nil
}

// splitTerms separates the terms that do not depend on the time.
func (x *Due) splitTerms(p *picker) {
	var timeless []testFunc
	for i := range p.terms {
		term, timed := &p.terms[i], false
		syntax.Inspect(term.expr, func(e syntax.Expr) {
			call, ok := e.(*syntax.Call)
			timed = timed || ok && call.Name == "now"
		})
		if timed {
			continue
		}
		timeless = append(timeless, term.test)
		if pr := term.probe; x.key == nil && pr != nil && pr.rel == equal && !pr.member && !pr.isNull && !pr.notNull && !pr.column.id {
			x.key = pr
		}
	}
	if len(timeless) > 0 {
		x.timeless = everyOf(timeless)
	}
}

// conditionOf returns the collection and condition of a statement that waits.
func conditionOf(st syntax.Statement) (name syntax.Name, where syntax.Expr, require bool, err error) {
	switch st := st.(type) {
	case *syntax.Set:
		return st.Collection, st.Where, st.Require != nil, nil
	case *syntax.Delete:
		return st.Collection, st.Where, st.Require != nil, nil
	case *syntax.Get:
		if st.Require != nil {
			return st.Collection, st.Where, true, nil
		}
	}
	return name, nil, false, fail.New(fail.Invalid, "only a set or a del waits until there is something to write, and so does a batch of them and of reads")
}

// addFlip compiles one comparison with the time.
func (x *Due) addFlip(c *compiler, t comparedWithNow) error {
	column, err := c.path(t.path)
	if err != nil {
		return err
	}
	if column.kind != doc.Timestamp {
		return errorAt(fail.Invalid, t.path.Pos, "a statement that waits compares a timestamp with now(), and %s is none", column.column.name)
	}
	side, err := c.expr(t.side)
	if err != nil {
		return err
	}
	x.flips = append(x.flips, flip{column.column, side.given()})
	return nil
}

// indexedFlip returns the field whose index orders the documents by when a comparison starts to hold for them, or nil. The
// comparison must be a term of the condition, since then the condition cannot hold without it.
func indexedFlip(s *doc.Schema, p *picker, t comparedWithNow, col *column) *doc.Field {
	if col.keys != nil || !indexOn(s, col.name).Ordered() {
		return nil
	}
	for i := range p.terms {
		if term := &p.terms[i]; term.expr == syntax.Expr(t.whole) && term.probe != nil && term.probe.rel&less != 0 && term.probe.rel&greater == 0 {
			return s.Field(col.name)
		}
	}
	return nil
}

// Loose reports whether documents for which the condition does not hold may matter: changed, deleted or expired ones.
func (x *Due) Loose() bool { return x.loose }

// Key returns a column and the hash of the one value that the condition requires in it. ok is false if it requires none.
func (x *Due) Key(env *Env, s Reader) (column string, hash uint64, ok bool) {
	if x.key == nil {
		return "", 0, false
	}
	f := x.plan.frame()
	defer x.plan.release(f)
	if err := f.begin(env, s, nil); err != nil {
		return "", 0, false // a run will return the error
	}
	o := &f.operands[x.key.operand]
	return x.key.column.name, doc.Hash(o.value), !o.null
}

// KeyOf returns the hash of the value that d has in the column of Key, if there is one.
func (x *Due) KeyOf(d doc.Document) uint64 { return doc.Hash(x.key.column.raw(d).Value()) }

// Never is the time of an event that does not happen by the passing of time.
const Never = math.MaxInt64

// Next returns the first time, from env.Now on, at which the condition holds for one of the documents, in epoch
// milliseconds, or Never.
func (x *Due) Next(env *Env, s Reader, documents []doc.Document) (int64, error) {
	f := x.plan.frame()
	defer x.plan.release(f)
	now := env.Now.UnixMilli()
	if err := f.begin(env, s, nil); err != nil {
		return 0, err
	}
	first := int64(Never)
	for _, d := range documents {
		if first = x.before(f, d, now, first); first == now || f.err != nil {
			break
		}
	}
	return first, f.take()
}

// Later returns, for a condition that is Loose, the first time after env.Now at which the number of matching documents of t
// may change: because a comparison with the time flips or a document expires. It returns Never if time changes nothing.
func (x *Due) Later(env *Env, s Reader, t Table, documents []doc.Document) (int64, error) {
	own := t.Schema().Name == x.collection
	if !own && !x.inner {
		return Never, nil
	}
	f := x.plan.frame()
	defer x.plan.release(f)
	if err := f.begin(env, s, nil); err != nil {
		return 0, err
	}
	now, first, ttl := f.now, int64(Never), t.Schema().TTL()
	for _, d := range documents {
		if own {
			first = x.before(f, d, now, first)
		}
		if ttl != nil {
			first = min(first, expiry(ttl, d, now))
		}
	}
	return first, f.take()
}

// All is Next for all documents of the collection, if the condition holds for none of them now. For a statement that counts
// documents or reads other collections it returns the next time at which any of them may matter.
func (x *Due) All(env *Env, s Reader) (int64, error) {
	f := x.plan.frame()
	defer x.plan.release(f)
	if err := f.begin(env, s, nil); err != nil {
		return 0, err
	}
	t, err := table(s, x.collection)
	if err != nil {
		return 0, err
	}
	first := int64(Never)
	if x.loose {
		first = x.nextEnd(f, s)
	}
	switch {
	case len(x.flips) == 0 || f.err != nil:
	case x.indexed != nil:
		first = x.walk(f, t, first)
	default:
		first = x.scan(f, t, first)
	}
	return first, f.take()
}

// scan reads every document.
func (x *Due) scan(f *frame, t Table, first int64) int64 {
	now, seen := f.now, 0
	t.Ascend(1, func(d doc.Document) bool {
		if seen++; seen&(rowsPerCheck-1) == 0 && !f.goesOn() {
			return false
		}
		first = x.before(f, d, now, first)
		return first > now && f.err == nil
	})
	return first
}

// walk reads the documents that do not pass yet in the order in which they come to pass, until one passes.
func (x *Due) walk(f *frame, t Table, first int64) int64 {
	now := f.now
	at, ok := x.side(f, &x.flips[0])
	if !ok || !f.ready(t, x.indexed.Name) {
		return first
	}
	seen := 0
	from := index.Bound{Value: doc.TimestampValue(at), Inclusive: true}
	t.Sorted(x.indexed.Name).Range(from, index.Bound{Unbounded: true}, false, func(id int64) bool {
		if seen++; seen&(rowsPerCheck-1) == 0 && !f.goesOn() {
			return false
		}
		first = x.before(f, t.Get(id), now, first)
		return first == Never && f.err == nil
	})
	return first
}

// nextEnd returns when the next document of any collection expires. If the condition has no inner get, only its own
// collection counts.
func (x *Due) nextEnd(f *frame, s Reader) int64 {
	first := int64(Never)
	for _, name := range s.Names() {
		t := s.Table(name)
		if t == nil || !x.inner && name != x.collection {
			continue
		}
		ttl := t.Schema().TTL()
		if ttl == nil || !f.ready(t, ttl.Name) {
			continue
		}
		over := index.Bound{Value: doc.TimestampValue(ttl.Deadline(f.now))}
		t.Sorted(ttl.Name).Range(over, index.Bound{Unbounded: true}, false, func(id int64) bool {
			first = min(first, expiry(ttl, t.Get(id), f.now))
			return false
		})
	}
	return first
}

// expiry returns when d expires by its ttl, or Never if it has expired already or does not expire.
func expiry(ttl *doc.Field, d doc.Document, now int64) int64 {
	deadline := ttl.Deadline(now)
	if at, ok := d.Field(ttl.Slot).Timestamp(); ok && at > deadline {
		return ahead(now, at, deadline)
	}
	return Never
}

// before returns the first time from now on at which d passes, or first if that is earlier.
func (x *Due) before(f *frame, d doc.Document, now, first int64) int64 {
	var room [8]int64
	turns := room[:0]
	x.at(f, now)
	if !x.loose {
		f.doc, f.arena = d, f.arena[:f.mark]
		if x.timeless != nil && x.timeless(f) != yes || f.err != nil {
			return first
		}
		turns = append(turns, now)
	}
	for i := range x.flips {
		f.doc = d
		at, ok := d.Field(x.flips[i].column.slot).Timestamp()
		side, known := x.side(f, &x.flips[i])
		if !ok || !known {
			continue
		}
		// The result of the comparison may change when the sides become equal, and a millisecond later.
		if turn := ahead(now, at, side); turn < Never {
			turns = append(turns, turn, turn+1)
		}
	}
	slices.Sort(turns)
	for _, turn := range turns {
		if turn < now || turn == now && x.loose || turn >= first {
			continue
		}
		if x.loose {
			return turn
		}
		x.at(f, turn)
		f.doc, f.arena = d, f.arena[:f.mark]
		if f.err == nil && (x.test == nil || x.test(f) == yes) {
			return turn
		}
	}
	return first
}

// ahead returns when a value that is side now and moves with the time equals at, or Never if that overflows.
func ahead(now, at, side int64) int64 {
	away := at - side
	if away > 0 != (at > side) || away > 0 && now > math.MaxInt64-1-away {
		return Never
	}
	return now + away
}

// side returns the value with which a field is compared, as of now. ok is false if it is not a time.
func (x *Due) side(f *frame, m *flip) (at int64, ok bool) {
	v := m.side(f)
	return v.Int(), v.Kind == doc.Timestamp
}

// at sets the run's time.
func (x *Due) at(f *frame, now int64) {
	if f.now == now {
		return
	}
	f.now = now
	f.arena, f.mark = f.arena[:0], 0
	for i := range f.operands {
		f.operands[i].reset()
	}
	for _, b := range x.plan.binds {
		if err := b(f); err != nil {
			f.err = err
			return
		}
	}
	f.mark = len(f.arena)
}
