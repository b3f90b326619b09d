package router

import (
	"context"
	"errors"
	"sync"
	"time"

	"fenec/router/directory"
)

// The repair that a tenant needs, by the state in which its row in the directory was left:
//
//	placing           the node may have an empty file: it is deleted, and then the row
//	moving            the source may be frozen: it is released from the move's token; the row stays until the tenant is
//	                  moved again, which replaces what is left on the target, or to where it is, which cancels the move
//	settling          the target may be held: it is put into service, the copies elsewhere are deleted, the row becomes
//	                  active
//	deleting          if the copy is gone, the row is deleted; if not, it is released and the row becomes active
//	active with stale the copies that are named are deleted
//	gone with stale   likewise, and then the row
//
// A repair is done once the node has shown the wanted state, after a fence if a request of an earlier attempt may still be
// in flight. A copy is only ever deleted if it carries the token of the move that superseded or made it, or was never
// written to. DESIGN.md has the argument.

// The shortest and the longest wait between rounds of repair that could not do everything.
const (
	repairSoon = time.Second
	repairLate = time.Minute
)

// repairer is the set of tenants that need a repair.
type repairer struct {
	mu     sync.Mutex
	needed map[string]struct{} // by tenant
	signal chan struct{}       // holds one wake-up
	back   chan struct{}       // holds one notice that a node answers again
}

func (p *repairer) init() {
	p.needed = map[string]struct{}{}
	p.signal = make(chan struct{}, 1)
	p.back = make(chan struct{}, 1)
}

// wake starts a round of repair now.
func (p *repairer) wake() {
	select {
	case p.signal <- struct{}{}:
	default:
	}
}

// answers starts a round of repair soon, because a node answers again.
func (p *repairer) answers() {
	select {
	case p.back <- struct{}{}:
	default:
	}
}

// add has a tenant repaired, soon and until it succeeds.
func (p *repairer) add(tenant string) {
	p.mu.Lock()
	p.needed[tenant] = struct{}{}
	p.mu.Unlock()
	p.wake()
}

func (p *repairer) remove(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.needed, tenant)
}

func (p *repairer) list() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]string, 0, len(p.needed))
	for name := range p.needed {
		list = append(list, name)
	}
	return list
}

func (p *repairer) pending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.needed)
}

// begin acquires the right to work on a tenant, and returns the function that gives it back. A tenant that is left unsettled
// is repaired then.
func (rt *Router) begin(tenant string, operation directory.Operation) (end func(), err error) {
	w, err := rt.dir.Begin(rt.ctx, tenant, operation)
	if err != nil {
		return nil, err
	}
	return func() {
		w.End()
		if t := rt.dir.Tenant(tenant); t != nil && !t.Settled() {
			rt.repairer.add(tenant)
		}
	}, nil
}

// repairLoop repairs what an earlier router has left, and then what this one could not finish.
func (rt *Router) repairLoop() {
	for wait := repairSoon; rt.ctx.Err() == nil; {
		if rt.repairRound() {
			select {
			case <-rt.ctx.Done():
			case <-rt.repairer.signal:
			}
			wait = repairSoon
		} else if rt.repairPause(wait) {
			wait = repairSoon
		} else {
			wait = min(2*wait, repairLate)
		}
	}
}

// repairPause waits between two rounds, and reports whether there was a reason for the next one before wait was over. A node
// that answers again is a reason, for a round repairSoon after the last: a node that answers some requests and not others would
// be another reason with each of them.
func (rt *Router) repairPause(wait time.Duration) (early bool) {
	ended := time.Now()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-rt.ctx.Done():
			return false
		case <-rt.repairer.signal:
			return true
		case <-rt.repairer.back:
			early = true
			timer.Reset(min(wait, repairSoon) - time.Since(ended))
		case <-timer.C:
			return early
		}
	}
}

// repairRound tries every pending repair once and reports whether none is left. A node that does not answer is not asked
// again in the same round.
func (rt *Router) repairRound() bool {
	away := map[string]bool{}
	for _, name := range rt.repairer.list() {
		if rt.ctx.Err() != nil {
			return false
		}
		work, err := rt.dir.TryBegin(name, directory.Repair)
		if busy := (*directory.Busy)(nil); errors.As(err, &busy) {
			continue // the operation that has it finishes it or adds it again
		}
		if err != nil {
			return false // the directory cannot be read or is closed
		}
		err = rt.repair(rt.dir.Tenant(name), away)
		if err == nil {
			rt.repairer.remove(name)
		}
		work.End()
		var failed *nodeError
		if errors.As(err, &failed) && failed.status == 0 {
			away[failed.node] = true
		}
		if err != nil && !errors.Is(err, errAway) {
			rt.log.Warn().Str("tenant", name).Err(err).Msg("a tenant could not be repaired yet")
		}
	}
	return rt.repairer.pending() == 0
}

// errAway is the error of a repair on a node that has not answered in this round.
var errAway = errors.New("the node does not answer")

// repair does the repair that a tenant's row needs.
func (rt *Router) repair(t *directory.Tenant, away map[string]bool) error {
	if t == nil || t.Settled() {
		return nil
	}
	if away[t.Node] && t.State != directory.Active {
		return errAway
	}
	for _, l := range t.Stale {
		if away[l.Node] {
			return errAway
		}
	}
	switch t.State {
	case directory.Moving:
		return rt.repairMove(t)
	case directory.Settling:
		now, _, err := rt.finish(rt.ctx, t)
		if err == nil && now.State == directory.Settling {
			err = errUnwritten
		}
		return err
	case directory.Deleting:
		_, err := rt.takeBack(rt.ctx, t)
		return err
	}
	return rt.repairCopies(rt.ctx, t)
}

// errUnwritten is the error of a repair that is done on the nodes but not recorded in the directory.
var errUnwritten = errors.New("the directory cannot be written")

// repairMove has the source of an interrupted move take writes again.
func (rt *Router) repairMove(t *directory.Tenant) error {
	err := rt.copyAt(t.Node, t.Name).release(rt.ctx, t.Token)
	var failed *nodeError
	if errors.As(err, &failed) && failed.status == 404 {
		rt.log.Error().Str("tenant", t.Name).Err(err).Msg("a tenant that was being moved is gone from its node")
		return nil // no copy is left to thaw
	}
	if err == nil {
		rt.log.Warn().Str("tenant", t.Name).Str("node", t.Node).Str("to", t.Target).
			Msg("a move was interrupted: the tenant is served where it was; move it again, or move it to where it is to cancel")
	}
	return err
}

// repairCopies deletes the copies that a row names, and records that in the directory.
func (rt *Router) repairCopies(ctx context.Context, t *directory.Tenant) error {
	left, failed := rt.clearCopies(ctx, t.Leftovers(), t.Name)
	if failed != nil {
		return failed
	}
	var next *directory.Tenant
	if t.State == directory.Active {
		next = active(t, left)
	}
	_, err := rt.dir.Change(t, next)
	return err
}

// clearCopies deletes a tenant's leftovers. It returns those it could not delete, and why. Those on a node that is no longer
// recorded are dropped.
func (rt *Router) clearCopies(ctx context.Context, list []directory.Leftover, tenant string) (left []directory.Leftover, err error) {
	for _, l := range list {
		_, n := rt.dir.Node(l.Node)
		if n == nil {
			continue
		}
		if e := rt.clearCopy(ctx, n.copyOf(tenant), l); e != nil {
			left, err = append(left, l), errors.Join(err, e)
		}
	}
	return left, err
}

// clearCopy deletes a leftover, and fences it, so that one that was sent and has not arrived is refused. Any other copy was
// made by an operator, and is kept.
func (rt *Router) clearCopy(ctx context.Context, c copyOn, l directory.Leftover) error {
	if err := c.fence(ctx); err != nil {
		return err
	}
	_, err := c.until(ctx, func(s copyState) (func() error, error) {
		if !s.exists {
			return nil, nil
		}
		live, err := rt.isLive(ctx, c, s)
		if err != nil {
			return nil, err
		}
		if live || !isLeftover(l, s) {
			rt.log.Error().Str("tenant", c.tenant).Str("node", c.api.name).
				Msg("a node holds a copy of a tenant that is served elsewhere, and the router has not made or replaced that copy: it is kept; delete it there by hand, but first make sure that it is not the only one, as it is if one node is recorded under two names")
			return nil, nil
		}
		return c.remove(ctx, s), nil
	})
	return err
}

// isLive reports whether a copy in state s is the one that requests are routed to, because one node is recorded under two
// names. Then both names show the same revision, which no two nodes share. If the copy changed after s was read, a change
// that names s is refused.
func (rt *Router) isLive(ctx context.Context, c copyOn, s copyState) (bool, error) {
	t := rt.dir.Tenant(c.tenant)
	if !t.Routed() {
		return false, nil
	}
	routed, err := rt.copyAt(t.Node, c.tenant).state(ctx)
	return routed.revision == s.revision, err
}
