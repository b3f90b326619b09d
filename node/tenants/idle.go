package tenants

import (
	"time"

	"golang.org/x/sync/errgroup"
)

// sweepEvery is how often idle tenants are searched for.
const sweepEvery = time.Second

// closers is how many tenants are synced and closed at a time when the Set ends.
const closers = 16

// Sweep closes tenants that are unused for IdleClose, and the least recently used ones if the open ones hold more memory than
// they may. The Set calls it every second.
func (s *Set) Sweep() {
	now := s.clock()
	s.refusals.expire(now)
	var idle []*Tenant
	s.Each(func(t *Tenant) {
		s.Measure(t)
		if t != s.single && s.config.IdleClose > 0 && t.follows.Load() == nil && now.Sub(time.Unix(0, t.last.Load())) >= s.config.IdleClose {
			idle = append(idle, t)
		}
	})
	for _, t := range idle {
		s.CloseIfIdle(t)
	}
	s.makeRoom(0)
}

// makeRoom closes idle tenants, least recently used first, until one more of that many bytes fits, or until every tenant is
// in use. The caller then opens it anyway: refusing requests because others are busy would turn a shortage into an outage.
func (s *Set) makeRoom(more int64) {
	for s.budget.tight(more) && s.closeLeastUsed() {
	}
}

// closeLeastUsed closes the tenant that has been idle longest, and reports whether there was one.
func (s *Set) closeLeastUsed() bool {
	var busy map[*Tenant]bool
	for {
		var oldest *Tenant
		s.registry.each(func(t *Tenant) bool {
			if t.uses.Load() == 0 && !busy[t] && t.follows.Load() == nil && (oldest == nil || t.last.Load() < oldest.last.Load()) {
				oldest = t
			}
			return true
		})
		if oldest == nil {
			return false
		}
		if s.CloseIfIdle(oldest) {
			return true
		}
		if busy == nil {
			busy = map[*Tenant]bool{}
		}
		busy[oldest] = true
	}
}

// CloseIfIdle closes a tenant unless a request is in it or its gate is held: the holder of that gate may be waiting for the
// caller's. A copy that follows is never closed for idleness: it would fall behind. It reports whether it did.
func (s *Set) CloseIfIdle(t *Tenant) bool {
	unlock := s.gates.tryLock(t.Name)
	if unlock == nil {
		return false
	}
	defer unlock()
	if s.registry.get(t.Name) != t || t.follows.Load() != nil || !t.shutIfIdle() {
		return false
	}
	_ = s.closeTenant(t) // logged there; the next open reports it
	return true
}

// closeAll closes every tenant when the Set ends, after the requests in them have left, and opens no more.
func (s *Set) closeAll() error {
	s.ending.Lock()
	s.ended = true
	s.ending.Unlock()
	var open []*Tenant
	s.registry.each(func(t *Tenant) bool {
		open = append(open, t)
		return true
	})
	var group errgroup.Group
	group.SetLimit(closers)
	for _, t := range open {
		group.Go(func() error {
			unlock := s.gates.lock(t.Name)
			defer unlock()
			if s.registry.get(t.Name) != t {
				return nil // closed or deleted meanwhile
			}
			t.shut()
			return s.closeTenant(t)
		})
	}
	err := group.Wait()
	if s.single != nil {
		s.single.shut()
		err = s.closeTenant(s.single)
	}
	return err
}
