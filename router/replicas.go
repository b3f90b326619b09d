package router

import (
	"context"
	"fmt"
	"sync"
	"time"

	"fenec/internal/http1"
	"fenec/router/directory"
)

// replicaPatience is how long a new replica may take to catch up before the one that it replaces is given up.
const replicaPatience = 10 * time.Minute

// replicate gives an active tenant a replica, or logs why it has none.
func (rt *Router) replicate(t *directory.Tenant, c *census) *directory.Tenant {
	if c == nil {
		c = noCensus()
	}
	now, err := rt.place(t, c, func(t *directory.Tenant, n *node) (*directory.Tenant, error) { return rt.link(rt.ctx, t, n) })
	if err != nil {
		rt.log.Warn().Str("tenant", t.Name).Err(err).Msg("a tenant has no replica")
	}
	return now
}

// link has the copy on a node follow the tenant's node and records it as the tenant's replica.
func (rt *Router) link(ctx context.Context, t *directory.Tenant, n *node) (*directory.Tenant, error) {
	t, err := rt.join(ctx, t, n)
	if err != nil {
		return t, err
	}
	next := active(t, directory.Without(t.Stale, n.name))
	next.Replica = n.name
	return rt.change(t, next)
}

// join has the copy on a node follow the tenant's node: it is created, or it is one that followed or served the tenant before.
// The row names it as a leftover before the node is asked.
func (rt *Router) join(ctx context.Context, t *directory.Tenant, n *node) (*directory.Tenant, error) {
	t, err := rt.withLineage(ctx, t)
	if err != nil {
		return t, err
	}
	c := n.copyOf(t.Name).withRole()
	s, err := c.state(ctx)
	if err == nil {
		err = rt.mayFollow(ctx, t, c, s)
	}
	if err != nil {
		return t, err
	}
	next := active(t, t.Stale)
	known := false
	for _, l := range t.Stale {
		switch {
		case l.Node != n.name:
		case follows(l):
			known = true
		default:
			if err := rt.clearCopy(ctx, n.copyOf(t.Name), l); err != nil {
				return t, err
			}
			next.Stale = directory.Without(t.Stale, n.name)
		}
	}
	if !known {
		next.Stale = directory.With(next.Stale, directory.Leftover{Node: n.name, Kind: directory.Follower})
		if t, err = rt.change(t, next); err != nil {
			return t, err
		}
	}
	return t, rt.follow(ctx, t, c)
}

// follow has a copy follow the tenant's node.
func (rt *Router) follow(ctx context.Context, t *directory.Tenant, c copyOn) error {
	url := rt.copyAt(t.Node, t.Name).api.link.url()
	return c.follow(ctx, url, t.Lineage, func(s copyState) error { return rt.mayFollow(ctx, t, c, s) })
}

// mayFollow returns an error if a copy in state s must not be told to follow the tenant's node, which ends what it holds beyond
// that: it is another tenant's, or its operator's, or the tenant's own under another name of its node.
func (rt *Router) mayFollow(ctx context.Context, t *directory.Tenant, c copyOn, s copyState) error {
	live, err := rt.isLive(ctx, c, s)
	ours := s.place.Lineage == t.Lineage && (!s.Frozen || rt.stopped(t, c, s))
	switch {
	case err != nil && !unanswered(err): // a node that does not answer is not the one that has
		return err
	case live:
		return &refusal{409, fmt.Sprintf("nodes %s and %s are the same node", t.Node, c.api.name)}
	case !s.exists, s.empty(), s.replica() && (s.Seq == 0 || s.place.Lineage == t.Lineage):
		return nil
	case s.unreadable:
		return c.api.fails(500, "cannot open the file of tenant "+c.tenant)
	case !ours:
		return &refusal{409, fmt.Sprintf("node %s holds a file for tenant %s that the directory does not know", c.api.name, c.tenant)}
	}
	return nil
}

// stopped reports whether a copy that served the tenant was frozen by the failover from it.
func (rt *Router) stopped(t *directory.Tenant, c copyOn, s copyState) bool {
	for _, l := range t.Stale {
		if l.Node == c.api.name && l.Kind == directory.Former && l.Token == s.Token && !s.Held {
			return true
		}
	}
	return false
}

// withLineage returns the tenant's row with its lineage, which a directory of an earlier version lacks.
func (rt *Router) withLineage(ctx context.Context, t *directory.Tenant) (*directory.Tenant, error) {
	if t.Lineage != "" {
		return t, nil
	}
	c := rt.copyAt(t.Node, t.Name)
	p, err := c.position(ctx)
	if err == nil && p.Lineage == "" {
		err = c.api.fails(200, "does not report the lineage of tenant "+t.Name)
	}
	if err != nil {
		return t, err
	}
	next := *t
	next.Lineage = p.Lineage
	return rt.change(t, &next)
}

// replace gives an active tenant its replica on a node, and deletes the one that it has once the new one has caught up.
func (rt *Router) replace(ctx context.Context, t *directory.Tenant, n *node) (*directory.Tenant, error) {
	if t.Replica == "" || t.Replica == n.name {
		return rt.link(ctx, t, n)
	}
	t, err := rt.join(ctx, t, n)
	if err != nil {
		return t, err
	}
	ctx, cancel := context.WithTimeout(ctx, replicaPatience)
	defer cancel()
	ready, err := n.copyOf(t.Name).await(ctx, func(p position) bool { return p.Role == "replica" && p.CaughtUp })
	if err == nil && !ready {
		err = notCaughtUp(n.copyOf(t.Name))
	}
	if err != nil {
		return t, err
	}
	old := directory.Leftover{Node: t.Replica, Kind: directory.Follower}
	next := active(t, directory.With(directory.Without(t.Stale, n.name), old))
	next.Replica = n.name
	if t, err = rt.change(t, next); err != nil {
		return t, err
	}
	now, err := rt.settleCopy(ctx, t, old)
	if err != nil {
		rt.log.Warn().Str("tenant", t.Name).Err(err).Msg("a replaced replica could not be deleted yet")
	}
	return now, nil
}

// replicated is a tenant that got a replica.
type replicated struct {
	Tenant  string `json:"tenant"`
	Replica string `json:"replica"`
}

// failedTenant is a tenant for which something failed.
type failedTenant struct {
	Tenant string `json:"tenant"`
	Error  string `json:"error"`
}

// postReplicas gives every tenant without a replica one. Of the nodes it prefers those that hold a copy of the tenant already,
// as a node does that comes back after a failover.
func (rt *Router) postReplicas(r *http1.Request) http1.Answer {
	if err := readJSON(r, &struct{}{}); err != nil {
		return answerError(err)
	}
	var names []string
	rt.dir.Each(func(t *directory.Tenant, _ *node) {
		if t.Routed() && t.Replica == "" {
			names = append(names, t.Name)
		}
	})
	said := struct {
		Replicated []replicated   `json:"replicated"`
		Failed     []failedTenant `json:"failed"`
		Error      string         `json:"error,omitzero"`
	}{[]replicated{}, []failedTenant{}, ""}
	if len(names) == 0 {
		return jsonAnswer(200, said)
	}
	c := rt.survey()
	var mu sync.Mutex
	eachOf(names, func(name string) {
		t, err := rt.giveReplica(name, c)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			said.Failed = append(said.Failed, failedTenant{name, err.Error()})
		case t != nil:
			said.Replicated = append(said.Replicated, replicated{name, t.Replica})
		}
	})
	sortBy(said.Replicated, func(r replicated) string { return r.Tenant })
	sortBy(said.Failed, func(f failedTenant) string { return f.Tenant })
	rt.log.Info().Bytes("request", r.ID).Int("replicated", len(said.Replicated)).Int("failed", len(said.Failed)).Msg("tenants got replicas")
	if len(said.Failed) > 0 {
		said.Error = fmt.Sprintf("%d tenants have no replica", len(said.Failed))
		return jsonAnswer(502, said)
	}
	return jsonAnswer(200, said)
}

// giveReplica gives a tenant a replica. It returns nil if the tenant is gone or has got one meanwhile.
func (rt *Router) giveReplica(name string, c *census) (*directory.Tenant, error) {
	end, err := rt.begin(name, directory.Replicate)
	if err != nil {
		return nil, err
	}
	defer end()
	t := rt.dir.Tenant(name)
	if !t.Routed() || t.Replica != "" {
		return nil, nil
	}
	for _, l := range t.Stale {
		if t.State == directory.Active && follows(l) && !c.isAway(l.Node) {
			if _, err := rt.settleCopy(rt.ctx, t, l); unanswered(err) {
				c.lost(l.Node)
			}
			t = rt.dir.Tenant(name)
		}
	}
	if t.Replica != "" {
		return t, nil
	}
	return rt.place(t, c, func(t *directory.Tenant, n *node) (*directory.Tenant, error) { return rt.link(rt.ctx, t, n) })
}
