package router

import (
	"fmt"
	"slices"
	"strings"

	"fenec/internal/http1"
)

// putTenant places a tenant and makes its file:
//
//  1. the directory says that it is being placed on a node; nothing is routed there yet
//  2. the node makes an empty file
//  3. the directory says that it is there
//
// Stopped after 1 or 2, the repairer takes the empty file away and forgets the tenant; so does the next attempt.
func (rt *Router) putTenant(r *http1.Request, name string) http1.Answer {
	var wanted struct {
		Node *string `json:"node"`
	}
	if err := readJSON(r, &wanted); err != nil {
		return answerError(err)
	}
	end, busy := rt.tenantOps.begin(name, "created")
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
	rt.log.Info().Str("tenant", name).Str("node", n.name).Msg("a tenant is created")
	return jsonAnswer(201, struct {
		Tenant string `json:"tenant"`
		Node   string `json:"node"`
	}{name, n.name})
}

func busyTenant(name, busy string) http1.Answer {
	return http1.ErrorAnswer(409, "tenant "+name+" is being "+busy)
}

// chooseNode is the node asked for, or the one with the fewest bytes on disk.
func (rt *Router) chooseNode(name *string) (*node, error) {
	if name == nil {
		return rt.emptiest(nil)
	}
	n := rt.dir.node(*name)
	if n == nil {
		return nil, &refusal{404, "there is no node " + *name}
	}
	return n, nil
}

// emptiest is the node with the fewest bytes on disk among those that answer: of equals, the one with the fewest
// tenants, then by name. Nodes being drained, and the one given, are left out.
func (rt *Router) emptiest(except *node) (*node, error) {
	var nodes []*node
	for _, n := range rt.dir.nodeList() {
		if n != except && n.draining.Load() == 0 {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 {
		return nil, &refusal{409, "there is no node to place it on: record one with PUT /_shard/nodes/<name>"}
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
		return &refusal{409, "there is a tenant " + name + " already"}
	}
	placed := &tenant{name: name, node: n, state: placing}
	if before != nil {
		// An attempt that did not end, or a deletion that left a copy on a node that was away. What cannot be
		// cleared now is remembered on; on the very node chosen it would be taken for the tenant made now.
		var err error
		if placed.stale, err = rt.clearCopies(before.leftovers(), name); slices.Contains(placed.stale, n.name) {
			return err
		}
	}
	if err := rt.dir.change(before, placed); err != nil {
		return err
	}
	err := rt.makeFile(n, name)
	if err == nil {
		err = rt.dir.change(placed, &tenant{name: name, node: n, state: active, stale: placed.stale})
	}
	if err != nil && !inDoubt(err) {
		rt.owe(placed)
	}
	return err
}

// makeFile has the node make the tenant's empty file. One that is there and was never written to is the trace of
// somebody's attempt, and is replaced.
func (rt *Router) makeFile(n *node, name string) error {
	api := n.api()
	taken, err := api.create(rt.ctx, name)
	if err != nil || !taken {
		return err
	}
	found, exists, err := api.state(rt.ctx, name)
	if err != nil {
		return err
	}
	if exists && found.Seq == 0 {
		if err := api.remove(rt.ctx, name); err != nil {
			return err
		}
		if taken, err = api.create(rt.ctx, name); err != nil || !taken {
			return err
		}
	}
	return &refusal{409, fmt.Sprintf("node %s holds a file for tenant %s that the directory does not know", n.name, name)}
}

// deleteTenant deletes a tenant on its node, then in the directory. Stopped between, the tenant is answered 404 by its
// node, and deleting it again ends it. Copies that are left of a move go as well, or are remembered until they can.
func (rt *Router) deleteTenant(name string) http1.Answer {
	end, busy := rt.tenantOps.begin(name, "deleted")
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
	rt.log.Info().Str("tenant", name).Str("node", t.node.name).Msg("a tenant is deleted")
	return http1.Answer{Status: 204}
}

func (rt *Router) removeTenant(t *tenant) error {
	if err := t.node.api().remove(rt.ctx, t.name); err != nil {
		return err
	}
	left := &tenant{name: t.name, state: gone}
	left.stale, _ = rt.clearCopies(t.leftovers(), t.name) // what is left is owed
	if len(left.stale) == 0 {
		return rt.dir.change(t, nil)
	}
	if err := rt.dir.change(t, left); err != nil {
		return err
	}
	rt.owe(left)
	return nil
}
