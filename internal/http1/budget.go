package http1

import (
	"slices"
	"sync"
	"time"
)

// modest is what a holder may have of a Budget, in bytes, for the part of it that large ones leave free.
const modest = 1 << 20

// Budget bounds what requests hold together, in bytes: their bodies, or what their statements hold and answer. A quarter of
// it is kept for holders that are modest, so that a few large ones that are slow keep nobody else out; a large one that is
// the only holder may have all of it.
//
// Those that wait are served by how much they hold already and then first come, first served, the modest ones past the
// large. Where all that is in use is held by those that wait, the last of them is refused at once: none would end otherwise.
// A nil Budget has no bound.
type Budget struct {
	max int64

	mu      sync.Mutex
	used    int64
	waiting int64 // of used, what those in the queue hold
	queue   []*claim
}

// claim asks for n bytes more.
type claim struct {
	n, held int64
	large   bool
	enters  bool          // it does not overtake large ones that wait
	settled chan struct{} // of one that waits: closed once it is granted or refused
	granted bool
}

// NewBudget is a budget of so many bytes.
func NewBudget(max int64) *Budget { return &Budget{max: max} }

// Max is how many bytes may be held.
func (b *Budget) Max() int64 {
	if b == nil {
		return 0
	}
	return b.max
}

// Used is how many bytes are held.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Take takes n bytes more for a holder that has held of them, and reports whether there was room. One that becomes large by
// that does not overtake those that wait.
func (b *Budget) Take(n, held int64) bool {
	return b.take(claimOf(n, held))
}

// claimOf is a claim that becomes a large one by what it asks for where that is more than is modest.
func claimOf(n, held int64) claim {
	large := held+n > modest
	return claim{n: n, held: held, large: large, enters: large && held <= modest}
}

func (b *Budget) take(c claim) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takeLocked(&c)
}

func (b *Budget) takeLocked(c *claim) bool {
	if len(b.queue) > 0 && c.enters || !b.fitsLocked(c) {
		return false
	}
	b.used += c.n
	return true
}

func (b *Budget) fitsLocked(c *claim) bool {
	most := b.max
	if c.large && b.used > c.held {
		most -= b.max / 4
	}
	return b.used+c.n <= most
}

// Wait is Take that waits for room for as long as patience at most, or until done is closed.
func (b *Budget) Wait(n, held int64, patience time.Duration, done <-chan struct{}) bool {
	return b.wait(claimOf(n, held), patience, done)
}

func (b *Budget) wait(claimed claim, patience time.Duration, done <-chan struct{}) bool {
	if b == nil {
		return true
	}
	c := &claimed
	if b.join(c) {
		return true
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.settled:
	case <-timer.C:
	case <-done:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.queue, c); i >= 0 {
		b.settleLocked(i, false)
		b.grantLocked() // those behind it may fit
	}
	return c.granted
}

// join takes what is asked for, or queues the claim.
func (b *Budget) join(c *claim) (granted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.takeLocked(c) {
		return true
	}
	c.settled = make(chan struct{})
	at := len(b.queue)
	for at > 0 && b.queue[at-1].held < c.held {
		at--
	}
	b.queue = slices.Insert(b.queue, at, c)
	if b.waiting += c.held; c.held > 0 && b.waiting == b.used {
		for last := len(b.queue) - 1; ; last-- {
			if b.queue[last].held > 0 {
				b.settleLocked(last, false)
				break
			}
		}
	}
	return false
}

// settleLocked takes the claim out of the queue, granted or refused.
func (b *Budget) settleLocked(i int, granted bool) {
	c := b.queue[i]
	b.queue = slices.Delete(b.queue, i, i+1)
	b.waiting -= c.held
	if c.granted = granted; granted {
		b.used += c.n
	}
	close(c.settled)
}

// Give gives n bytes back.
func (b *Budget) Give(n int64) {
	if b == nil || n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.grantLocked()
}

// grantLocked serves those that wait and fit now.
func (b *Budget) grantLocked() {
	blocked := false // a large one waits on
	for i := 0; i < len(b.queue); {
		if c := b.queue[i]; c.large && blocked || !b.fitsLocked(c) {
			blocked = blocked || c.large
			i++
			continue
		}
		b.settleLocked(i, true)
	}
}
