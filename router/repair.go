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
//	settling          the target may be held: it is put into service, the replica follows it, the copies elsewhere are
//	                  deleted, the row becomes active
//	deleting          if the copy is gone, the row is deleted; if not, it is released and the row becomes active
//	promoting         the failover goes on: the target is promoted and becomes the tenant's node. If it must not be, the
//	                  node is released from the failover's token and keeps the tenant
//	active with stale the copies that are named are deleted; followers and former primaries follow the tenant's node, and
//	                  one of them becomes the replica if there is none
//	gone with stale   the copies are deleted, and then the row
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
	serving := t.Node
	if t.State == directory.Promoting && t.Target != "" {
		serving = t.Target // the node that it leaves need not answer
	}
	if away[serving] && t.State != directory.Active {
		return errAway
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
	case directory.Promoting:
		return rt.repairFailover(t, away)
	}
	return rt.repairCopies(rt.ctx, t, away)
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

// repairCopies deletes and settles the copies that a row names, and records that in the directory. It leaves out those on nodes
// that are away, to which it adds those that do not answer; without any left out it returns nil.
func (rt *Router) repairCopies(ctx context.Context, t *directory.Tenant, away map[string]bool) (failed error) {
	var reach, left []directory.Leftover
	for _, l := range t.Leftovers() {
		switch {
		case away[l.Node]:
			left, failed = append(left, l), errAway
		default:
			reach = append(reach, l)
		}
	}
	if len(reach) == 0 {
		return failed
	}
	rest, err := rt.clearCopies(ctx, reach, t.Name)
	if err != nil {
		failed = err
	}
	left = append(left, rest...)
	if len(left) < len(t.Leftovers()) {
		now, err := rt.dir.Change(t, recleared(t, left))
		if err != nil || now == nil {
			return err
		}
		t = now
	}
	for _, l := range t.Stale {
		if t.State != directory.Active || !follows(l) || away[l.Node] {
			continue
		}
		if t, err = rt.settleCopy(ctx, t, l); err != nil {
			failed = err
		}
		if gone := (*nodeError)(nil); unanswered(err) && errors.As(err, &gone) {
			away[gone.node] = true
		}
	}
	return failed
}

// recleared returns a tenant's row with the leftovers that are left, nil if the tenant does not exist and nothing is.
func recleared(t *directory.Tenant, left []directory.Leftover) *directory.Tenant {
	switch {
	case t.State == directory.Active:
		return active(t, left)
	case len(left) == 0:
		return nil
	}
	return &directory.Tenant{Name: t.Name, State: directory.Gone, Stale: left}
}
