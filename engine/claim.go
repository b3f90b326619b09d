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

// ErrNothing is that a claim found nothing to write.
var ErrNothing = errors.New("there is nothing to write")

// Claim is a statement, or a batch, that is worth nothing until it writes: sets, dels and reads.
type Claim struct {
	// Line is the same for claims of which one finds something to write exactly if the others do.
	Line string

	parts []claimPart // of the sets and dels, and of the gets that require
}

type claimPart struct {
	statement *statement
	params    []doc.Value
}

// Claim reads statements as one that may wait until it writes something; nil where all of them read. Statements that
// always write, and conditions of which it cannot be told when they come to hold, are fail.Invalid. A failure says at
// which statement.
func (db *DB) Claim(sts []Statement) (c *Claim, at int, err error) {
	c = &Claim{}
	writes := false
	for i, st := range sts {
		s, err := db.statements.parse(st.Text)
		if err != nil {
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
	c.Line = c.line()
	return c, 0, nil
}

// line is the claim's Line. Whether a single statement writes is up to its collection, condition, limit and require: what
// it writes, in which order and what it returns have no part in that, so that workers which sign their claims stand in one
// line. Of several statements one may read what another wrote, so all that they say counts.
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

// appendParam appends a parameter, so that others have other bytes.
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

// waiting is what there is to know of a statement that waits, made once.
type waiting struct {
	line   string   // of a set or del: the collection, the condition, the limit and the require
	params []int    // of those, from 1
	timed  bool     // the time alone can make it find something
	names  []string // of the collections whose changes matter
}

// wait is what there is to know of s as a statement that waits.
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
	switch st := tree.(type) { // what is neither is refused where its condition is read
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

// note keeps what an expression of the statement says of it.
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

// plannedDue is a query.Due and the schemas it was made for.
type plannedDue struct {
	due     *query.Due
	version uint64
}

// due is when a statement that waits may find something, planned for the schemas of r as they are, which the caller's lock keeps so.
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

// claimedLocked judges the block of a claim that is about to land. It lands for nobody who has left.
func (db *DB) claimedLocked(ctx context.Context) error {
	if db.tx.changes == 0 {
		return ErrNothing
	}
	if err := db.writableLocked(); err != nil {
		return err
	}
	return query.Stopped(ctx, "about to keep what it claims")
}
