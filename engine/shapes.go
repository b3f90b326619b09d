package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fenec/engine/query"
	"fenec/engine/query/syntax"
)

// maxShapes is how many shapes of statements are counted. Another one replaces the one with the fewest calls.
const maxShapes = 256

// shapeBytes is about what a shape takes in addition to its text.
const shapeBytes = 160

// shapes counts the effects and costs of statements. Statements that differ only in their values count as one shape
// (syntax.Shape). The counts last until they are reset or the database is closed.
type shapes struct {
	mu     sync.Mutex
	counts map[string]*shapeCount
	bytes  atomic.Int64
}

// shapeCount holds the counts of one shape.
type shapeCount struct {
	shape   string
	calls   atomic.Int64
	errors  atomic.Int64
	rows    atomic.Int64
	total   atomic.Int64 // nanoseconds
	longest atomic.Int64
	dropped atomic.Bool // no longer one of the shapes counted
}

// count returns the counts of s. The statement caches them, so that its shape is made once.
func (c *shapes) count(s *statement) *shapeCount {
	if n := s.count.Load(); n != nil && !n.dropped.Load() {
		return n
	}
	shape := syntax.Shape(s.tree)
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.counts[shape]
	if n == nil {
		if len(c.counts) == maxShapes {
			c.drop(c.leastUsed())
		}
		if c.counts == nil {
			c.counts = map[string]*shapeCount{}
		}
		n = &shapeCount{shape: shape}
		c.counts[shape] = n
		c.bytes.Add(int64(len(shape)) + shapeBytes)
	}
	s.count.Store(n)
	return n
}

func (c *shapes) leastUsed() (least *shapeCount) {
	for _, n := range c.counts {
		if least == nil || n.calls.Load() < least.calls.Load() {
			least = n
		}
	}
	return least
}

func (c *shapes) drop(n *shapeCount) {
	n.dropped.Store(true)
	delete(c.counts, n.shape)
	c.bytes.Add(-int64(len(n.shape)) - shapeBytes)
}

func (c *shapes) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.counts {
		c.drop(n)
	}
}

func (n *shapeCount) add(took time.Duration, rows int64, failed bool) {
	n.calls.Add(1)
	n.total.Add(int64(took))
	if rows > 0 {
		n.rows.Add(rows)
	}
	if failed {
		n.errors.Add(1)
	}
	for {
		longest := n.longest.Load()
		if int64(took) <= longest || n.longest.CompareAndSwap(longest, int64(took)) {
			return
		}
	}
}

var started = time.Now()

// steady returns the time since the process began. It measures the duration of statements instead of Options.Clock, which
// gives the time of day: reading only the monotonic clock costs half, and every statement reads it twice.
func steady() time.Duration { return time.Since(started) }

// ran counts a run of s that has just ended, and logs it if it was slow: its shape but never a value of it, and so not the
// error it may have failed with.
func (db *DB) ran(ctx context.Context, s *statement, began time.Duration, res *Result, err error) {
	took := steady() - began
	rows := res.Affected
	if res.Kind == query.Rows {
		rows = int64(res.Rows)
	}
	n := db.shapes.count(s)
	n.add(took, rows, err != nil)
	if db.opts.Slow > 0 && took > db.opts.Slow {
		event := db.opts.Log.Warn().Str("statement", n.shape).Dur("ms", took).Int64("rows", rows).Bool("failed", err != nil)
		if id, ok := ctx.Value(requestKey{}).([]byte); ok {
			event.Bytes("request", id)
		}
		event.Msg("slow statement")
	}
}

// requestKey is the key of a context under which it holds the id of its request, if it has one.
type requestKey struct{}

// RequestID marks the key for contexts that hold the id.
func (requestKey) RequestID() {}

// StatementStats is what the statements of one shape did since the database was opened or the counts reset.
type StatementStats struct {
	Shape          string // the canonical text with a ? for each value
	Calls, Errors  int64  // calls that failed are calls
	Rows           int64  // returned by reads, touched by writes
	Total, Longest time.Duration
}

// StatementStats lists the counts of the statements that ran, by descending total time. A statement's time is how long its
// caller waited; within a batch it is how long it ran. Statements that cannot be parsed are not counted.
func (db *DB) StatementStats(scope Scope) ([]StatementStats, error) {
	if err := scope.MayRead(); err != nil {
		return nil, err
	}
	c := &db.shapes
	c.mu.Lock()
	list := make([]StatementStats, 0, len(c.counts))
	for _, n := range c.counts {
		list = append(list, StatementStats{
			Shape: n.shape, Calls: n.calls.Load(), Errors: n.errors.Load(), Rows: n.rows.Load(),
			Total: time.Duration(n.total.Load()), Longest: time.Duration(n.longest.Load()),
		})
	}
	c.mu.Unlock()
	slices.SortFunc(list, func(a, b StatementStats) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), strings.Compare(a.Shape, b.Shape))
	})
	return list, nil
}

// ResetStatementStats sets the counts to zero.
func (db *DB) ResetStatementStats(scope Scope) error {
	if err := scope.MayWrite(); err != nil {
		return err
	}
	db.shapes.reset()
	return nil
}
