package router

import (
	"context"
	"sync"
	"time"
)

// probeEvery is how often a node is asked whether it answers again, if it holds a former primary: that accepts writes of clients
// that reach the node directly until it is told to follow. It is shorter than the waits between rounds of repair grow to.
const probeEvery = time.Second

// probeLoop asks the nodes that hold former primaries and do not answer whether they do. A node that does has the next round of
// repair begin.
func (rt *Router) probeLoop() {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-rt.ctx.Done():
			return
		case <-tick.C:
			rt.probe()
		}
	}
}

func (rt *Router) probe() {
	ctx, cancel := context.WithTimeout(rt.ctx, probeEvery)
	defer cancel()
	var asked sync.WaitGroup
	for n := range rt.awaited() {
		asked.Go(func() { n.api().stats(ctx) }) // its answer has the link notify the repairer
	}
	asked.Wait()
}

// awaited returns the nodes that hold copies which have to follow, and that have not answered the last request.
func (rt *Router) awaited() map[*node]struct{} {
	nodes := map[*node]struct{}{}
	for _, name := range rt.repairer.list() {
		t := rt.dir.Tenant(name)
		if t == nil {
			continue
		}
		for _, l := range t.Stale {
			if _, n := rt.dir.Node(l.Node); n != nil && follows(l) && n.link.Load().away.Load() {
				nodes[n] = struct{}{}
			}
		}
	}
	return nodes
}
