package engine

import (
	"errors"

	"fenec/engine/fail"
)

// Scope is what the caller of a database may do with its content. Every call that reads or writes content for a caller takes
// one, so that it cannot be forgotten: Run, Exec, Batch, Claim, View and SettledView, RanBefore, the consumers, the collections and
// the counts of statements, and in engine/feed the pages of changes and what live queries read. A Claim, and a Query that runs
// in a View, are under the scope that the Claim or View was made under.
//
// The zero Scope permits nothing, and a call under it fails. Scopes are comparable: two callers may share what they read (a
// queue of claims, the events of a live query) only if their scopes are equal.
//
// What the owner of a database does with it as a whole takes no scope: Open and Close, Freeze, Thaw, Refreeze and Fork, Compact
// and Expire, images, Follow, Promote and Demote, Sync, Sum, and Stats. Nor does a position (Position, Relation, HistoryAt, Lineage,
// Branches, Common, Forks), which is a number that every answer has, nor what only parses a text (Query, Writes, Grows, CheckCondition, CheckHaving), nor in engine/feed the
// schemas that belong to changes already read.
type Scope struct {
	reads, writes bool
	refusal       string // if it reads and does not write: why, as the beginning of a sentence
}

// Everything returns the scope that reads and writes all content.
func Everything() Scope { return Scope{reads: true, writes: true} }

// ReadOnly returns s without its writes. A write under it fails with fail.ReadOnly and the sentence "<why> and would write".
func (s Scope) ReadOnly(why string) Scope {
	s.writes, s.refusal = false, why
	return s
}

// errNoScope is a fault of the program and not of a request.
var errNoScope = errors.New("the scope of the call is the zero Scope, which permits nothing")

// MayRead returns nil if s permits to read, else the error of the call.
func (s Scope) MayRead() error {
	if !s.reads {
		return errNoScope
	}
	return nil
}

// MayWrite returns nil if s permits to write, else the error of the call.
func (s Scope) MayWrite() error {
	switch {
	case s.writes:
		return nil
	case !s.reads:
		return errNoScope
	}
	return fail.New(fail.ReadOnly, "%s and would write", s.refusal)
}

// permits returns nil if s permits to run a statement, else the error of the call.
func (s Scope) permits(st *statement) error {
	if st.writes() {
		return s.MayWrite()
	}
	return s.MayRead()
}
