package router

import (
	"context"
	"errors"
	"slices"
	"strings"

	"fenec/internal/http1"
	"fenec/internal/random"
	"fenec/router/directory"
)

// putTenant places a tenant and creates its file:
//
//  1. the directory records that it is being placed on a node; nothing is routed there yet
//  2. the node creates an empty file
//  3. the directory records that it is active
//  4. another node gets a replica, if the tenant is to have one
//
// If it stops after 1 or 2, the repairer or the next attempt deletes the empty file and the row. Without a node for the replica
// the tenant is created all the same.
func (rt *Router) putTenant(r *http1.Request, name string) http1.Answer {
	var wanted struct {
		Node *string `json:"node"`
	}
	if err := readJSON(r, &wanted); err != nil {
		return answerError(err)
	}
	end, err := rt.begin(name, directory.Create)
	if err != nil {
		return answerError(err)
	}
	defer end()
	n, err := rt.chooseNode(wanted.Node)
	var t *directory.Tenant
	if err == nil {
		t, err = rt.createTenant(name, n)
	}
	if err != nil {
		return answerError(err)
	}
	if rt.config.Replicas || rt.dir.StandbyOf(n.name) != "" {
		t = rt.replicate(t, nil)
	}
	rt.log.Info().Bytes("request", r.ID).Str("tenant", name).Str("node", n.name).Str("replica", t.Replica).Msg("a tenant is created")
	return jsonAnswer(201, struct {
		Tenant  string `json:"tenant"`
		Node    string `json:"node"`
		Replica string `json:"replica,omitzero"`
	}{name, n.name, t.Replica})
}

// chooseNode returns the node of the name, or without a name the one with the fewest bytes on disk.
func (rt *Router) chooseNode(name *string) (*node, error) {
	if name == nil {
		return rt.emptiest()
	}
	_, n := rt.dir.Node(*name)
	if n == nil {
		return nil, &directory.NoNode{Name: *name}
	}
	return n, nil
}

// emptiest returns the node with the fewest bytes on disk among those that answer; ties go to the one with the fewest
// tenants, then to the first by name. Standbys, nodes being drained, and except are left out.
func (rt *Router) emptiest(except ...string) (*node, error) {
	var nodes []*node
	for _, n := range rt.dir.Nodes() {
		row, _ := rt.dir.Node(n.name)
		if !slices.Contains(except, n.name) && n.draining.Load() == 0 && row != nil && row.Standby == "" {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 {
		return nil, &refusal{409, "no node to place it on: record one with PUT /_shard/nodes/<name>"}
	}
	stats := rt.askStats(nodes)
	best := -1
	for i := range nodes {
		if stats[i] == nil {
			continue
		}
		if best < 0 || stats[i].DiskBytes < stats[best].DiskBytes ||
			stats[i].DiskBytes == stats[best].DiskBytes && rt.dir.Naming(nodes[i].name) < rt.dir.Naming(nodes[best].name) {
			best = i
		}
	}
	if best < 0 {
		var names []string
		for _, n := range nodes {
			names = append(names, n.name)
		}
		return nil, &refusal{502, "no node answers: tried " + strings.Join(names, ", ")}
	}
	return nodes[best], nil
}

func (rt *Router) createTenant(name string, n *node) (t *directory.Tenant, err error) {
	before := rt.dir.Tenant(name)
	if before.Routed() {
		return nil, &refusal{409, "tenant " + name + " exists already"}
	}
	placed := &directory.Tenant{Name: name, Node: n.name, State: directory.Placing}
	if before != nil {
		// An attempt that did not end, or a deletion that left a copy on a node that did not answer. What cannot be
		// deleted now stays in the row. On the chosen node it would be mistaken for the new tenant.
		placed.Stale, err = rt.clearCopies(rt.ctx, before.Leftovers(), name)
		if slices.ContainsFunc(placed.Stale, func(l directory.Leftover) bool { return l.Node == n.name }) {
			return nil, err
		}
	}
	if placed, err = rt.dir.Change(before, placed); err != nil {
		return nil, err
	}
	made := active(placed, placed.Stale)
	if made.Lineage, err = n.copyOf(name).create(rt.ctx); err != nil {
		return nil, err
	}
	return rt.dir.Change(placed, made)
}

// active returns the row of a tenant that its node serves, with these leftovers. Its replica stays.
func active(t *directory.Tenant, stale []directory.Leftover) *directory.Tenant {
	return &directory.Tenant{Name: t.Name, Node: t.Node, State: directory.Active, Replica: t.Replica, Lineage: t.Lineage, Stale: stale}
}

// deleteTenant deletes a tenant:
//
//  1. the directory records that it is being deleted; requests still go to its node
//  2. the node freezes it and deletes it
//  3. the directory deletes its row
//
// If the second step fails the tenant is restored, now or once its node answers. Its replica and what moves and failovers have
// left are deleted as well, or stay in the row until they can be.
func (rt *Router) deleteTenant(r *http1.Request, name string) http1.Answer {
	end, err := rt.begin(name, directory.Delete)
	if err != nil {
		return answerError(err)
	}
	defer end()
	t := rt.dir.Tenant(name)
	if !t.Routed() {
		return noTenant(name)
	}
	if t, err = rt.endFailover(rt.ctx, t); err == nil {
		err = rt.removeTenant(t)
	}
	if err != nil {
		return answerError(err)
	}
	rt.log.Info().Bytes("request", r.ID).Str("tenant", name).Str("node", t.Node).Msg("a tenant is deleted")
	return http1.Answer{Status: 204}
}

func (rt *Router) removeTenant(t *directory.Tenant) error {
	if _, err := rt.copyAt(t.Node, t.Name).state(rt.ctx); err != nil {
		return err
	}
	if t.State != directory.Deleting {
		// An interrupted move ends with the tenant: its token, which is on the copy, is used for the deletion too.
		marked := active(t, t.Leftovers())
		marked.State, marked.Token = directory.Deleting, t.Token
		if marked.Token == "" {
			marked.Token = random.Text(rt.config.Rand)
		}
		var err error
		if t, err = rt.dir.Change(t, marked); err != nil {
			return err
		}
	}
	err := rt.copyAt(t.Node, t.Name).erase(rt.ctx, t.Token)
	if err == nil {
		rt.forget(rt.ctx, t)
		return nil
	}
	ctx, cancel := rt.undoing()
	defer cancel()
	if back, failed := rt.takeBack(ctx, t); failed == nil && back == nil {
		return nil // the delete was done and its answer lost
	}
	return err
}

// takeBack ends an incomplete deletion. If the copy is gone, the tenant is removed from the directory and now is nil.
// Otherwise the tenant accepts writes again, and the node refuses any delete that was sent.
func (rt *Router) takeBack(ctx context.Context, t *directory.Tenant) (now *directory.Tenant, err error) {
	err = rt.copyAt(t.Node, t.Name).release(ctx, t.Token)
	var failed *nodeError
	if errors.As(err, &failed) && failed.status == 404 {
		rt.forget(ctx, t)
		return nil, nil
	}
	if err != nil {
		return t, err
	}
	if now, err = rt.dir.Change(t, active(t, t.Stale)); err != nil {
		return t, err
	}
	return now, nil
}

// deadCopies returns what nodes may still hold of a tenant that is deleted. A copy that follows or followed has its lineage,
// which no later tenant of the name has.
func deadCopies(t *directory.Tenant) (dead []directory.Leftover) {
	for _, l := range t.Stale {
		if l.Kind == directory.Follower || l.Kind == directory.Former {
			l = directory.Leftover{Node: l.Node, Token: t.Lineage, Kind: directory.Dead}
		}
		dead = directory.With(dead, l)
	}
	if t.Replica != "" {
		dead = directory.With(dead, directory.Leftover{Node: t.Replica, Token: t.Lineage, Kind: directory.Dead})
	}
	return dead
}

// forget removes a tenant that its node has deleted from the directory, and deletes its other copies. What fails now is left to
// the repairer.
func (rt *Router) forget(ctx context.Context, t *directory.Tenant) {
	var next *directory.Tenant
	if left, _ := rt.clearCopies(ctx, deadCopies(t), t.Name); len(left) > 0 {
		next = &directory.Tenant{Name: t.Name, State: directory.Gone, Stale: left}
	}
	if _, err := rt.dir.Change(t, next); err != nil {
		rt.log.Error().Str("tenant", t.Name).Err(err).Msg("the directory cannot be written: the deletion of a tenant is not recorded yet")
	}
}
