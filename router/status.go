package router

import (
	"sync"

	"fenec/internal/http1"
	"fenec/router/directory"
)

// standing is where the copies of a tenant are and how far they are, as far as their nodes report it.
type standing struct {
	Tenant   string    `json:"tenant"`
	Node     string    `json:"node"`
	Replica  string    `json:"replica,omitzero"`
	State    string    `json:"state"`
	Position *position `json:"position"` // nil if the node does not answer
	Copy     *position `json:"copy"`     // of the replica
}

// statusOfTenant is a tenant in the status of the cluster.
type statusOfTenant struct {
	Tenant  string  `json:"tenant"`
	Node    string  `json:"node"`
	Replica string  `json:"replica,omitzero"`
	State   string  `json:"state"`
	Seq     *uint64 `json:"seq"`    // nil if the node does not answer or has not opened the tenant
	Behind  *uint64 `json:"behind"` // changes that the replica lacks, nil if that is not known
}

// status answers with the nodes and with where each tenant's copies are, as far as their nodes report it. Each node is asked
// once, and opens no tenant for it.
func (rt *Router) status() http1.Answer {
	open := map[string]map[string]openTenant{}
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, n := range rt.dir.Nodes() {
		asked.Go(func() {
			tenants, err := n.api().open(rt.ctx)
			if err != nil {
				rt.log.Warn().Str("node", n.name).Err(err).Msg("a node does not report its open tenants")
			}
			mu.Lock()
			defer mu.Unlock()
			open[n.name] = tenants
		})
	}
	said := struct {
		Nodes   []shownNode      `json:"nodes"`
		Tenants []statusOfTenant `json:"tenants"`
	}{rt.shownNodes(), []statusOfTenant{}}
	asked.Wait()
	rt.dir.Each(func(t *directory.Tenant, _ *node) {
		if !t.Routed() {
			return
		}
		one := statusOfTenant{Tenant: t.Name, Node: t.Node, Replica: t.Replica, State: show(t).State}
		if there, ok := open[t.Node][t.Name]; ok {
			one.Seq = &there.Seq
		}
		one.Behind = open[t.Replica][t.Name].Behind
		said.Tenants = append(said.Tenants, one)
	})
	sortBy(said.Tenants, func(t statusOfTenant) string { return t.Tenant })
	return jsonAnswer(200, said)
}

// foresee returns what a failover would do, and where the copies are now. It changes nothing.
func (rt *Router) foresee(p *plan) failedOver {
	var mu sync.Mutex
	var done []promoted
	var failed []failedTenant
	var copies []standing
	eachOf(p.promote, func(name string) {
		t := rt.dir.Tenant(name)
		if t == nil {
			return
		}
		s := rt.standing(t)
		mu.Lock()
		defer mu.Unlock()
		copies = append(copies, s)
		switch {
		case s.Copy == nil:
			failed = append(failed, failedTenant{name, "node " + t.Replica + " does not answer"})
		case s.Copy.Role == "replica" && !s.Copy.CaughtUp:
			failed = append(failed, failedTenant{name, notCaughtUp(rt.copyAt(t.Replica, name)).Error()})
		default:
			done = append(done, promoted{name, t.Replica})
		}
	})
	for _, name := range p.copyless {
		failed = append(failed, failedTenant{name, "tenant " + name + " has no replica"})
	}
	said := p.answer(done, failed, p.orphans)
	sortBy(copies, func(s standing) string { return s.Tenant })
	said.Copies = copies
	return said
}

// standing asks the nodes of a tenant's copies for their positions.
func (rt *Router) standing(t *directory.Tenant) standing {
	s := standing{Tenant: t.Name, Node: t.Node, Replica: t.Replica, State: show(t).State}
	s.Position = rt.positionOf(t.Node, t.Name)
	if t.Replica != "" {
		s.Copy = rt.positionOf(t.Replica, t.Name)
	}
	return s
}

func (rt *Router) positionOf(node, tenant string) *position {
	_, n := rt.dir.Node(node)
	if n == nil {
		return nil
	}
	p, err := n.copyOf(tenant).position(rt.ctx)
	if err != nil {
		return nil
	}
	return &p
}
