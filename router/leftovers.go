package router

import (
	"context"
	"errors"

	"fenec/router/directory"
)

// clearCopies deletes those of a tenant's leftovers that creates, moves and deletes have left. It returns those that are left,
// and why any of them could not be deleted. Those on a node that is no longer recorded are dropped. Followers and former
// primaries of a tenant that exists are not deleted here: see settleCopy.
func (rt *Router) clearCopies(ctx context.Context, list []directory.Leftover, tenant string) (left []directory.Leftover, err error) {
	for _, l := range list {
		_, n := rt.dir.Node(l.Node)
		if n == nil {
			continue
		}
		if follows(l) {
			left = append(left, l)
			continue
		}
		if e := rt.clearCopy(ctx, n.copyOf(tenant), l); e != nil {
			left, err = append(left, l), errors.Join(err, e)
		}
	}
	return left, err
}

// follows reports whether a leftover follows the tenant's node or has to.
func follows(l directory.Leftover) bool {
	return l.Kind == directory.Follower || l.Kind == directory.Former
}

// clearCopy deletes a leftover, and fences it, so that one that was sent and has not arrived is refused. Any other copy was
// made by an operator, and is kept.
func (rt *Router) clearCopy(ctx context.Context, c copyOn, l directory.Leftover) error {
	c.roles = l.Kind == directory.Dead
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
			if l.Kind != directory.Dead || !live {
				rt.kept(c)
			}
			return nil, nil
		}
		return c.remove(ctx, s), nil
	})
	return err
}

// kept logs that a copy is neither deleted nor followed up.
func (rt *Router) kept(c copyOn) {
	rt.log.Error().Str("tenant", c.tenant).Str("node", c.api.name).
		Msg("a node holds a copy of a tenant that is served elsewhere, and the router has not made or replaced that copy: it is kept; delete it there by hand, but first make sure that it is not the only one, as it is if one node is recorded under two names")
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

// settleCopy settles a follower or a former primary of an active tenant. If the tenant has no replica, it becomes the replica.
// Otherwise it is deleted, a former primary only after it has caught up, and not if the node keeps changes of it that a failover
// left behind. A former primary accepts no writes once it was told to follow, which is done first.
func (rt *Router) settleCopy(ctx context.Context, t *directory.Tenant, l directory.Leftover) (*directory.Tenant, error) {
	_, n := rt.dir.Node(l.Node)
	if n == nil || t.Replica == l.Node {
		return rt.drop(t, l)
	}
	c := n.copyOf(t.Name).withRole()
	if err := c.fence(ctx); err != nil {
		return t, err
	}
	s, err := c.state(ctx)
	if err != nil {
		return t, err
	}
	live, err := rt.isLive(ctx, c, s)
	switch {
	case err != nil && !unanswered(err): // a node that does not answer is not the one that has
		return t, err
	case live:
		return rt.drop(t, l)
	case !s.exists && (t.Replica != "" || l.Kind == directory.Former):
		return rt.drop(t, l)
	case s.exists && !s.unreadable && !s.replica() && !s.empty() && s.place.Lineage != t.Lineage:
		rt.kept(c)
		return rt.drop(t, l)
	case t.Replica == "":
		return rt.link(ctx, t, n)
	}
	return rt.retire(ctx, t, c, l)
}

// retire deletes a copy of a tenant that has its replica elsewhere, once that has caught up.
func (rt *Router) retire(ctx context.Context, t *directory.Tenant, c copyOn, l directory.Leftover) (*directory.Tenant, error) {
	s, err := c.state(ctx)
	if err != nil {
		return t, err
	}
	replica := rt.copyAt(t.Replica, t.Name).withRole()
	other, err := replica.state(ctx)
	switch {
	case err != nil:
		return t, err
	case other.revision == s.revision: // one node is recorded under two names
		return rt.drop(t, l)
	}
	if l.Kind == directory.Former || !s.replica() && !s.empty() {
		if err := rt.follow(ctx, t, c); err != nil {
			return t, err
		}
		if s, err = c.state(ctx); err == nil && !s.place.CaughtUp {
			err = notCaughtUp(c)
		}
		if err != nil {
			return t, err
		}
	}
	if !other.replica() || !other.place.CaughtUp {
		return t, notCaughtUp(replica)
	}
	tails, err := c.leftTails(ctx)
	switch {
	case err != nil:
		return t, err
	case tails:
		rt.log.Error().Str("tenant", c.tenant).Str("node", c.api.name).
			Msg("a node keeps changes of a tenant that a failover left behind, so its copy, which follows, is kept: delete it there by hand once they are not needed")
		return rt.drop(t, l)
	}
	if err := c.deleteReplica(ctx); err != nil {
		return t, err
	}
	return rt.drop(t, l)
}

func notCaughtUp(c copyOn) error {
	return &refusal{502, "node " + c.api.name + " has not caught up with tenant " + c.tenant + " yet"}
}

// deleteReplica deletes a copy that follows another or was never written to.
func (c copyOn) deleteReplica(ctx context.Context) error {
	c = c.withRole()
	_, err := c.until(ctx, func(s copyState) (func() error, error) {
		switch {
		case !s.exists:
			return nil, nil
		case s.replica() || s.empty():
			return c.remove(ctx, s), nil
		}
		return nil, &refusal{409, "node " + c.api.name + " holds a copy of tenant " + c.tenant + " that follows no other: it is not deleted"}
	})
	return err
}

// drop removes a leftover from the row of a tenant.
func (rt *Router) drop(t *directory.Tenant, l directory.Leftover) (*directory.Tenant, error) {
	next := *t
	next.Stale = nil
	for _, other := range t.Stale {
		if other != l {
			next.Stale = append(next.Stale, other)
		}
	}
	return rt.change(t, &next)
}

// change is directory.Change that returns the row as it is if it fails.
func (rt *Router) change(t, next *directory.Tenant) (*directory.Tenant, error) {
	now, err := rt.dir.Change(t, next)
	if err != nil {
		return t, err
	}
	return now, nil
}
