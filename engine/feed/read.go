package feed

import (
	"fmt"
	"slices"

	"fenec/engine"
	"fenec/engine/doc"
)

// Gone is the error for a cursor from before the kept changes.
type Gone struct{ First uint64 }

func (e *Gone) Error() string {
	return fmt.Sprintf("the changes asked for are no longer kept: those after change %d are", e.First)
}

// Ahead is the error for a cursor past the last change.
type Ahead struct{ Since, Last uint64 }

func (e *Ahead) Error() string {
	return fmt.Sprintf("change %d has not happened here: the last one is %d", e.Since, e.Last)
}

// Block is a block of changes: Before+1 up to After, in its record.
type Block struct {
	Before, After uint64
	Record        engine.Record // not to be changed
}

// Read appends to dst the blocks in reach that end after the change since, in order and without a gap, until they are
// budget bytes together, and at least one if there is one. A cursor may be within a block. Read fails with a *Gone or
// an *Ahead.
func (f *Feed) Read(scope engine.Scope, dst []Block, since uint64, r Reach, budget int) ([]Block, error) {
	if err := scope.MayRead(); err != nil {
		return dst, err
	}
	f.mu.Lock()
	if err := f.check(since); err != nil {
		f.mu.Unlock()
		return dst, err
	}
	from, to := f.after(since), len(f.spans)
	if r == Durable {
		to = f.durableSpans()
	}
	// A few more bytes than requested, since the first span may be cut at since.
	size := 0
	n := from
	for n < to && size < budget+spanSize {
		size += len(f.spans[n].data)
		n++
	}
	spans := slices.Clone(f.spans[from:max(from, n)])
	if r == Durable && len(spans) > 0 {
		last := &spans[len(spans)-1]
		last.cut(f.covered(last))
	}
	f.mu.Unlock()
	for i := range spans {
		spans[i].each(spans[i].blocks, func(before uint64, r engine.Record) bool {
			if r.After() > since && budget > 0 {
				dst = append(dst, Block{before, r.After(), r})
				budget -= len(r)
			}
			return budget > 0
		})
	}
	return dst, nil
}

func (f *Feed) check(since uint64) error {
	switch {
	case since < f.first:
		return &Gone{f.first}
	case since > f.landed:
		return &Ahead{since, f.landed}
	}
	return nil
}

// Check returns nil if a cursor can be served, else a *Gone or an *Ahead.
func (f *Feed) Check(since uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.check(since)
}

// Names finds the schemas of changes that are read in order. The zero value is not ready: see Feed.Names.
type Names struct {
	feed *Feed
	now  map[uint64]*doc.Schema
}

// Names returns a Names for the changes after a cursor.
func (f *Feed) Names() *Names { return &Names{f, map[uint64]*doc.Schema{}} }

// Schema returns the schema that a change was made under, or that it made; for the end of a collection, its last one.
// seq is the change's number; changes must be looked up in order. It returns nil if the feed has dropped the schema
// meanwhile.
func (n *Names) Schema(c *engine.Change, seq uint64) *doc.Schema {
	schema := n.now[c.Table]
	switch {
	case c.Schema != nil:
		schema = c.Schema
	case schema == nil:
		n.feed.mu.Lock()
		schema = n.feed.schemas.at(c.Table, seq-1)
		n.feed.mu.Unlock()
	}
	n.now[c.Table] = schema
	return schema
}

// Behind returns the number of changes after since that are durable and not of the server's own collections.
func (f *Feed) Behind(scope engine.Scope, since uint64) (uint64, error) {
	if err := scope.MayRead(); err != nil {
		return 0, err
	}
	f.mu.Lock()
	from := f.after(since)
	spans := slices.Clone(f.spans[from:max(from, f.durableSpans())])
	if len(spans) > 0 {
		last := &spans[len(spans)-1]
		last.cut(f.covered(last))
	}
	f.mu.Unlock()
	count, names := uint64(0), f.Names()
	for i := range spans {
		s := &spans[i]
		whole := s.before >= since
		if whole && s.counted {
			count += s.visible
			continue
		}
		visible, err := s.count(since, names)
		if err != nil {
			return 0, err
		}
		count += visible
		if whole {
			f.noteCount(s, visible)
		}
	}
	return count, nil
}

// count returns how many changes of s after since are not the server's own.
func (s *span) count(since uint64, names *Names) (visible uint64, err error) {
	s.each(s.blocks, func(seq uint64, r engine.Record) bool {
		err = r.Changes(func(c *engine.Change) error {
			seq++
			schema := names.Schema(c, seq)
			if seq > since && schema != nil && !engine.IsServers(schema.Name) {
				visible++
			}
			return nil
		})
		return err == nil
	})
	return visible, err
}

// noteCount stores the count of a span if the span has not changed meanwhile.
func (f *Feed) noteCount(s *span, visible uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := f.after(s.before); i < len(f.spans) && f.spans[i].before == s.before && f.spans[i].after == s.after {
		f.spans[i].counted, f.spans[i].visible = true, visible
	}
}
