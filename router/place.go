package router

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"fenec/internal/http1"
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
	end, busy := rt.tenantOps.begin(rt.ctx, name, "created")
	if busy != "" {
		return busyTenant(name, busy)
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

func busyTenant(name, busy string) http1.Answer {
	return http1.ErrorAnswer(409, "tenant "+name+" is being "+busy)
}

// chooseNode returns the node of the name, or without a name the one with the fewest bytes on disk.
func (rt *Router) chooseNode(name *string) (*node, error) {
	if name == nil {
		return rt.emptiest(nil)
	}
	n := rt.dir.node(*name)
	if n == nil {
		return nil, &refusal{404, "no node " + *name}
	}
	return n, nil
}

// emptiest returns the node with the fewest bytes on disk among those that answer; ties go to the one with the fewest
// tenants, then to the first by name. Nodes being drained, and except, are left out.
func (rt *Router) emptiest(except *node) (*node, error) {
	var nodes []*node
	for _, n := range rt.dir.nodeList() {
		if n != except && n.draining.Load() == 0 {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 {
		return nil, &refusal{409, "no node to place it on: record one with PUT /_shard/nodes/<name>"}
	}
	stats := rt.askStats(nodes)
	held := rt.dir.held(nodes)
	best := -1
	for i := range nodes {
		if stats[i] == nil {
			continue
		}
		if best < 0 || stats[i].DiskBytes < stats[best].DiskBytes ||
			stats[i].DiskBytes == stats[best].DiskBytes && held[i] < held[best] {
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
	before := rt.dir.tenants.find(name)
	if before.routed() {
		return &refusal{409, "tenant " + name + " exists already"}
	}
	placed := &tenant{name: name, node: n, state: placing}
	if before != nil {
		// An attempt that did not end, or a deletion that left a copy on a node that did not answer. What cannot be
		// deleted now stays in the row. On the chosen node it would be mistaken for the new tenant.
		var err error
		placed.stale, err = rt.clearCopies(rt.ctx, before.leftovers(), name)
		if slices.ContainsFunc(placed.stale, func(l leftover) bool { return l.node == n.name }) {
			return err
		}
	}
	if err := rt.dir.change(before, placed); err != nil {
		return err
	}
	err := n.copyOf(name).create(rt.ctx)
	if err == nil {
		err = rt.dir.change(placed, &tenant{name: name, node: n, state: active, stale: placed.stale})
	}
	if err != nil && !inDoubt(err) {
		rt.repairLater(placed)
	}
	return err
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
	end, busy := rt.tenantOps.begin(rt.ctx, name, "deleted")
	if busy != "" {
		return busyTenant(name, busy)
	}
	defer end()
	t := rt.dir.tenants.find(name)
	if !t.routed() {
		return noTenant(name)
	}
	if err := rt.removeTenant(t); err != nil {
		return answerError(err)
	}
	rt.log.Info().Bytes("request", r.ID).Str("tenant", name).Str("node", t.node.name).Msg("a tenant is deleted")
	return http1.Answer{Status: 204}
}

func (rt *Router) removeTenant(t *tenant) error {
	if _, err := t.node.copyOf(t.name).state(rt.ctx); err != nil {
		return err
	}
	if t.state != deleting {
		// An interrupted move ends with the tenant: its token, which is on the copy, is used for the deletion too.
		marked := &tenant{name: t.name, node: t.node, state: deleting, token: t.token, stale: t.leftovers()}
		if marked.token == "" {
			marked.token = rand.Text()
		}
		if err := rt.dir.change(t, marked); err != nil {
			return err
		}
		t = marked
	}
	err := t.node.copyOf(t.name).erase(rt.ctx, t.token)
	if err == nil {
		rt.forget(rt.ctx, t)
		return nil
	}
	ctx, cancel := rt.undoing()
	defer cancel()
	back, failed := rt.takeBack(ctx, t)
	switch {
	case failed != nil:
		rt.repairLater(t)
	case back == nil:
		return nil // the delete was done and its answer lost
	}
	return err
}

// takeBack ends an incomplete deletion. If the copy is gone, the tenant is removed from the directory and now is nil.
// Otherwise the tenant accepts writes again, and the node refuses any delete that was sent.
func (rt *Router) takeBack(ctx context.Context, t *tenant) (now *tenant, err error) {
	err = t.node.copyOf(t.name).release(ctx, t.token)
	var failed *nodeError
	if errors.As(err, &failed) && failed.status == 404 {
		rt.forget(ctx, t)
		return nil, nil
	}
	if err != nil {
		return t, err
	}
	now = &tenant{name: t.name, node: t.node, state: active, stale: t.stale}
	if err := rt.dir.change(t, now); err != nil {
		return t, err
	}
	if !now.settled() {
		rt.repairLater(now)
	}
	return now, nil
}

// forget removes a tenant that its node has deleted from the directory. What fails now is left to the repairer.
func (rt *Router) forget(ctx context.Context, t *tenant) {
	var next *tenant
	if left, _ := rt.clearCopies(ctx, t.stale, t.name); len(left) > 0 {
		next = &tenant{name: t.name, state: gone, stale: left}
	}
	if err := rt.dir.change(t, next); err != nil {
		rt.log.Error().Str("tenant", t.name).Err(err).Msg("the directory cannot be written: the deletion of a tenant is not recorded yet")
		rt.repairLater(t)
		return
	}
	if next != nil {
		rt.repairLater(next)
	}
}
