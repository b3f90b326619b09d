// Package claim holds the claims of one database that found nothing to write until there may be something.
//
// Claims of which one finds something to write exactly if the others do wait in one line, the one held longest first. One
// of a line at a time has the turn: it tries, and if it writes something the next one does, for there may be more; if it
// finds nothing it keeps its place. A claim that joins has tried before, whoever waits. A line is woken by a block that
// lands and may matter to it, and by the time its claims may find something by themselves, which the engine works out. A
// claim that leaves while it has the turn passes it on, so no wake is lost.
//
// There are no goroutines but those of the claims. A hall has one timer, for the next time that any line is due, and
// none while it is empty.
//
// Hall.mu is taken under the database's lock, as a block lands, so nothing of the database is called under it.
package claim

import (
	"context"
	"errors"
	"sync"
	"time"

	"fenec/engine"
	"fenec/engine/fail"
)

// Hall is the lines of one database.
type Hall struct {
	db    *engine.DB
	clock func() time.Time

	mu    sync.Mutex
	lines map[string]*line
	timer *time.Timer // nil before any line was due
	rings time.Time   // when it rings, not behind the line due first; zero where it does not run
}

// New makes a hall over db. The clock is the database's.
func New(db *engine.DB, clock func() time.Time) *Hall {
	return &Hall{db: db, clock: clock, lines: map[string]*line{}}
}

// line is claims that wait for the same.
type line struct {
	hall  *Hall
	name  string
	first *Waiter // held longest
	last  *Waiter
	turn  *Waiter // who tries; nil while there is nothing to try for
	again bool    // woken while somebody has the turn
	due   time.Time
	stale bool // due is to be worked out anew
	watch *engine.Watch
}

// Waiter is one claim in its line.
type Waiter struct {
	line   *line
	claim  *engine.Claim
	before *Waiter
	behind *Waiter
	called chan struct{} // has something in it once w has the turn
}

// Join puts a claim that has just found nothing at the end of its line. The caller ends with Leave, and calls Turn whenever
// the waiter is called.
func (h *Hall) Join(c *engine.Claim) *Waiter {
	w := &Waiter{claim: c, called: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.lines[c.Line]
	if l == nil {
		l = &line{hall: h, name: c.Line, stale: true}
		h.lines[c.Line] = l
	}
	w.line, w.before = l, l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.behind = w
	}
	l.last = w
	if l.first == w { // nobody watches for it yet: it tries once somebody does
		l.call(w)
	}
	return w
}

// Called has something in it once w has the turn.
func (w *Waiter) Called() <-chan struct{} { return w.called }

// Turn takes a waiter's turn: try is called until it answers something else than that there is nothing to do, which is
// ErrNothing, a requirement that is not met or a database that is frozen, or until nothing has happened meanwhile. done
// tells that the answer stands; the waiter leaves then.
func (w *Waiter) Turn(ctx context.Context, try func() error) (done bool, err error) {
	l, h := w.line, w.line.hall
	if l.watch == nil { // only whoever has the turn looks
		watch := h.db.Watch(w.claim, l.wake)
		h.mu.Lock()
		l.watch = watch
		h.mu.Unlock()
	}
	for {
		stale := l.begin()
		if err := try(); !Holds(err) {
			l.end(stale)
			return true, err
		}
		if stale {
			at, ok, err := l.watch.Due(ctx)
			if err != nil {
				l.end(stale)
				return true, err
			}
			if ok {
				l.wake(at, false)
			}
		}
		if l.rest() {
			return false, nil
		}
	}
}

// Holds tells an error of a claim that is held for it.
func Holds(err error) bool {
	if errors.Is(err, engine.ErrNothing) {
		return true
	}
	kind := fail.KindOf(err)
	return kind == fail.Require || kind == fail.Frozen
}

// Leave takes a waiter out of its line; the turn it may have is the next one's.
func (w *Waiter) Leave() {
	if watch := w.line.remove(w); watch != nil {
		watch.Close()
	}
}

// remove answers the watch to be closed, where w was the last one.
func (l *line) remove(w *Waiter) *engine.Watch {
	h := l.hall
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.before == nil {
		l.first = w.behind
	} else {
		w.before.behind = w.behind
	}
	if w.behind == nil {
		l.last = w.before
	} else {
		w.behind.before = w.before
	}
	if l.first == nil {
		delete(h.lines, l.name)
		l.turn = nil
		if len(h.lines) == 0 {
			h.disarm()
		}
		return l.watch
	}
	if l.turn == w {
		l.call(l.first)
	}
	return nil
}

// call gives a waiter the turn. It needs Hall.mu.
func (l *line) call(w *Waiter) {
	l.turn = w
	w.called <- struct{}{}
}

// wake has a line tried as of a time; anew reports that when the line is due has to be worked out again. It may be called
// under the database's lock.
func (l *line) wake(at time.Time, anew bool) {
	h := l.hall
	h.mu.Lock()
	defer h.mu.Unlock()
	l.stale = l.stale || anew
	l.wakeLocked(at)
}

func (l *line) wakeLocked(at time.Time) {
	h := l.hall
	switch {
	case l.first == nil: // the last one has left
	case at.After(h.clock()):
		if l.due.IsZero() || at.Before(l.due) {
			l.due = at
			h.arm(at)
		}
	case l.turn != nil:
		l.again = true
	default:
		l.call(l.first)
	}
}

// begin begins a try, and tells whether the time the line is due is to be worked out behind it. What lands from here on
// says by itself when it is due.
func (l *line) begin() (stale bool) {
	h := l.hall
	h.mu.Lock()
	defer h.mu.Unlock()
	stale = l.stale
	l.again, l.stale = false, false
	return stale
}

// end ends a try that is the last of its waiter. What was not worked out is left to the next.
func (l *line) end(stale bool) {
	h := l.hall
	h.mu.Lock()
	defer h.mu.Unlock()
	l.stale = l.stale || stale
}

// rest ends a turn that found nothing; false is that there is more to try for.
func (l *line) rest() bool {
	h := l.hall
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.again {
		return false
	}
	l.turn = nil
	return true
}

// arm has the timer ring at a time at the latest. It needs Hall.mu.
func (h *Hall) arm(at time.Time) {
	if !h.rings.IsZero() && !at.Before(h.rings) {
		return
	}
	h.rings = at
	if wait := at.Sub(h.clock()); h.timer == nil {
		h.timer = time.AfterFunc(wait, h.Ring)
	} else {
		h.timer.Reset(wait)
	}
}

// disarm stops the timer of an empty hall. It needs Hall.mu.
func (h *Hall) disarm() {
	if !h.rings.IsZero() {
		h.timer.Stop()
		h.rings = time.Time{}
	}
}

// Ring wakes the lines whose time has come. The timer does, and whoever moves a clock by hand.
func (h *Hall) Ring() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rings = time.Time{}
	now := h.clock()
	var next time.Time
	for _, l := range h.lines {
		switch {
		case l.due.IsZero():
		case !l.due.After(now):
			l.due, l.stale = time.Time{}, true
			l.wakeLocked(now)
		case next.IsZero() || l.due.Before(next):
			next = l.due
		}
	}
	if !next.IsZero() {
		h.arm(next)
	}
}
