package router

import (
	"sort"
	"sync"

	"fenec/internal/edge"
	"fenec/internal/http1"
	"fenec/router/directory"
)

// shard answers /_shard/: the cluster's nodes and tenants, and changes of them.
func (rt *Router) shard(r *http1.Request, path [][]byte) http1.Answer {
	if !rt.authorized(r) {
		return edge.Unauthorized(r)
	}
	switch {
	case len(path) == 1 && string(path[0]) == "nodes":
		return byMethod(r, methods{"GET": rt.listNodes})
	case len(path) == 1 && string(path[0]) == "tenants":
		return byMethod(r, methods{"GET": rt.listTenants})
	case len(path) == 1 && string(path[0]) == "status":
		return byMethod(r, methods{"GET": rt.status})
	case len(path) == 1 && string(path[0]) == "replicas":
		return byMethod(r, methods{"POST": func() http1.Answer { return rt.postReplicas(r) }})
	case len(path) >= 2 && string(path[0]) == "nodes":
		return rt.shardNode(r, string(path[1]), path[2:])
	case len(path) >= 2 && string(path[0]) == "tenants":
		return rt.shardTenant(r, string(path[1]), path[2:])
	}
	return noRoute()
}

func (rt *Router) shardNode(r *http1.Request, name string, rest [][]byte) http1.Answer {
	if !http1.ValidTenant(name) {
		return badName("node", name)
	}
	switch {
	case len(rest) == 0:
		return byMethod(r, methods{
			"PUT":    func() http1.Answer { return rt.putNode(r, name) },
			"DELETE": func() http1.Answer { return rt.deleteNode(r, name) },
		})
	case len(rest) == 1 && string(rest[0]) == "drain":
		return byMethod(r, methods{"POST": func() http1.Answer { return rt.drain(r, name) }})
	case len(rest) == 1 && string(rest[0]) == "failover":
		return byMethod(r, methods{"POST": func() http1.Answer { return rt.failover(r, name) }})
	}
	return noRoute()
}

func (rt *Router) shardTenant(r *http1.Request, name string, rest [][]byte) http1.Answer {
	if !http1.ValidTenant(name) {
		return badName("tenant", name)
	}
	switch {
	case len(rest) == 0:
		return byMethod(r, methods{
			"GET":    func() http1.Answer { return rt.showTenant(name) },
			"PUT":    func() http1.Answer { return rt.putTenant(r, name) },
			"DELETE": func() http1.Answer { return rt.deleteTenant(r, name) },
		})
	case len(rest) == 1 && string(rest[0]) == "move":
		return byMethod(r, methods{"POST": func() http1.Answer { return rt.postMove(r, name) }})
	case len(rest) == 1 && (string(rest[0]) == "quota" || string(rest[0]) == "usage"):
		return later(string(rest[0]))
	}
	return noRoute()
}

func noRoute() http1.Answer { return http1.ErrorAnswer(404, "no such route under /_shard/") }

func later(what string) http1.Answer {
	return http1.ErrorAnswer(501, what+" comes with a later version")
}

func badName(what, name string) http1.Answer {
	if len(name) > http1.MaxTenant {
		name = name[:http1.MaxTenant] + "..."
	}
	return http1.ErrorAnswer(400, "a "+what+"'s name is 1 to 64 of a-z, 0-9, _ and -, got "+name)
}

// shownTenant is a tenant in listings.
type shownTenant struct {
	Name  string `json:"name"`
	Node  string `json:"node"`
	State string `json:"state"`

	Replica string `json:"replica,omitzero"`
}

// show returns a tenant as listings show it: active, moving or deleting.
func show(t *directory.Tenant) shownTenant {
	state := t.State
	if state == directory.Settling || state == directory.Promoting {
		state = directory.Moving
	}
	return shownTenant{t.Name, t.Node, state.String(), t.Replica}
}

func (rt *Router) listTenants() http1.Answer {
	list := []shownTenant{}
	rt.dir.Each(func(t *directory.Tenant, _ *node) {
		if t.Routed() {
			list = append(list, show(t))
		}
	})
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return jsonAnswer(200, list)
}

func (rt *Router) showTenant(name string) http1.Answer {
	t := rt.dir.Tenant(name)
	if !t.Routed() {
		return noTenant(name)
	}
	return jsonAnswer(200, show(t))
}

// shownNode is a node in the listing, without its token. DiskBytes is null if the node does not report it.
type shownNode struct {
	Name      string `json:"name"`
	Addr      string `json:"addr"`
	Standby   string `json:"standby,omitzero"` // the node that it is the standby of
	Passive   bool   `json:"passive,omitzero"`
	Tenants   int    `json:"tenants"`
	Replicas  int    `json:"replicas"`
	DiskBytes *int64 `json:"disk_bytes"`
}

func (rt *Router) listNodes() http1.Answer { return jsonAnswer(200, rt.shownNodes()) }

func (rt *Router) shownNodes() []shownNode {
	nodes, counts := rt.dir.Nodes(), map[*node]int{}
	rt.dir.Each(func(t *directory.Tenant, n *node) {
		if t.Routed() {
			counts[n]++
		}
	})
	stats := rt.askStats(nodes)
	list := make([]shownNode, len(nodes))
	for i, n := range nodes {
		list[i] = shownNode{Name: n.name, Addr: n.link.Load().addr, Tenants: counts[n]}
		list[i].Replicas, _ = rt.dir.Replicas(n.name, "")
		if row, _ := rt.dir.Node(n.name); row != nil {
			list[i].Standby, list[i].Passive = row.Standby, row.Passive
		}
		if stats[i] != nil {
			list[i].DiskBytes = &stats[i].DiskBytes
		}
	}
	return list
}

// askStats asks the nodes for their statistics concurrently. It returns nil for a node that does not answer.
func (rt *Router) askStats(nodes []*node) []*nodeStats {
	stats := make([]*nodeStats, len(nodes))
	var asked sync.WaitGroup
	for i, n := range nodes {
		asked.Go(func() {
			s, err := n.api().stats(rt.ctx)
			if err != nil {
				rt.log.Warn().Str("node", n.name).Err(err).Msg("a node does not report its statistics")
				return
			}
			stats[i] = &s
		})
	}
	asked.Wait()
	return stats
}

func (rt *Router) deleteNode(r *http1.Request, name string) http1.Answer {
	known, _ := rt.dir.Node(name)
	if known == nil {
		return noNode(name)
	}
	if err := rt.dir.ChangeNode(known, nil); err != nil {
		return answerError(err)
	}
	rt.log.Info().Bytes("request", r.ID).Str("node", name).Msg("a node is removed")
	return http1.Answer{Status: 204}
}

func noNode(name string) http1.Answer { return http1.ErrorAnswer(404, "no node "+name) }
