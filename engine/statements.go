package engine

import (
	"sync"
	"sync/atomic"

	"fenec/engine/query"
	"fenec/engine/query/syntax"
)

const (
	statementsBytes  = 128 << 10 // the most a generation of parsed statements takes, by statementBytes
	statementMaxText = 4096      // the most bytes of a text that is cached
)

// statementBytes returns about what a parsed and planned statement takes: its tree is a few times its text.
func statementBytes(text string) int { return 512 + 8*len(text) }

// statements caches parsed statements by their text, so that a repeated statement is parsed once. It has two generations:
// a statement that is used moves to the young one, and when that is full the old one is dropped.
type statements struct {
	mu         sync.RWMutex
	young, old map[string]*statement
	youngBytes int
	oldBytes   int
}

// statement is a parsed statement and its latest plan.
type statement struct {
	tree    syntax.Statement
	planned atomic.Pointer[planned]
	count   atomic.Pointer[shapeCount] // the counts it was last added to

	waiting    atomic.Pointer[waiting]    // of a set or del that has waited
	plannedDue atomic.Pointer[plannedDue] // likewise
}

type planned struct {
	plan    *query.Plan
	version uint64 // of the schemas it was made for
}

// parse is parseWithin with a limit of its own.
func (c *statements) parse(text string) (*statement, error) { return c.parseWithin(text, nil) }

// parseWithin returns a cached statement or parses the text. If the text is too long to be cached, the bytes of its tree
// are counted in the account, which may be nil.
func (c *statements) parseWithin(text string, account *query.Account) (*statement, error) {
	c.mu.RLock()
	s, old := c.young[text], c.old[text]
	c.mu.RUnlock()
	if s != nil {
		return s, nil
	}
	if s = old; s == nil {
		tree, err := parseCounted(text, account)
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

// parseCounted is syntax.Parse that counts the tree of a long text in an account.
func parseCounted(text string, account *query.Account) (syntax.Statement, error) {
	if len(text) <= statementMaxText {
		return syntax.Parse(text)
	}
	if account == nil {
		account = new(query.Account)
	}
	return syntax.ParseCounted(text, func(tokens int) error {
		return account.Hold(int64(tokens)*query.TokenBytes, "being read")
	})
}

func (c *statements) keep(text string, s *statement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young[text] != nil {
		return
	}
	size := statementBytes(text)
	if c.youngBytes+size > statementsBytes {
		c.old, c.oldBytes = c.young, c.youngBytes
		c.young, c.youngBytes = nil, 0
	}
	if c.young == nil {
		c.young = map[string]*statement{}
	}
	c.young[text] = s
	c.youngBytes += size
}

// bytes returns about what the cached statements take.
func (c *statements) bytes() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return int64(c.youngBytes + c.oldBytes)
}

// plan returns the plan of s for the current schemas of r. The caller holds the database's lock.
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

// compacts reports whether s is a compact, which is not a block.
func (s *statement) compacts() bool {
	_, ok := s.tree.(*syntax.Compact)
	return ok
}

// requires reports whether s is a get that requires a number of rows.
func (s *statement) requires() bool {
	get, ok := s.tree.(*syntax.Get)
	return ok && get.Require != nil
}

// writes reports whether s changes the database.
func (s *statement) writes() bool {
	switch s.tree.(type) {
	case *syntax.Get, *syntax.Explain, *syntax.Collections, *syntax.Describe:
		return false
	}
	return true
}

// grows reports whether s may add to the database.
func (s *statement) grows() bool {
	switch s.tree.(type) {
	case *syntax.Put, *syntax.Set, *syntax.CreateCollection, *syntax.CreateIndex:
		return true
	}
	return false
}
