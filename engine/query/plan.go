package query

import (
	"context"
	"sync"
	"time"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// Kind is the kind of a statement's result.
type Kind uint8

const (
	// Rows is a JSON array of objects.
	Rows Kind = iota + 1
	// Affected is a count of documents written.
	Affected
	// Message is a sentence.
	Message
)

// Result is the result of a statement.
type Result struct {
	Kind     Kind
	Body     []byte // of Rows: Run's dst with the JSON array appended; else dst
	Rows     int    // of Rows: the length of the array
	Affected int64  // documents written, also if a write returns rows
	Message  string // of Message
}

// Env is the input of a run other than the data.
type Env struct {
	Ctx    context.Context // nil for one that never ends
	Params []doc.Value     // $1 is Params[0]; doc.Untyped is text read by the type it meets; more than the statement uses are fine
	Now    time.Time       // the value of now() throughout the run

	Account *Account // what the run holds is counted there; nil for a limit of its own
}

// ErrLongAnswer is returned for an answer longer than Account.MostAnswer.
var ErrLongAnswer = fail.New(fail.TooLarge, "the answer is longer than it may be")

// Plan is a prepared statement. It is safe for concurrent runs.
type Plan struct {
	writes  bool
	schema  bool
	compact *string // the collection a compact names; empty for the whole file
	params  int     // the highest parameter the statement uses
	nodes   int     // of its expressions
	binds   []bind
	run     func(f *frame, s Reader) (Result, error)
	frames  sync.Pool // of *frame
}

// Prepare resolves a statement's names against the schemas of r and compiles it. The plan is valid as long
// as r.SchemaVersion does not change. Prepare fails with fail.NotFound on an unknown collection or field, and
// with fail.Invalid on an expression that can never be valid, each with its place in the statement.
func Prepare(st syntax.Statement, r Reader) (*Plan, error) {
	p := &Plan{}
	c := &compiler{reader: r, plan: p}
	var err error
	switch st := st.(type) {
	case *syntax.Get:
		err = c.get(st)
	case *syntax.Explain:
		err = c.explain(st.Get)
	case *syntax.Put:
		p.writes = true
		err = c.put(st)
	case *syntax.Set:
		p.writes = true
		err = c.set(st)
	case *syntax.Delete:
		p.writes = true
		err = c.del(st)
	case *syntax.CreateCollection:
		p.writes, p.schema = true, true
		err = c.createCollection(st)
	case *syntax.DropCollection:
		p.writes, p.schema = true, true
		err = c.dropCollection(st)
	case *syntax.CreateIndex:
		p.writes, p.schema = true, true
		err = c.createIndex(st)
	case *syntax.AddField:
		p.writes, p.schema = true, true
		err = c.addField(st)
	case *syntax.DropField:
		p.writes, p.schema = true, true
		err = c.dropField(st)
	case *syntax.RenameField:
		p.writes, p.schema = true, true
		err = c.renameField(st)
	case *syntax.Collections:
		c.collections()
	case *syntax.Describe:
		err = c.describe(st)
	case *syntax.Compact:
		err = c.compact(st)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Writes reports whether the plan's runs need a Writer.
func (p *Plan) Writes() bool { return p.writes }

// Schema reports whether the statement changes schemas.
func (p *Plan) Schema() bool { return p.schema }

// Compact reports whether the statement is a compact, which the engine runs itself, and of which
// collection: "" for the whole file.
func (p *Plan) Compact() (collection string, ok bool) {
	if p.compact == nil {
		return "", false
	}
	return *p.compact, true
}

// Run runs the plan over s, a Writer if p.Writes(), and appends the answer to dst. After an error the
// caller undoes what was written. env may be used again once Run has returned.
func (p *Plan) Run(env *Env, s Reader, dst []byte) (Result, error) {
	if n := len(env.Params); n < p.params {
		return Result{}, fail.New(fail.Invalid, "the statement takes %s, got %d", count(p.params, "parameter"), n)
	}
	f := p.frame()
	defer p.release(f)
	if err := f.begin(env, s, dst); err != nil {
		return Result{}, err
	}
	r, err := p.run(f, s)
	if err == nil {
		f.out = r.Body
		f.outFits()    // which has counted nothing yet of a list of schemas
		err = f.take() // an incomplete answer is not returned
	}
	if err == nil && f.account.longAnswer(r.Body) {
		err = ErrLongAnswer
	}
	if err != nil {
		return Result{}, err
	}
	f.counted -= min(bytesOf(r.Body), f.counted) // the caller keeps the answer
	return r, nil
}

// every returns how many rows, a power of two, a run tests between two checks of its context.
func (p *Plan) every() int {
	every := rowsPerCheck
	for n := p.nodes / nodesPerRow; n > 0 && every > 1; n /= 2 {
		every /= 2
	}
	return every
}

// frame returns a frame for a run, to be released after it.
func (p *Plan) frame() *frame {
	if f, ok := p.frames.Get().(*frame); ok {
		return f
	}
	return newFrame(p)
}

// release returns a frame to the pool. It keeps no references of this run.
func (p *Plan) release(f *frame) {
	f.end()
	p.frames.Put(f)
}
