package query

import (
	"context"
	"errors"
	"unsafe"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

const (
	// rowsPerCheck is how many rows, a power of two, a statement tests between two looks at its context, and nodesPerRow how
	// many nodes its expressions may have for that: with more of them it looks after fewer rows.
	rowsPerCheck = 4096
	nodesPerRow  = 64
	// keepBuffer is the largest buffer, in bytes, that a frame keeps from one run for the next.
	keepBuffer = 1 << 20
)

// frame is the state of one run. Expressions report their first error in it and go on with null, so that
// they answer one value each; whoever drives them looks at err after every row.
type frame struct {
	plan   *Plan
	reader Reader
	ctx    context.Context
	params []doc.Value
	now    int64 // epoch milliseconds
	err    error

	account   *Account
	counted   int64   // of what the run holds, in the account
	extra     int64   // bytes held outside the buffers
	outRoof   int     // the length of out past which it is to be counted
	arenaRoof int     // likewise
	own       Account // where the caller has none

	every int // rows, a power of two, tested between two looks at the context

	doing activity
	into  string // at atWrite the collection
	done  int    // of it so far, at atSort in all
	from  *route // at atIDs

	operands  []operand // what binds made of the run's constants
	arena     []byte    // bytes of values made by expressions: constants up to mark, then the row's
	mark      int
	fold      []byte  // scratch of one ~ or like, or of one comparison by a collation
	pattern   pattern // scratch of one ~ or like whose pattern is the row's
	measuring measuring

	doc   doc.Document // the row
	out   []byte       // the answer so far
	rows  int          // in it
	total int          // the rows that a count counts, or the documents that a put wrote

	walk   walk
	group  groupRun
	inner  []innerRun
	search searchRun
	levels []levelRun
	sorter sorter
	build  doc.Builder
	record []byte  // scratch: the document being built
	picked []int64 // the ids a set or del is to write

	// The callbacks of an Ascend or a Range, made once so that a run allocates none.
	onDocument func(doc.Document) bool
	onRanged   func(doc.Document) bool
	onWindow   func(doc.Document) bool
	onFirst    func(doc.Document) bool
	onWalkID   func(int64) bool
	onAccept   func(int64) bool
}

// bind computes the constants of one comparison before the first row.
type bind func(f *frame) error

func newFrame(p *Plan) *frame {
	f := &frame{plan: p, operands: make([]operand, len(p.binds))}
	f.onDocument = f.visitDocument
	f.onRanged = f.visitRanged
	f.onWindow = f.keepWindow
	f.onFirst = f.keepFirst
	f.onWalkID = f.visitID
	f.onAccept = f.accept
	return f
}

func (f *frame) begin(env *Env, s Reader, dst []byte) error {
	f.reader = s
	f.ctx, f.params, f.now, f.out = env.Ctx, env.Params, env.Now.UnixMilli(), dst
	f.every = f.plan.every()
	f.account = env.Account
	if f.account == nil {
		f.own = Account{}
		f.account = &f.own
	}
	f.outRoof, f.arenaRoof = max(cap(dst), Uncounted), max(cap(f.arena), Uncounted)
	if err := f.interrupted(); err != nil {
		return err
	}
	for _, b := range f.plan.binds {
		if err := b(f); err != nil {
			return err
		}
	}
	f.mark = len(f.arena)
	return nil
}

// end forgets the run: what belongs to the caller, and buffers that grew past what is worth keeping.
func (f *frame) end() {
	if f.counted > 0 {
		f.account.hold(-f.counted)
	}
	f.account, f.counted, f.extra = nil, 0, 0
	f.reader, f.inner = nil, f.inner[:0]
	f.ctx, f.params, f.err, f.out, f.doc, f.rows, f.total = nil, nil, nil, nil, nil, 0, 0
	f.doing, f.into, f.done, f.from = atStart, "", 0, nil
	for i := range f.operands {
		f.operands[i].reset()
	}
	f.arena, f.mark = kept(f.arena), 0
	f.fold = kept(f.fold)
	f.pattern.reset()
	if cap(f.record) > keepBuffer {
		f.build = doc.Builder{} // which held that document too
	}
	f.record, f.picked = kept(f.record), kept(f.picked)
	for i := range f.levels {
		f.levels[i].reset()
	}
	f.walk.reset()
	f.search.reset()
	f.group = groupRun{}
	f.sorter.reset()
}

// kept is b emptied, or nil where it grew too large to keep.
func kept[T any](b []T) []T {
	var one T
	if uintptr(cap(b))*unsafe.Sizeof(one) > keepBuffer {
		return nil
	}
	return b[:0]
}

// fail notes the run's first error and answers null.
func (f *frame) fail(pos syntax.Pos, format string, args ...any) doc.Value {
	if f.err == nil {
		f.err = fail.At(fail.Invalid, pos.Line, pos.Column, format, args...)
	}
	return doc.Value{}
}

// setErr notes an error of another package, placed where the statement holds its cause.
func (f *frame) setErr(pos syntax.Pos, err error) doc.Value {
	if f.err == nil {
		f.err = placed(pos, err)
	}
	return doc.Value{}
}

// take is the run's error so far, forgotten.
func (f *frame) take() error {
	err := f.err
	f.err = nil
	return err
}

// placed gives an error of the engine that has no place yet the place pos.
func placed(pos syntax.Pos, err error) error {
	var e *fail.Error
	if pos.Line == 0 || !errors.As(err, &e) || e.Line != 0 {
		return err
	}
	at := *e
	at.Line, at.Column = pos.Line, pos.Column
	return &at
}
