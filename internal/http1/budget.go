package http1

import (
	"slices"
	"sync"
	"time"
)

// maxSmall is the most bytes of a Budget that a small holder has. Part of a Budget is reserved for small holders.
const maxSmall = 1 << 20

// Budget bounds the bytes that requests hold together: their bodies, or the rows and answers of their statements. A quarter
// of it is reserved for small holders, so that a few large and slow ones do not block the others; a large one that is the
// only holder may have all of it.
//
// Waiters that hold more already are served first, then first come, first served; small ones overtake large ones. If all
// bytes in use are held by waiters, the last of them is refused at once: otherwise none would end. A nil Budget has no
// bound.
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
	grows   bool          // it becomes large by this claim, and does not overtake waiting claims
	settled chan struct{} // of a waiting claim: closed once it is granted or refused
	granted bool
}

// NewBudget returns a budget of max bytes.
func NewBudget(max int64) *Budget { return &Budget{max: max} }

// Max returns how many bytes may be held.
func (b *Budget) Max() int64 {
	if b == nil {
		return 0
	}
	return b.max
}

// Used returns how many bytes are held.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Take takes n bytes more for a holder that has held bytes, and reports whether there was room. A holder that becomes large
// by that does not overtake the waiters.
func (b *Budget) Take(n, held int64) bool {
	return b.take(claimOf(n, held))
}

// claimOf returns a claim. It is large if n and held together are over maxSmall.
func claimOf(n, held int64) claim {
	large := held+n > maxSmall
	return claim{n: n, held: held, large: large, grows: large && held <= maxSmall}
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
	if len(b.queue) > 0 && c.grows || !b.fitsLocked(c) {
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

// Wait is Take that waits for room for at most patience, or until done is closed.
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
		b.grantLocked() // those after it may fit
	}
	return c.granted
}

// join grants the claim if it fits, or queues it.
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

// settleLocked removes claim i from the queue, granted or refused.
func (b *Budget) settleLocked(i int, granted bool) {
	c := b.queue[i]
	b.queue = slices.Delete(b.queue, i, i+1)
	b.waiting -= c.held
	if c.granted = granted; granted {
		b.used += c.n
	}
	close(c.settled)
}

// Give returns n bytes to the budget.
func (b *Budget) Give(n int64) {
	if b == nil || n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.grantLocked()
}

// grantLocked grants the waiting claims that fit now.
func (b *Budget) grantLocked() {
	blocked := false // a large one keeps waiting
	for i := 0; i < len(b.queue); {
		if c := b.queue[i]; c.large && blocked || !b.fitsLocked(c) {
			blocked = blocked || c.large
			i++
			continue
		}
		b.settleLocked(i, true)
	}
}
