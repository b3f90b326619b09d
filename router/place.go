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
//
// If it stops after 1 or 2, the repairer or the next attempt deletes the empty file and the row.
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
	if err == nil {
		err = rt.createTenant(name, n)
	}
	if err != nil {
		return answerError(err)
	}
	rt.log.Info().Bytes("request", r.ID).Str("tenant", name).Str("node", n.name).Msg("a tenant is created")
	return jsonAnswer(201, struct {
		Tenant string `json:"tenant"`
		Node   string `json:"node"`
	}{name, n.name})
}

// chooseNode returns the node of the name, or without a name the one with the fewest bytes on disk.
func (rt *Router) chooseNode(name *string) (*node, error) {
	if name == nil {
		return rt.emptiest(nil)
	}
	_, n := rt.dir.Node(*name)
	if n == nil {
		return nil, &directory.NoNode{Name: *name}
	}
	return n, nil
}

// emptiest returns the node with the fewest bytes on disk among those that answer; ties go to the one with the fewest
// tenants, then to the first by name. Nodes being drained, and except, are left out.
func (rt *Router) emptiest(except *node) (*node, error) {
	var nodes []*node
	for _, n := range rt.dir.Nodes() {
		if n != except && n.draining.Load() == 0 {
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

func (rt *Router) createTenant(name string, n *node) error {
	before := rt.dir.Tenant(name)
	if before.Routed() {
		return &refusal{409, "tenant " + name + " exists already"}
	}
	placed := &directory.Tenant{Name: name, Node: n.name, State: directory.Placing}
	if before != nil {
		// An attempt that did not end, or a deletion that left a copy on a node that did not answer. What cannot be
		// deleted now stays in the row. On the chosen node it would be mistaken for the new tenant.
		var err error
		placed.Stale, err = rt.clearCopies(rt.ctx, before.Leftovers(), name)
		if slices.ContainsFunc(placed.Stale, func(l directory.Leftover) bool { return l.Node == n.name }) {
			return err
		}
	}
	placed, err := rt.dir.Change(before, placed)
	if err == nil {
		err = n.copyOf(name).create(rt.ctx)
	}
	if err == nil {
		_, err = rt.dir.Change(placed, active(placed, placed.Stale))
	}
	return err
}

// active returns the row of a tenant that its node serves, with these leftovers.
func active(t *directory.Tenant, stale []directory.Leftover) *directory.Tenant {
	return &directory.Tenant{Name: t.Name, Node: t.Node, State: directory.Active, Stale: stale}
}

// deleteTenant deletes a tenant:
//
//  1. the directory records that it is being deleted; requests still go to its node
//  2. the node freezes it and deletes it
//  3. the directory deletes its row
//
// If the second step fails the tenant is restored, now or once its node answers. Copies that moves have left are deleted as
// well, or stay in the row until they can be.
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
	if err := rt.removeTenant(t); err != nil {
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
		marked := &directory.Tenant{Name: t.Name, Node: t.Node, State: directory.Deleting, Token: t.Token, Stale: t.Leftovers()}
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

// forget removes a tenant that its node has deleted from the directory. What fails now is left to the repairer.
func (rt *Router) forget(ctx context.Context, t *directory.Tenant) {
	var next *directory.Tenant
	if left, _ := rt.clearCopies(ctx, t.Stale, t.Name); len(left) > 0 {
		next = &directory.Tenant{Name: t.Name, State: directory.Gone, Stale: left}
	}
	if _, err := rt.dir.Change(t, next); err != nil {
		rt.log.Error().Str("tenant", t.Name).Err(err).Msg("the directory cannot be written: the deletion of a tenant is not recorded yet")
	}
}
