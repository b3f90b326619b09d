package router

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"fenec/router/directory"
)

// candidate is a node that a replica may be placed on.
type candidate struct {
	name     string
	away     bool // it does not answer
	paired   bool // it is a standby or has one
	draining bool
	unfit    bool // it cannot have a replica of this tenant
	holds    bool // it holds a copy of the tenant
	ofNode   int  // how many replicas of tenants of the tenant's node it holds
	total    int  // how many tenants and replicas it holds
}

// placeReplica returns the index of the candidate for the replica of a tenant of a node, or -1 without one. Of the nodes that
// answer, are in no pair, are not being drained and are not the tenant's, it is one that holds a copy of the tenant, if any
// does; then the one with the fewest replicas of tenants of the tenant's node, so that a failover spreads them over all nodes;
// then the one with the fewest tenants and replicas; then the first by name.
func placeReplica(node string, list []candidate) int {
	best := -1
	for i := range list {
		c := &list[i]
		if c.away || c.paired || c.draining || c.unfit || c.name == node {
			continue
		}
		if best < 0 || c.before(&list[best]) {
			best = i
		}
	}
	return best
}

func (c *candidate) before(o *candidate) bool {
	switch {
	case c.holds != o.holds:
		return c.holds
	case c.ofNode != o.ofNode:
		return c.ofNode < o.ofNode
	case c.total != o.total:
		return c.total < o.total
	}
	return c.name < o.name
}

// census is what is known of the nodes while replicas are placed.
type census struct {
	mu    sync.Mutex
	away  map[string]bool                // nodes that do not answer
	holds map[string]map[string]struct{} // the tenants of which each node holds a file
}

func (c *census) isAway(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.away[node]
}

func (c *census) lost(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away[node] = true
}

// survey asks every node which tenants it holds a file of.
func (rt *Router) survey() *census {
	c := &census{away: map[string]bool{}, holds: map[string]map[string]struct{}{}}
	var asked sync.WaitGroup
	for _, n := range rt.dir.Nodes() {
		asked.Go(func() {
			names, err := n.api().tenants(rt.ctx)
			if err != nil {
				rt.log.Warn().Str("node", n.name).Err(err).Msg("a node does not report its tenants")
				c.lost(n.name)
				return
			}
			set := make(map[string]struct{}, len(names))
			for _, name := range names {
				set[name] = struct{}{}
			}
			c.mu.Lock()
			c.holds[n.name] = set
			c.mu.Unlock()
		})
	}
	asked.Wait()
	return c
}

// noCensus knows nothing of the nodes.
func noCensus() *census { return &census{away: map[string]bool{}} }

// intents are the replicas that are being placed and are not in the directory yet, so that those placed at the same time do not
// all go to the same node.
type intents struct {
	mu     sync.Mutex
	placed map[intent]int
}

// intent is a node of a tenant and a node for its replica.
type intent struct{ of, on string }

// choose has one of the candidates for a tenant of a node chosen, and counts it until done is called.
func (p *intents) choose(of string, list []candidate) (i int, done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	counted := slices.Clone(list)
	for k := range counted {
		for one, n := range p.placed {
			if one.on == counted[k].name {
				counted[k].total += n
				if one.of == of {
					counted[k].ofNode += n
				}
			}
		}
	}
	if i = placeReplica(of, counted); i < 0 {
		return i, func() {}
	}
	one := intent{of, list[i].name}
	if p.placed == nil {
		p.placed = map[intent]int{}
	}
	p.placed[one]++
	return i, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.placed[one]--; p.placed[one] == 0 {
			delete(p.placed, one)
		}
	}
}

// candidates are the nodes for a replica of a tenant.
func (rt *Router) candidates(t *directory.Tenant, c *census) []candidate {
	var list []candidate
	for _, n := range rt.dir.Nodes() {
		row, _ := rt.dir.Node(n.name)
		if row == nil {
			continue
		}
		replicas, ofNode := rt.dir.Replicas(n.name, t.Node)
		_, holds := c.holds[n.name][t.Name]
		list = append(list, candidate{
			name: n.name, away: c.isAway(n.name), draining: n.draining.Load() > 0, unfit: n.name == t.Replica,
			paired: row.Standby != "" || rt.dir.StandbyOf(n.name) != "",
			holds:  holds, ofNode: ofNode, total: rt.dir.Naming(n.name) + replicas,
		})
	}
	return list
}

// standbyFor returns the standby of a tenant's node, nil if there is none that can hold its replica.
func (rt *Router) standbyFor(t *directory.Tenant) *node {
	_, n := rt.dir.Node(rt.dir.StandbyOf(t.Node))
	if n == nil || n.draining.Load() > 0 {
		return nil
	}
	return n
}

// place tries the nodes for a replica of an active tenant one after the other, in the order of placeReplica, until put
// succeeds with one. A tenant of a node with a standby has its replica there.
func (rt *Router) place(t *directory.Tenant, c *census, put func(t *directory.Tenant, n *node) (*directory.Tenant, error)) (*directory.Tenant, error) {
	if t.State != directory.Active {
		return t, &refusal{409, "tenant " + t.Name + " is being moved"}
	}
	if n := rt.standbyFor(t); n != nil {
		return put(t, n)
	}
	var failed error
	for tried := map[string]bool{}; ; {
		list := rt.candidates(t, c)
		for i := range list {
			list[i].unfit = list[i].unfit || tried[list[i].name]
		}
		i, done := rt.intents.choose(t.Node, list)
		if i < 0 {
			return t, noReplicaNode(t, failed)
		}
		tried[list[i].name] = true
		_, n := rt.dir.Node(list[i].name)
		if n == nil {
			done()
			continue
		}
		var err error
		t, err = put(t, n)
		done()
		if err == nil {
			return t, nil
		}
		var node *nodeError
		var refused *refusal
		if !errors.As(err, &node) && !errors.As(err, &refused) || node != nil && node.node != n.name || rt.ctx.Err() != nil {
			return t, err // of the directory, or of the tenant's own node
		}
		if unanswered(err) {
			c.lost(n.name)
		}
		failed = err
	}
}

func noReplicaNode(t *directory.Tenant, failed error) error {
	if failed != nil {
		return fmt.Errorf("no node for a replica of tenant %s: %w", t.Name, failed)
	}
	return &refusal{409, "no node for a replica of tenant " + t.Name + ": it requires one that answers, is in no pair, is not being drained, and is not the tenant's"}
}
