package node

import (
	"time"

	"golang.org/x/sync/errgroup"
)

// sweepEvery is how often idle tenants are searched for.
const sweepEvery = time.Second

// closers is how many tenants are synced and closed at a time when the node stops.
const closers = 16

// every is a goroutine of the node: it calls work at each interval until the node stops.
func (n *Node) every(interval time.Duration, work func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-n.stop:
			return
		case <-ticker.C:
			work()
		}
	}
}

// sweep closes tenants that are unused for IdleClose, and the least recently used ones if the open ones hold more memory than
// they may.
func (n *Node) sweep() {
	now := n.clock()
	n.refusals.expire(now)
	var idle []*tenant
	n.eachOpen(func(t *tenant) {
		n.measure(t)
		if t != n.single && n.config.IdleClose > 0 && now.Sub(time.Unix(0, t.last.Load())) >= n.config.IdleClose {
			idle = append(idle, t)
		}
	})
	for _, t := range idle {
		n.closeIfIdle(t)
	}
	n.makeRoom(0)
}

// makeRoom closes idle tenants, least recently used first, until one more of that many bytes fits, or until every tenant is
// in use. The caller then opens it anyway: refusing requests because others are busy would turn a shortage into an outage.
func (n *Node) makeRoom(more int64) {
	for n.budget.tight(more) && n.closeLeastUsed() {
	}
}

// closeLeastUsed closes the tenant that has been idle longest, and reports whether there was one.
func (n *Node) closeLeastUsed() bool {
	var busy map[*tenant]bool
	for {
		var oldest *tenant
		n.registry.each(func(t *tenant) bool {
			if t.uses.Load() == 0 && !busy[t] && (oldest == nil || t.last.Load() < oldest.last.Load()) {
				oldest = t
			}
			return true
		})
		if oldest == nil {
			return false
		}
		if n.closeIfIdle(oldest) {
			return true
		}
		if busy == nil {
			busy = map[*tenant]bool{}
		}
		busy[oldest] = true
	}
}

// closeIfIdle closes a tenant unless a request is in it or its gate is held: the holder of that gate may be waiting for the
// caller's.
func (n *Node) closeIfIdle(t *tenant) bool {
	unlock := n.gates.tryLock(t.name)
	if unlock == nil {
		return false
	}
	defer unlock()
	if n.registry.get(t.name) != t || !t.shutIfIdle() {
		return false
	}
	_ = n.closeTenant(t) // logged there; the next open reports it
	return true
}

// closeAll closes every tenant when the node ends, after the requests in them have left, and opens no more.
func (n *Node) closeAll() error {
	n.ending.Lock()
	n.ended = true
	n.ending.Unlock()
	var open []*tenant
	n.registry.each(func(t *tenant) bool {
		open = append(open, t)
		return true
	})
	var group errgroup.Group
	group.SetLimit(closers)
	for _, t := range open {
		group.Go(func() error {
			unlock := n.gates.lock(t.name)
			defer unlock()
			if n.registry.get(t.name) != t {
				return nil // closed or deleted meanwhile
			}
			t.shut()
			return n.closeTenant(t)
		})
	}
	err := group.Wait()
	if n.single != nil {
		n.single.shut()
		err = n.closeTenant(n.single)
	}
	return err
}
