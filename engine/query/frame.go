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
	// rowsPerCheck is how many rows, a power of two, a statement tests between two checks of its context. nodesPerRow is
	// how many nodes its expressions may have for that: with more of them it checks after fewer rows.
	rowsPerCheck = 4096
	nodesPerRow  = 64
	// keepBuffer is the largest buffer, in bytes, that a frame keeps from one run for the next.
	keepBuffer = 1 << 20
)

// frame is the state of one run. Expressions store the first error in it and continue with null, so that
// they return just a value. Their caller checks err after every row.
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
	outRoof   int     // the length of out past which it is counted again
	arenaRoof int     // likewise
	own       Account // used if the caller has none

	every int // rows, a power of two, tested between two checks of the context

	doing activity
	into  string  // at atWrite the collection
	done  int     // of it so far, at atSort in all
	from  *access // at atIDs

	operands  []operand // the run's constants, as binds converted them
	arena     []byte    // bytes of values computed by expressions: constants up to mark, then the row's
	mark      int
	fold      []byte  // scratch of one ~ or like, or of one comparison by a collation
	pattern   pattern // scratch of one ~ or like whose pattern depends on the row
	measuring measuring

	doc   doc.Document // the row
	out   []byte       // the answer so far
	rows  int          // in it
	total int          // the rows counted by a count, or the documents written by a put

	walk   walk
	group  groupRun
	inner  []innerRun
	search searchRun
	levels []levelRun
	sorter sorter
	build  doc.Builder
	record []byte  // scratch: the document being built
	picked []int64 // the ids that a set or del will write

	// The callbacks of an Ascend or a Range, made once per frame so that a run allocates none.
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
	f.outRoof, f.arenaRoof = Uncounted, max(cap(f.arena), Uncounted)
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

// end clears the frame: references to the caller's data, and buffers that are too large to keep.
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
		f.build = doc.Builder{} // it held that document too
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

// kept returns b emptied, or nil if it is too large to keep.
func kept[T any](b []T) []T {
	var one T
	if uintptr(cap(b))*unsafe.Sizeof(one) > keepBuffer {
		return nil
	}
	return b[:0]
}

// fail records the run's first error and returns null.
func (f *frame) fail(pos syntax.Pos, format string, args ...any) doc.Value {
	if f.err == nil {
		f.err = fail.At(fail.Invalid, pos.Line, pos.Column, format, args...)
	}
	return doc.Value{}
}

// setErr records an error of another package, with the place in the statement of its cause.
func (f *frame) setErr(pos syntax.Pos, err error) doc.Value {
	if f.err == nil {
		f.err = placed(pos, err)
	}
	return doc.Value{}
}

// take returns the run's error and clears it.
func (f *frame) take() error {
	err := f.err
	f.err = nil
	return err
}

// placed sets the place of an error of the engine to pos, unless it has one.
func placed(pos syntax.Pos, err error) error {
	var e *fail.Error
	if pos.Line == 0 || !errors.As(err, &e) || e.Line != 0 {
		return err
	}
	at := *e
	at.Line, at.Column = pos.Line, pos.Column
	return &at
}
