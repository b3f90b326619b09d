package query

import (
	"fenec/engine/fail"
)

// activity is what a run is doing, for the message of a timeout.
type activity uint8

const (
	atStart  activity = iota
	atRows            // testing the rows of its access path
	atIDs             // reading ids from an index
	atSearch          // filtering documents for a scored index
	atGroups          // grouping rows or sorting groups
	atSort            // sorting rows
	atAnswer          // writing out sorted rows
	atWrite           // putting or deleting documents
)

// comparesPerCheck is how many comparisons, a power of two, a sort makes between two checks of its context.
const comparesPerCheck = 1 << 14

// interrupted returns the run's error once its context has ended.
func (f *frame) interrupted() error {
	if f.ctx == nil {
		return nil
	}
	if err := f.ctx.Err(); err != nil {
		return fail.Ended(f.ctx, err, f.does())
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
		return "writing " + f.into + ", " + fail.Thousands(f.done) + " rows done"
	}
	name, rows := w.table.Schema().Name, fail.Thousands(w.table.Len())
	for i := len(f.levels) - 1; i >= 0; i-- {
		if l := &f.levels[i]; l.finding {
			return "looking up " + l.level.name + " for the rows of " + name + ", " + fail.Thousands(l.tested) + " rows tested"
		}
	}
	tested := fail.Thousands(w.tested) + " of " + rows + " rows tested"
	switch f.doing {
	case atIDs:
		return "taking rows of " + name + " from " + f.from.via() + ", " + fail.Thousands(len(w.ids)) + " so far"
	case atSearch:
		return "searching " + name + ", " + fail.Thousands(f.search.filter.asked) + " of " + rows + " rows looked at"
	case atGroups:
		return "grouping " + name + ", " + tested
	case atSort:
		return "sorting " + fail.Thousands(f.done) + " rows of " + name
	case atAnswer:
		return "writing out rows of " + name + ", " + fail.Thousands(f.rows) + " done"
	}
	switch a := w.access; {
	case a == nil || a.kind == byScan || a.kind == byID:
		return "scanning " + name + ", " + tested
	case a.kind == byOrder:
		return "walking " + a.via() + " of " + name + ", " + tested
	default:
		return "reading the rows of " + name + " that " + a.via() + " leads to, " + tested
	}
}

// via names the index of an access path, for a message.
func (a *access) via() string {
	if a.on.id {
		return "id"
	}
	return a.index.String() + " on " + a.on.name
}
