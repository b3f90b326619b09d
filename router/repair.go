package router

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"
)

// What a tenant's row in the directory owes where it was left like this, and how it is put right:
//
//	placing           the node may have an empty file: it goes, and the row with it
//	moving            the source may be frozen: it is thawed under the move's token; the mark stays until the tenant
//	                  is moved again, which replaces what is left on the target, or to where it is, which cancels
//	settling          the target may be held: it is thawed, the copies elsewhere go, the row becomes active
//	active with stale the copies on those nodes go
//	gone with stale   likewise, and the row with them
//
// A copy is only ever deleted where it could not have been written to: frozen, held or empty.

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
	for _, name := range t.stale {
		if away[name] {
			return errAway
		}
	}
	switch t.state {
	case moving:
		var failed *nodeError
		err := t.node.api().thaw(rt.ctx, t.name, t.token)
		if errors.As(err, &failed) && (failed.status == 404 || failed.status == 409) {
			rt.log.Error().Str("tenant", t.name).Err(err).Msg("a tenant that was being moved is frozen by somebody else, or gone from its node")
			return nil // nothing of the router's is left to be thawed
		}
		if err != nil {
			return err
		}
		rt.log.Warn().Str("tenant", t.name).Str("node", t.node.name).Str("to", t.target.name).
			Msg("a move was interrupted: the tenant goes on where it was; move it again, or to where it is to cancel")
		return nil
	case settling:
		_, _, err := rt.finish(rt.ctx, t)
		return err
	}
	return rt.repairCopies(t)
}

// repairCopies deletes the copies a row names, and says so in the directory.
func (rt *Router) repairCopies(t *tenant) error {
	stale, failed := rt.clearCopies(t.leftovers(), t.name)
	if failed != nil {
		return failed
	}
	if t.state != active {
		return rt.dir.change(t, nil)
	}
	return rt.dir.change(t, &tenant{name: t.name, node: t.node, state: active, stale: stale})
}

// clearCopies deletes a tenant's copies from nodes nothing of it is routed to. It returns those it could not delete
// from, and why. A node that is recorded no more is as good as cleared.
func (rt *Router) clearCopies(nodes []string, tenant string) (left []string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(rt.ctx), undoTimeout)
	defer cancel()
	for _, name := range nodes {
		n := rt.dir.node(name)
		if n == nil {
			continue
		}
		if e := rt.clearCopy(ctx, n.api(), tenant); e != nil {
			left, err = append(left, name), errors.Join(err, e)
		}
	}
	return left, err
}

// clearCopy deletes a copy that takes no writes, or never took one. Any other is somebody's doing, and stays.
func (rt *Router) clearCopy(ctx context.Context, api nodeAPI, tenant string) error {
	found, exists, err := api.state(ctx, tenant)
	if err != nil || !exists {
		return err
	}
	if !found.Frozen && !found.Held {
		live := false
		if found.Seq == 0 {
			live, err = rt.isLive(ctx, api, tenant)
		}
		if err != nil {
			return err
		}
		if live || found.Seq != 0 {
			rt.log.Error().Str("tenant", tenant).Str("node", api.name).
				Msg("a node holds a copy of a tenant that is elsewhere, and takes writes to it: it is left alone; delete it there by hand once it is sure not to be the only one, as where one node is recorded under two names")
			return nil
		}
	}
	return api.remove(ctx, tenant)
}

// isLive reports whether a copy is the very one that requests are routed to, because one node is recorded under two
// names: it is frozen under one of them and looked at under the other. It is thawed again only where it is live.
func (rt *Router) isLive(ctx context.Context, api nodeAPI, tenant string) (bool, error) {
	t := rt.dir.tenants.find(tenant)
	if !t.routed() {
		return false, nil
	}
	token := rand.Text()
	if _, err := api.freeze(ctx, tenant, token); err != nil {
		return false, err
	}
	routed, exists, err := t.node.api().state(ctx, tenant)
	if err != nil || exists && routed.Token == token {
		return true, errors.Join(err, api.thaw(ctx, tenant, token))
	}
	return false, nil
}
