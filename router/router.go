// Package router is the entry point of a cluster: it knows which node holds which tenant, forwards each request to that
// node and returns the answer, and places, moves and deletes tenants, gives them replicas and promotes those.
//
// The data path (Router.forward) reads a request whole, looks its tenant up in a map that no writer blocks, and sends it
// over a pooled connection that is checked before use. It never parses a query. The directory (package directory) is the
// router's only state: a file in which every change is one block, on disk before the maps change.
//
// A create, delete, move, failover or repair of a tenant, and giving it a replica, holds that tenant's Work, so at most one of them runs at a time. Each is
// a sequence of steps on nodes and in the directory. Wherever it stops, the directory is as before or as after the change;
// what a step may leave on a node is recorded in the tenant's row first, and the repairer repairs it. See repair.go for the
// table, and DESIGN.md for why a late request changes nothing.
//
// # Goroutines
//
// Those of the connection loop (internal/http1), which end with Serve, including the watchers of clients of long requests;
// and the repairer, the prober and the janitor, which Shutdown stops and waits for. Operations run on the goroutine of the request
// that asked for them, and those on many tenants on a few of its own, which it waits for. Every wait for a node also ends with
// Router.ctx, so that a router stops in time.
//
// # Locks, in the order they are taken
//
//	directory.Work   held across steps, so never asked for under a lock
//	those of directory.File
//	repairer.mu      the tenants that need a repair
//	intents.mu       the replicas that are being placed
//	census.mu        which nodes do not answer a request about many tenants
//	pool.mu          a node's idle connections
//	marks.mu         the headers made for clients' addresses
//	held.mu          the exchanges that end when the router stops
//	watch.mu         the connection of such an exchange, or of one whose client is watched
package router

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"fenec/internal/edge"
	"fenec/internal/http1"
	"fenec/router/directory"

	"github.com/rs/zerolog"
)

// Router is a running router.
type Router struct {
	config    Config
	log       zerolog.Logger
	token     edge.Token
	budget    budget
	transport transport
	dir       *directory.File[*node]
	metrics   *meters
	memory    *http1.Budget // of the bodies of requests
	answers   *http1.Budget // for nodes' answers that wait for their clients
	server    *http1.Server

	streams  atomic.Int64 // open
	held     held
	repairer repairer
	intents  intents

	ctx    context.Context // of operations: ends a little before the router stops without waiting
	cancel context.CancelFunc
	last   context.Context // of rollbacks: ends when the router stops without waiting
	give   context.CancelFunc
	work   sync.WaitGroup // repairer, prober and janitor
	closed sync.Once
	err    error // of the close
}

// New opens or creates the directory, and starts the repair of what an earlier router left incomplete. The errors are
// sentences for a person.
func New(c Config) (*Router, error) {
	c = c.withDefaults()
	rt := &Router{
		config:  c,
		log:     c.Log,
		token:   edge.NewToken(c.Token),
		budget:  newBudget(c),
		memory:  http1.NewBudget(http1.BodyMemory),
		answers: http1.NewBudget(answerMemory),
	}
	rt.transport = transport{dial: c.Dial, silence: c.UpstreamTimeout, idle: c.IdleTimeout, most: rt.budget.upstream, reclaim: rt.reclaim, back: rt.repairer.answers}
	rt.server = &http1.Server{
		Handler: http1.HandlerFunc(rt.Handle), MaxConnections: rt.budget.connections, Refusals: rt.budget.refusals,
		IdleTimeout: c.IdleTimeout, Bodies: rt.memory, Log: c.Log,
	}
	var err error
	if rt.server.TLS, err = edge.LoadTLS(c.TLSCert, c.TLSKey); err != nil {
		return nil, err
	}
	rt.metrics = newMeters(rt)
	rt.last, rt.give = context.WithCancel(context.Background())
	rt.ctx, rt.cancel = context.WithCancel(rt.last)
	rt.repairer.init()
	dir, err := directory.Open(filepath.Clean(c.Directory), directory.Options{FS: c.FS, Clock: c.Clock, Rand: c.Rand, Log: c.Log}, rt.owner())
	if err != nil {
		rt.give()
		return nil, err
	}
	rt.dir = dir
	rt.dir.Tidy()
	rt.work.Go(rt.repairLoop)
	rt.work.Go(rt.sweepLoop)
	rt.work.Go(rt.probeLoop)
	return rt, nil
}

// owner keeps the nodes' objects and the repairer's list in step with the directory.
func (rt *Router) owner() directory.Owner[*node] {
	return directory.Owner[*node]{
		Node: func(row *directory.Node, n *node) (*node, error) {
			l, err := newLink(row.Addr, row.Token, &rt.transport)
			if err != nil {
				return nil, fmt.Errorf("node %s: %w", row.Name, err)
			}
			if n == nil {
				n = &node{name: row.Name, errors: rt.metrics.nodeErrors(row.Name)}
				rt.metrics.nodeReplicas(row.Name, func() float64 { all, _ := rt.dir.Replicas(row.Name, ""); return float64(all) })
			}
			if old := n.link.Swap(l); old != nil {
				old.pool.close()
			}
			rt.repairer.wake() // repairs that wait for it can be done now
			return n, nil
		},
		Removed: func(n *node) {
			n.link.Load().pool.close()
			rt.repairer.wake() // repairs on it are no longer needed
		},
		Tenant: func(name string, row *directory.Tenant, working bool) {
			if !working && row != nil && !row.Settled() {
				rt.repairer.add(name)
			}
		},
	}
}

// reclaim closes the longest-idle connection to a node, and reports whether there was one.
func (rt *Router) reclaim() bool {
	var oldest *pool
	var since time.Time
	for _, n := range rt.dir.Nodes() {
		p := &n.link.Load().pool
		if at, ok := p.unusedSince(); ok && (oldest == nil || at.Before(since)) {
			oldest, since = p, at
		}
	}
	return oldest != nil && oldest.drop()
}

// Serve answers the connections of a listener until Shutdown, which closes it.
func (rt *Router) Serve(l net.Listener) error {
	err := rt.server.Serve(l)
	if errors.Is(err, http1.ErrClosed) {
		return nil
	}
	return err
}

// undoShare is the part of Shutdown's time that is reserved for rolling back operations under way, undoMost its maximum.
const (
	undoShare = 4
	undoMost  = 2 * time.Second
)

// Shutdown stops accepting and finishes the requests in flight. A little before ctx ends it cancels the operations under
// way, which roll back what they can until ctx ends; the next router does the rest. Then it closes the directory. It may be
// called again, and before Serve.
func (rt *Router) Shutdown(ctx context.Context) error {
	rt.held.stop()
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		timer := time.AfterFunc(left-min(left/undoShare, undoMost), rt.cancel)
		defer timer.Stop()
	}
	stop := context.AfterFunc(ctx, rt.give)
	defer stop()
	err := rt.server.Shutdown(ctx)
	rt.closed.Do(func() {
		rt.cancel()
		rt.work.Wait()
		rt.give()
		for _, n := range rt.dir.Nodes() {
			n.link.Load().pool.close()
		}
		rt.err = rt.dir.Close()
	})
	return errors.Join(err, rt.err)
}

// sweepEvery is how often idle connections and the directory's file are checked.
const sweepEvery = 5 * time.Second

// sweepLoop closes connections that have been idle for too long, and compacts the directory when it is due.
func (rt *Router) sweepLoop() {
	tick := time.NewTicker(min(sweepEvery, rt.transport.idle))
	defer tick.Stop()
	for {
		select {
		case <-rt.ctx.Done():
			return
		case now := <-tick.C:
			for _, n := range rt.dir.Nodes() {
				n.link.Load().pool.sweep(now)
			}
			rt.dir.Tidy()
		}
	}
}
