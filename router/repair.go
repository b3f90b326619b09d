package router

import (
	"context"
	"errors"
	"sync"
	"time"
)

// What a tenant's row in the directory owes where it was left like this, and how it is put right:
//
//	placing           the node may have an empty file: it goes, and the row with it
//	moving            the source may be frozen: it is released from the move's token; the mark stays until the tenant
//	                  is moved again, which replaces what is left on the target, or to where it is, which cancels
//	settling          the target may be held: it is put into service, the copies elsewhere go, the row becomes active
//	deleting          where the copy is gone so is the row; else it is released and the row becomes active
//	active with stale the copies that are named go
//	gone with stale   likewise, and the row with them
//
// A debt is paid once the node has shown the state that was wanted, after a fence where a request of an earlier attempt
// may still be on its way. A copy is only ever deleted where it carries the token of the move that superseded or made it,
// or was never written to. DESIGN.md has the argument.

// Waits between rounds of repair that could not do everything.
const (
	repairSoon = time.Second
	repairLate = time.Minute
)

// repairer knows which tenants are owed something.
type repairer struct {
	mu     sync.Mutex
	owed   map[string]struct{}
	signal chan struct{} // holds one wake-up
}

// init finds the debts in what the directory holds.
func (p *repairer) init(tenants *placements) {
	p.owed = map[string]struct{}{}
	p.signal = make(chan struct{}, 1)
	tenants.each(func(t *tenant) {
		if !t.settled() {
			p.owed[t.name] = struct{}{}
		}
	})
}

// wake has the debts looked at now.
func (p *repairer) wake() {
	select {
	case p.signal <- struct{}{}:
	default:
	}
}

func (p *repairer) add(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owed[tenant] = struct{}{}
}

func (p *repairer) settle(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.owed, tenant)
}

func (p *repairer) list() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]string, 0, len(p.owed))
	for name := range p.owed {
		list = append(list, name)
	}
	return list
}

func (p *repairer) pending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.owed)
}

// owe has the repairer put a tenant right, soon and until it could.
func (rt *Router) owe(t *tenant) {
	rt.repairer.add(t.name)
	rt.repairer.wake()
}

// repairLoop puts right what an earlier router has left, and from then on what this one could not end.
func (rt *Router) repairLoop() {
	wait := repairSoon
	for {
		var again <-chan time.Time
		if !rt.repairRound() {
			again = time.After(wait)
		}
		select {
		case <-rt.ctx.Done():
			return
		case <-rt.repairer.signal:
			wait = repairSoon
		case <-again:
			wait = min(2*wait, repairLate)
		}
	}
}

// repairRound tries to pay every debt once and reports whether none is left. A node that does not answer is not asked
// again in the same round.
func (rt *Router) repairRound() bool {
	away := map[string]bool{}
	for _, name := range rt.repairer.list() {
		if rt.ctx.Err() != nil {
			return false
		}
		end, _ := rt.tenantOps.try(name, repaired)
		if end == nil {
			continue // whoever is at it puts it right or owes it anew
		}
		err := rt.repair(rt.dir.tenants.find(name), away)
		if err == nil {
			rt.repairer.settle(name)
		}
		end()
		var failed *nodeError
		if errors.As(err, &failed) && failed.status == 0 {
			away[failed.node] = true
		}
		if err != nil && !errors.Is(err, errAway) {
			rt.log.Warn().Str("tenant", name).Err(err).Msg("a tenant could not be put right yet")
		}
	}
	return rt.repairer.pending() == 0
}

// errAway is a debt to a node that has not answered in this round.
var errAway = errors.New("the node does not answer")

// repair does for a tenant what its row says is owed.
func (rt *Router) repair(t *tenant, away map[string]bool) error {
	if t == nil || t.settled() {
		return nil
	}
	if t.node != nil && away[t.node.name] && t.state != active {
		return errAway
	}
	for _, l := range t.stale {
		if away[l.node] {
			return errAway
		}
	}
	switch t.state {
	case moving:
		return rt.repairMove(t)
	case settling:
		now, _, err := rt.finish(rt.ctx, t)
		if err == nil && now.state == settling {
			err = errUnwritten
		}
		return err
	case deleting:
		_, err := rt.takeBack(rt.ctx, t)
		return err
	}
	return rt.repairCopies(rt.ctx, t)
}

// errUnwritten is a debt that is paid, but for the directory, which cannot be written.
var errUnwritten = errors.New("the directory cannot be written")

// repairMove has the source of an interrupted move take writes again.
func (rt *Router) repairMove(t *tenant) error {
	err := t.node.copyOf(t.name).release(rt.ctx, t.token)
	var failed *nodeError
	if errors.As(err, &failed) && failed.status == 404 {
		rt.log.Error().Str("tenant", t.name).Err(err).Msg("a tenant that was being moved is gone from its node")
		return nil // nothing of the router's is left to be thawed
	}
	if err == nil {
		rt.log.Warn().Str("tenant", t.name).Str("node", t.node.name).Str("to", t.target.name).
			Msg("a move was interrupted: the tenant goes on where it was; move it again, or to where it is to cancel")
	}
	return err
}

// repairCopies deletes the copies a row names, and says so in the directory.
func (rt *Router) repairCopies(ctx context.Context, t *tenant) error {
	left, failed := rt.clearCopies(ctx, t.leftovers(), t.name)
	if failed != nil {
		return failed
	}
	if t.state != active {
		return rt.dir.change(t, nil)
	}
	return rt.dir.change(t, &tenant{name: t.name, node: t.node, state: active, stale: left})
}

// clearCopies deletes a tenant's leftovers. It returns those it could not delete, and why. A node that is recorded no
// more is as good as cleared.
func (rt *Router) clearCopies(ctx context.Context, list []leftover, tenant string) (left []leftover, err error) {
	for _, l := range list {
		n := rt.dir.node(l.node)
		if n == nil {
			continue
		}
		if e := rt.clearCopy(ctx, n.copyOf(tenant), l); e != nil {
			left, err = append(left, l), errors.Join(err, e)
		}
	}
	return left, err
}

// clearCopy deletes a leftover, and makes sure that none comes that was sent and has not arrived. Any other copy is
// somebody's doing, and stays.
func (rt *Router) clearCopy(ctx context.Context, c copyOn, l leftover) error {
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
		if live || !l.marks(s) {
			rt.log.Error().Str("tenant", c.tenant).Str("node", c.api.name).
				Msg("a node holds a copy of a tenant that is elsewhere, and the copy is not one that the router has made or replaced: it is left alone; delete it there by hand once it is sure not to be the only one, as where one node is recorded under two names")
			return nil, nil
		}
		return c.remove(ctx, s), nil
	})
	return err
}

// isLive reports whether a copy that was found to be like s is the very one that requests are routed to, because one
// node is recorded under two names. Then both names show one revision, which no two nodes share; and where it changed
// after s was read, s cannot be acted on.
func (rt *Router) isLive(ctx context.Context, c copyOn, s copyState) (bool, error) {
	t := rt.dir.tenants.find(c.tenant)
	if !t.routed() {
		return false, nil
	}
	routed, err := t.node.copyOf(c.tenant).state(ctx)
	return routed.revision == s.revision, err
}
