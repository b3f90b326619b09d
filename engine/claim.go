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
	// Line is the same of claims that wait for the same: of a collection, a condition and the parameters in it.
	Line string

	parts []claimPart // of the sets and dels
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
	var line []byte
	for i, st := range sts {
		s, err := db.statements.parse(st.Text)
		if err != nil {
			return nil, i, err
		}
		if !s.writes() {
			continue
		}
		part := claimPart{s, st.Params}
		if line, err = part.appendLine(line); err == nil {
			err = db.checkPart(&part)
		}
		if err != nil {
			return nil, i, err
		}
		c.parts = append(c.parts, part)
	}
	if len(c.parts) == 0 {
		return nil, 0, nil
	}
	c.Line = string(line)
	return c, 0, nil
}

func (db *DB) checkPart(p *claimPart) error {
	db.mu.RLock()
	defer db.mu.RUnlock()
	_, err := p.statement.due(&db.reader)
	return err
}

// waiting is what there is to know of a set or del that waits, made once.
type waiting struct {
	line   string   // the condition, and whether it counts documents
	params []int    // of the condition, from 1
	names  []string // of the collections whose changes matter
}

// appendLine appends what tells the claims of one line from those of others.
func (p *claimPart) appendLine(dst []byte) ([]byte, error) {
	w := p.statement.wait()
	dst = append(append(dst, w.line...), 0)
	for _, n := range w.params {
		if n > len(p.params) {
			return nil, fail.New(fail.Invalid, "the statement has the parameter $%d, and %d are given", n, len(p.params))
		}
		v := p.params[n-1]
		dst = append(dst, byte(v.Kind))
		dst = binary.AppendUvarint(dst, v.N)
		dst = binary.AppendUvarint(dst, uint64(len(v.B)))
		dst = append(dst, v.B...)
	}
	return dst, nil
}

// wait is what there is to know of s as a set or del that waits.
func (s *statement) wait() *waiting {
	w := s.waiting.Load()
	if w == nil {
		w = newWaiting(s.tree)
		s.waiting.Store(w)
	}
	return w
}

func newWaiting(tree syntax.Statement) *waiting {
	get := &syntax.Get{}
	var require syntax.Expr
	switch st := tree.(type) { // what is neither is refused where its condition is read
	case *syntax.Set:
		get.Collection, get.Where, require = st.Collection, st.Where, st.Require
	case *syntax.Delete:
		get.Collection, get.Where, require = st.Collection, st.Where, st.Require
	}
	w := &waiting{line: get.String(), names: []string{get.Collection.Text}}
	if require != nil {
		w.line += " require"
	}
	syntax.Inspect(get.Where, func(e syntax.Expr) {
		if p, ok := e.(*syntax.Param); ok {
			w.params = append(w.params, p.N)
		}
		if _, ok := e.(*syntax.InnerGet); ok {
			w.names = []string{everywhere}
		}
	})
	return w
}

// plannedDue is a query.Due and the schemas it was made for.
type plannedDue struct {
	due     *query.Due
	version uint64
}

// due is when a set or del may find something, planned for the schemas of r as they are, which the caller's lock keeps so.
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

// Try is ExecOnce of a claim that is to write something or to have left nothing behind, no key either: where it would
// write nothing it is ErrNothing, beside the result there would have been. So it is on a frozen database, which refuses
// only what would be written.
func (db *DB) Try(ctx context.Context, o *Once, st Statement, dst []byte) (res Result, kept *Kept, err error) {
	return db.exec(ctx, o, st, dst, true)
}

// TryBatch is Try of a batch.
func (db *DB) TryBatch(ctx context.Context, o *Once, sts []Statement) (results []Result, kept *Kept, at int, err error) {
	return db.batch(ctx, o, sts, true)
}

// admitLocked is writableLocked before a block; a claim is judged by claimedLocked at the block's end.
func (db *DB) admitLocked(claim bool) error {
	err := db.writableLocked()
	if claim && fail.KindOf(err) == fail.Frozen {
		return nil
	}
	return err
}

// claimedLocked judges the block of a claim.
func (db *DB) claimedLocked() error {
	if db.tx.changes == 0 {
		return ErrNothing
	}
	return db.writableLocked()
}
