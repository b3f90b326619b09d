package engine

import (
	"context"
	"encoding/binary"
	"errors"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query"
	"fenec/engine/query/syntax"
)

// ErrNothing is returned by a claim that found nothing to write.
var ErrNothing = errors.New("there is nothing to write")

// Claim is a statement or a batch of sets, dels and reads that waits until it has something to write.
type Claim struct {
	// Line is the queue of the claim. It is equal for claims that always find something to write at the same time.
	Line Line

	parts []claimPart // of the sets and dels, and of the gets that require
}

// Line identifies a queue of claims.
type Line struct {
	scope Scope
	text  string
}

type claimPart struct {
	statement *statement
	params    []doc.Value
}

// Claim parses statements as one claim. It returns nil if all of them only read. It fails with fail.Invalid on statements
// that always write and on conditions whose changes cannot be foreseen. at is the index of the statement at fault, -1 if
// it is none of them.
func (db *DB) Claim(scope Scope, sts []Statement) (c *Claim, at int, err error) {
	if err := scope.MayRead(); err != nil {
		return nil, -1, err
	}
	c = &Claim{}
	writes := false
	for i, st := range sts {
		s, err := db.statements.parse(st.Text)
		if err != nil {
			return nil, i, err
		}
		if err := scope.permits(s); err != nil {
			return nil, i, err
		}
		writes = writes || s.writes()
		if !s.writes() && !s.requires() {
			continue
		}
		part := claimPart{s, st.Params}
		if err := db.checkPart(&part); err != nil {
			return nil, i, err
		}
		c.parts = append(c.parts, part)
	}
	if !writes {
		return nil, 0, nil
	}
	c.Line = Line{scope, c.line()}
	return c, 0, nil
}

// line returns the text of the claim's Line. Whether a single statement writes depends only on its collection, condition, limit and
// require, not on what it writes, its order and what it returns. So workers that write their own names share one queue. In
// a batch a statement may read what another wrote, so the whole text counts.
func (c *Claim) line() string {
	var line []byte
	if len(c.parts) == 1 {
		p := &c.parts[0]
		w := p.statement.wait()
		line = append(append(line, w.line...), 0)
		for _, n := range w.params {
			line = appendParam(line, p.params[n-1])
		}
		return string(line)
	}
	for i := range c.parts {
		p := &c.parts[i]
		line = append(append(line, p.statement.tree.String()...), 0)
		for _, v := range p.params {
			line = appendParam(line, v)
		}
	}
	return string(line)
}

// appendParam appends a parameter in an encoding that differs for different values.
func appendParam(dst []byte, v doc.Value) []byte {
	dst = append(dst, byte(v.Kind))
	dst = binary.AppendUvarint(dst, v.N)
	dst = binary.AppendUvarint(dst, uint64(len(v.B)))
	return append(dst, v.B...)
}

// checkPart refuses a statement that cannot wait.
func (db *DB) checkPart(p *claimPart) error {
	for _, n := range p.statement.wait().params {
		if n > len(p.params) {
			return fail.New(fail.Invalid, "the statement has the parameter $%d, and %d are given", n, len(p.params))
		}
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	_, err := p.statement.due(&db.reader)
	return err
}

// waiting is what a claim needs to know of a statement, computed once.
type waiting struct {
	line   string   // of a set or del: the collection, the condition, the limit and the require
	params []int    // of those, from 1
	timed  bool     // the passing of time can make it find something
	names  []string // of the collections whose changes matter
}

// wait returns the waiting of s.
func (s *statement) wait() *waiting {
	w := s.waiting.Load()
	if w == nil {
		w = newWaiting(s.tree)
		s.waiting.Store(w)
	}
	return w
}

func newWaiting(tree syntax.Statement) *waiting {
	if get, ok := tree.(*syntax.Get); ok {
		w := &waiting{names: []string{get.Collection.Text}, timed: true}
		if len(get.Lookups) > 0 {
			w.names = []string{everywhere}
		}
		syntax.Inspect(get.Where, w.note)
		return w
	}
	del := &syntax.Delete{}
	switch st := tree.(type) { // checkPart refuses any other
	case *syntax.Set:
		del.Collection, del.Where, del.Limit, del.Require = st.Collection, st.Where, st.Limit, st.Require
	case *syntax.Delete:
		del.Collection, del.Where, del.Limit, del.Require = st.Collection, st.Where, st.Limit, st.Require
	}
	w := &waiting{line: del.String(), names: []string{del.Collection.Text}, timed: del.Require != nil}
	syntax.Inspect(del.Where, w.note)
	syntax.Inspect(del.Limit, w.note)
	syntax.Inspect(del.Require, w.note)
	return w
}

// note records the parameters, collections and times that an expression of the statement uses.
func (w *waiting) note(e syntax.Expr) {
	switch e := e.(type) {
	case *syntax.Param:
		w.params = append(w.params, e.N)
	case *syntax.InnerGet:
		w.names, w.timed = []string{everywhere}, true
	case *syntax.Call:
		w.timed = w.timed || e.Name == "now"
	}
}

// plannedDue is a query.Due and the version of the schemas it was made for.
type plannedDue struct {
	due     *query.Due
	version uint64
}

// due returns when s may find something, planned for the current schemas of r. The caller holds the database's lock.
func (s *statement) due(r query.Reader) (*query.Due, error) {
	version := r.SchemaVersion()
	if p := s.plannedDue.Load(); p != nil && p.version == version {
		return p.due, nil
	}
	due, err := query.PrepareDue(s.tree, r)
	if err != nil {
		return nil, err
	}
	s.plannedDue.Store(&plannedDue{due, version})
	return due, nil
}

// claimedLocked checks the block of a claim that is about to land. It fails if the claim's context has ended.
func (db *DB) claimedLocked(ctx context.Context) error {
	if db.tx.changes == 0 {
		return ErrNothing
	}
	if err := db.writableLocked(); err != nil {
		return err
	}
	return fail.Stopped(ctx, "about to keep what it claims")
}
