package router

import (
	"context"

	"fenec/router/directory"
)

// A move takes the tenant's replica along: the copy follows the target once that serves the tenant (Router.finish). What is
// below is for a move onto the node of the replica, and for one into a pair or out of one.

// makeRoom deletes the tenant's replica on the node that the tenant is to be moved to, or a copy there that a failover has left.
func (rt *Router) makeRoom(ctx context.Context, t *directory.Tenant, to *node) (*directory.Tenant, error) {
	if t.Replica != to.name && !hasFollower(t, to.name) {
		return t, nil
	}
	if t.State == directory.Moving {
		if err := rt.cancelMove(ctx, t); err != nil {
			return t, err
		}
		t = rt.dir.Tenant(t.Name)
	}
	for _, l := range t.Stale {
		if l.Node != to.name || !follows(l) {
			continue
		}
		var err error
		if t, err = rt.settleCopy(ctx, t, l); err != nil {
			return t, err
		}
	}
	if t.Replica != to.name {
		return t, nil
	}
	l := directory.Leftover{Node: to.name, Kind: directory.Follower}
	next := active(t, directory.With(t.Stale, l))
	next.Replica = ""
	t, err := rt.change(t, next)
	if err != nil {
		return t, err
	}
	c := to.copyOf(t.Name)
	if err = c.fence(ctx); err == nil {
		err = c.deleteReplica(ctx)
	}
	if err != nil {
		return t, err
	}
	return rt.drop(t, l)
}

func hasFollower(t *directory.Tenant, node string) bool {
	for _, l := range t.Stale {
		if l.Node == node && follows(l) {
			return true
		}
	}
	return false
}

// restoreReplica gives a tenant that had a replica another one if a move has deleted it, and has the replica of a tenant that
// was moved into a pair or out of one on a node that may hold it. It returns the tenant's row. What fails is logged: the tenant
// is served all the same.
func (rt *Router) restoreReplica(t *directory.Tenant, had bool) *directory.Tenant {
	if now := rt.dir.Tenant(t.Name); now != nil {
		t = now
	}
	if t.State != directory.Active || !had && rt.dir.StandbyOf(t.Node) == "" {
		return t
	}
	for _, l := range t.Stale {
		if l.Kind == directory.Follower {
			return t // it follows again once its node answers
		}
	}
	if t.Replica == "" {
		return rt.replicate(t, nil)
	}
	if rt.fits(t) {
		return t
	}
	now, err := rt.place(t, noCensus(), func(t *directory.Tenant, n *node) (*directory.Tenant, error) { return rt.replace(rt.ctx, t, n) })
	if err != nil {
		rt.log.Warn().Str("tenant", t.Name).Err(err).Msg("a tenant's replica is not on the standby of its node, or on that of another")
	}
	return now
}

// fits reports whether the tenant's replica is on the standby of its node, or on no standby if the node has none.
func (rt *Router) fits(t *directory.Tenant) bool {
	if standby := rt.dir.StandbyOf(t.Node); standby != "" {
		return t.Replica == standby
	}
	row, _ := rt.dir.Node(t.Replica)
	return row != nil && row.Standby == ""
}
