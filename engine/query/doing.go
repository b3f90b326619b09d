package query

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"fenec/engine/fail"
)

// activity is what a run is doing, for the message of a timeout.
type activity uint8

const (
	atStart  activity = iota
	atRows            // testing the rows of its route
	atIDs             // reading ids from an index
	atSearch          // filtering documents for a scored index
	atGroups          // grouping rows or sorting groups
	atSort            // sorting rows
	atAnswer          // writing out sorted rows
	atWrite           // putting or deleting documents
)

// comparesPerCheck is how many comparisons, a power of two, a sort makes between two checks of its context.
const comparesPerCheck = 1 << 14

// Stopped returns the error of a statement whose context has ended while it was doing what the format says; nil
// while the context goes on or is nil. A context may have a method Limit that returns its timeout.
func Stopped(ctx context.Context, format string, args ...any) error {
	if ctx == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return stopped(ctx, err, fmt.Sprintf(format, args...))
	}
	return nil
}

func stopped(ctx context.Context, err error, doing string) error {
	kind, how := fail.Canceled, "the statement was given up, its caller went away"
	if errors.Is(err, context.DeadlineExceeded) {
		kind, how = fail.Timeout, "the statement ran out of time"
		if c, ok := ctx.(interface{ Limit() time.Duration }); ok {
			how += " after " + c.Limit().String()
		}
	}
	return &fail.Error{Kind: kind, Message: how + ": it was " + doing, Err: err}
}

// Thousands formats a count with separators: 1 000 000.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + " " + s[at:]
	}
	return s
}

// interrupted returns the run's error once its context has ended.
func (f *frame) interrupted() error {
	if f.ctx == nil {
		return nil
	}
	if err := f.ctx.Err(); err != nil {
		return stopped(f.ctx, err, f.does())
	}
	return nil
}

// goesOn checks the context and the memory of the run. It returns false once the run has an error.
func (f *frame) goesOn() bool {
	if f.err == nil {
		f.err = f.interrupted()
	}
	return f.err == nil && f.fits()
}

// ready builds the index on a field or path of t if it is not built yet. It returns false if the run's context
// ended meanwhile, or the run has an error already.
func (f *frame) ready(t Table, on string) bool {
	if f.err == nil {
		f.err = t.Ready(f.ctx, on)
	}
	return f.err == nil
}

// does describes what the run is doing.
func (f *frame) does() string {
	w := &f.walk
	switch {
	case f.doing == atStart:
		return "about to begin"
	case f.doing == atWrite:
		return "writing " + f.into + ", " + Thousands(f.done) + " rows done"
	}
	name, rows := w.table.Schema().Name, Thousands(w.table.Len())
	for i := len(f.levels) - 1; i >= 0; i-- {
		if l := &f.levels[i]; l.finding {
			return "looking up " + l.level.name + " for the rows of " + name + ", " + Thousands(l.tested) + " rows tested"
		}
	}
	tested := Thousands(w.tested) + " of " + rows + " rows tested"
	switch f.doing {
	case atIDs:
		return "taking rows of " + name + " from " + f.from.via() + ", " + Thousands(len(w.ids)) + " so far"
	case atSearch:
		return "searching " + name + ", " + Thousands(f.search.filter.asked) + " of " + rows + " rows looked at"
	case atGroups:
		return "grouping " + name + ", " + tested
	case atSort:
		return "sorting " + Thousands(f.done) + " rows of " + name
	case atAnswer:
		return "writing out rows of " + name + ", " + Thousands(f.rows) + " done"
	}
	switch r := w.route; {
	case r == nil || r.kind == byScan || r.kind == byID:
		return "scanning " + name + ", " + tested
	case r.kind == byOrder:
		return "walking " + r.via() + " of " + name + ", " + tested
	default:
		return "reading the rows of " + name + " that " + r.via() + " leads to, " + tested
	}
}

// via names the index of a route, for a message.
func (r *route) via() string {
	if r.on.id {
		return "id"
	}
	return r.index.String() + " on " + r.on.name
}
