package engine

import (
	"sync"
	"sync/atomic"

	"fenec/engine/query"
	"fenec/engine/query/syntax"
)

const (
	statementsKept   = 512  // parsed statements a database keeps, twice at most
	statementMaxText = 4096 // bytes of a text worth keeping
)

// statements keeps parsed statements by their text, so that a statement sent again is parsed once. It has two
// generations: what is used moves to the young one, and when that is full the old one goes.
type statements struct {
	mu         sync.RWMutex
	young, old map[string]*statement
}

// statement is a parsed statement and the latest plan made of it.
type statement struct {
	tree    syntax.Statement
	planned atomic.Pointer[planned]
}

type planned struct {
	plan    *query.Plan
	version uint64 // of the schemas it was made for
}

func (c *statements) parse(text string) (*statement, error) {
	c.mu.RLock()
	s := c.young[text]
	c.mu.RUnlock()
	if s != nil {
		return s, nil
	}
	c.mu.Lock()
	s = c.old[text]
	c.mu.Unlock()
	if s == nil {
		tree, err := syntax.Parse(text)
		if err != nil {
			return nil, err
		}
		s = &statement{tree: tree}
	}
	if len(text) <= statementMaxText {
		c.keep(text, s)
	}
	return s, nil
}

func (c *statements) keep(text string, s *statement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= statementsKept {
		c.old, c.young = c.young, nil
	}
	if c.young == nil {
		c.young = map[string]*statement{}
	}
	c.young[text] = s
}

// plan is s planned for the schemas of r as they are, which the caller's lock keeps so.
func (s *statement) plan(r query.Reader) (*query.Plan, error) {
	version := r.SchemaVersion()
	if p := s.planned.Load(); p != nil && p.version == version {
		return p.plan, nil
	}
	plan, err := query.Prepare(s.tree, r)
	if err != nil {
		return nil, err
	}
	s.planned.Store(&planned{plan, version})
	return plan, nil
}

// writes tells a statement that changes the database.
func (s *statement) writes() bool {
	switch s.tree.(type) {
	case *syntax.Get, *syntax.Explain, *syntax.Collections, *syntax.Describe:
		return false
	}
	return true
}
