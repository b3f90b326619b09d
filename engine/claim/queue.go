// Package claim queues the claims of one database that found nothing to write, until there may be something.
//
// Claims share a queue if one of them finds something to write exactly when the others do. A queue is first in, first out,
// and only one of its waiters tries at a time. If that waiter writes, the next one tries, for there may be more. If it
// finds nothing, it keeps its place. Every claim tries once before it joins, however many wait. A queue is woken by a block
// that lands and may matter to it, and when its claims may find something because time has passed, which the engine works
// out. A waiter that leaves while it is active passes that on to the next, so no wake is lost.
//
// The package starts no goroutines: waiters run on their callers'. Queues has one timer, set for the earliest time that
// any queue is due, and none while there are no queues.
//
// Queues.mu is taken under the database's lock, when a block lands, so nothing of the database is called under it.
package claim

import (
	"context"
	"errors"
	"sync"
	"time"

	"fenec/engine"
	"fenec/engine/fail"
)

// Queues is the claim queues of one database.
type Queues struct {
	db    *engine.DB
	clock func() time.Time

	mu      sync.Mutex
	queues  map[engine.Line]*queue
	timer   *time.Timer // nil before any queue was due
	firesAt time.Time   // when the timer fires, at or before the earliest due time; zero if it is stopped
}

// New returns empty queues over db. The clock must be the database's.
func New(db *engine.DB, clock func() time.Time) *Queues {
	return &Queues{db: db, clock: clock, queues: map[engine.Line]*queue{}}
}

// queue is the waiters whose claims find something under the same conditions.
type queue struct {
	owner  *Queues
	key    engine.Line
	head   *Waiter // held longest
	tail   *Waiter
	active *Waiter // the one that may try; nil while there is nothing to try for
	again  bool    // woken while a waiter was active
	due    time.Time
	stale  bool // due has to be worked out again
	watch  *engine.Watch
}

// Waiter is one claim in its queue.
type Waiter struct {
	queue *queue
	claim *engine.Claim
	prev  *Waiter
	next  *Waiter
	ready chan struct{} // holds a value once w is active
}

// Join appends a claim that has just found nothing to its queue. The caller calls Retry each time Ready receives, and
// ends with Leave.
func (qs *Queues) Join(c *engine.Claim) *Waiter {
	w := &Waiter{claim: c, ready: make(chan struct{}, 1)}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.queues[c.Line]
	if q == nil {
		q = &queue{owner: qs, key: c.Line, stale: true}
		qs.queues[c.Line] = q
	}
	w.queue, w.prev = q, q.tail
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
	if q.head == w { // the queue has no watch yet: its first waiter opens one and tries again
		q.activate(w)
	}
	return w
}

// Ready returns a channel that receives each time w becomes active.
func (w *Waiter) Ready() <-chan struct{} { return w.ready }

// Retry runs an active waiter. It calls try until try returns something other than "nothing to do" (see Retryable), or
// until nothing has happened during the last try. done reports whether the result is final; the caller then calls Leave.
func (w *Waiter) Retry(ctx context.Context, try func() error) (done bool, err error) {
	q, qs := w.queue, w.queue.owner
	if q.watch == nil { // only the active waiter reads it
		watch := qs.db.Watch(w.claim, q.wake)
		qs.mu.Lock()
		q.watch = watch
		qs.mu.Unlock()
	}
	for {
		stale := q.beginTry()
		if err := try(); !Retryable(err) {
			q.restoreStale(stale)
			return true, err
		}
		if stale {
			at, ok, err := q.watch.Due(ctx)
			if err != nil {
				q.restoreStale(stale)
				return true, err
			}
			if ok {
				q.wake(at, false)
			}
		}
		if q.park() {
			return false, nil
		}
	}
}

// Retryable reports whether a claim that failed with err waits to be tried again: it found nothing (engine.ErrNothing), a
// requirement is not met or the database is frozen.
func Retryable(err error) bool {
	if errors.Is(err, engine.ErrNothing) {
		return true
	}
	kind := fail.KindOf(err)
	return kind == fail.Require || kind == fail.Frozen
}

// Leave removes w from its queue. If w is active, the head of the queue becomes active.
func (w *Waiter) Leave() {
	if watch := w.queue.remove(w); watch != nil {
		watch.Close()
	}
}

// remove unlinks w and returns the watch to close if w was the last waiter.
func (q *queue) remove(w *Waiter) *engine.Watch {
	qs := q.owner
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	if q.head == nil {
		delete(qs.queues, q.key)
		q.active = nil
		if len(qs.queues) == 0 {
			qs.disarm()
		}
		return q.watch
	}
	if q.active == w {
		q.activate(q.head)
	}
	return nil
}

// activate makes w the waiter that may try. It needs Queues.mu.
func (q *queue) activate(w *Waiter) {
	q.active = w
	w.ready <- struct{}{}
}

// wake has the queue tried at a time. recompute reports whether its due time has to be worked out again. It may be called
// under the database's lock.
func (q *queue) wake(at time.Time, recompute bool) {
	qs := q.owner
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q.stale = q.stale || recompute
	q.wakeLocked(at)
}

func (q *queue) wakeLocked(at time.Time) {
	qs := q.owner
	switch {
	case q.head == nil: // the last waiter has left
	case at.After(qs.clock()):
		if q.due.IsZero() || at.Before(q.due) {
			q.due = at
			qs.arm(at)
		}
	case q.active != nil:
		q.again = true
	default:
		q.activate(q.head)
	}
}

// beginTry begins a try and reports whether the due time has to be worked out after it. Blocks that land from now on
// report their own due time.
func (q *queue) beginTry() (stale bool) {
	qs := q.owner
	qs.mu.Lock()
	defer qs.mu.Unlock()
	stale = q.stale
	q.again, q.stale = false, false
	return stale
}

// restoreStale leaves a due time that was not worked out to the next waiter.
func (q *queue) restoreStale(stale bool) {
	qs := q.owner
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q.stale = q.stale || stale
}

// park ends a try that found nothing and leaves the queue with no active waiter. It returns false if the queue was woken
// meanwhile, so that the waiter has to try again.
func (q *queue) park() bool {
	qs := q.owner
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q.again {
		return false
	}
	q.active = nil
	return true
}

// arm has the timer fire at the given time or earlier. It needs Queues.mu.
func (qs *Queues) arm(at time.Time) {
	if !qs.firesAt.IsZero() && !at.Before(qs.firesAt) {
		return
	}
	qs.firesAt = at
	if wait := at.Sub(qs.clock()); qs.timer == nil {
		qs.timer = time.AfterFunc(wait, qs.WakeDue)
	} else {
		qs.timer.Reset(wait)
	}
}

// disarm stops the timer once there are no queues. It needs Queues.mu.
func (qs *Queues) disarm() {
	if !qs.firesAt.IsZero() {
		qs.timer.Stop()
		qs.firesAt = time.Time{}
	}
}

// WakeDue wakes the queues whose due time has come. The timer calls it, and so does a test that moves a clock by hand.
func (qs *Queues) WakeDue() {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.firesAt = time.Time{}
	now := qs.clock()
	var next time.Time
	for _, q := range qs.queues {
		switch {
		case q.due.IsZero():
		case !q.due.After(now):
			q.due, q.stale = time.Time{}, true
			q.wakeLocked(now)
		case next.IsZero() || q.due.Before(next):
			next = q.due
		}
	}
	if !next.IsZero() {
		qs.arm(next)
	}
}
