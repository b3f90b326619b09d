// Package node serves the tenants of a directory over HTTP: for each request it finds the tenant's database, turns the request
// into statements and the result into an answer. Package tenants opens and closes the databases, package rest writes the
// statements of REST requests.
//
// The tenant API is a function from a parsed request to an answer (Node.Handle); the connection loop that calls it is
// internal/http1. Requests enter and leave an open tenant with one atomic operation each.
//
// Locks, beside those of package tenants:
//
//	shape.making  held while the event of a live query is made, so that one of many makes it; the database is read under it
//	streams.mu    the live queries of a tenant; taken last, also while package tenants holds the gate of a name
//
// A live query (stream) is the goroutine of its connection, and in its tenant for as long as it is open. It waits for the
// feed, which wakes it when a block lands, and for its client to disconnect; the tenant and the node wake it to end it.
//
// The goroutines are the connection loop's, which end with Serve, and those of the tenants, which Shutdown stops and waits
// for.
package node

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"fenec/engine"
	"fenec/internal/edge"
	"fenec/internal/http1"
	"fenec/node/tenants"
	"fenec/replication"

	"github.com/rs/zerolog"
)

// Node serves a directory of tenants, or one database.
type Node struct {
	config                Config
	dataToken, adminToken edge.Token
	replicationToken      edge.Token
	log                   zerolog.Logger
	tenants               *tenants.Set
	single                *tenants.Tenant // of a node over one file
	metrics               *metricSet
	server                *http1.Server
	budget                budget

	maxClaims int64 // waiting at a time

	stopping  atomic.Bool
	waiting   atomic.Int64  // requests that wait
	claims    atomic.Int64  // claims among them, and claims about to try
	streaming atomic.Int64  // live queries open
	stop      chan struct{} // closed when the node stops: waiting requests and live queries end
	shutdown  func(context.Context) error
}

// New takes the directory's (or the file's) lock and returns a node over it. Only a single file is opened before a request
// asks for it. The caller ends the node with Shutdown.
func New(c Config) (*Node, error) {
	c = c.withDefaults()
	n := &Node{
		config: c, log: c.Log, stop: make(chan struct{}), maxClaims: maxClaims,
		dataToken: edge.NewToken(c.DataToken), adminToken: edge.NewToken(c.AdminToken),
		replicationToken: edge.NewToken(c.ReplicationToken),
	}
	n.budget = newBudget(c)
	n.budget.tenants.Others = func() int64 { return n.budget.bodies.Used() + n.budget.answers.Used() }
	n.metrics = newMetrics(n)
	n.server = &http1.Server{
		Handler: handler{n}, MaxConnections: n.budget.connections, Refusals: n.budget.refusals,
		IdleTimeout: c.IdleTimeout, Bodies: n.budget.bodies, Log: c.Log, Trusts: n.fromRouter,
	}
	var err error
	if n.server.TLS, err = edge.LoadTLS(c.TLSCert, c.TLSKey); err != nil {
		return nil, err
	}
	n.shutdown = onceWith(n.end)
	if n.tenants, err = tenants.Open(n.tenantsConfig()); err != nil {
		return nil, err
	}
	n.single = n.tenants.Single()
	return n, nil
}

// tenantsConfig returns the part of the node's configuration that its tenants need.
func (n *Node) tenantsConfig() tenants.Config {
	c := &n.config
	var connector tenants.Connector
	if c.ReplicationToken != "" {
		connector = replication.NewHTTP(c.ReplicationToken, c.Dial)
	}
	return tenants.Config{
		Dir: c.Dir, File: c.File,
		Engine: engine.Options{
			FS: c.FS, Clock: c.Clock, Rand: c.Rand, Sync: c.Sync, ReadOnly: c.ReadOnly, StatementTimeout: c.StatementTimeout,
			KeyTTL: c.IdempotencyTTL, CompactAt: c.CompactAt, Slow: c.Slow, Log: c.Log,
		},
		Feed: c.Replication, IdleClose: c.IdleClose, CompactWorkers: c.compactors(),
		ReplicaOf: c.ReplicaOf, Connector: connector,
		Budget: n.budget.tenants, NewStreams: newStreams, Metrics: n.metrics.set,
	}
}

// Serve answers the connections of a listener until Shutdown, and then returns nil.
func (n *Node) Serve(l net.Listener) error {
	if err := n.server.Serve(l); !errors.Is(err, http1.ErrClosed) {
		return err
	}
	return nil
}

// Shutdown lets the requests in flight finish until ctx ends, then syncs and closes every tenant and unlocks the directory.
// The error is ctx's if requests were cut off, or that of a tenant that could not be synced. It may be called again and then
// returns the same.
func (n *Node) Shutdown(ctx context.Context) error { return n.shutdown(ctx) }

func (n *Node) end(ctx context.Context) error {
	n.stopping.Store(true)
	close(n.stop)
	n.tenants.EndSoon()
	err := n.server.Shutdown(ctx)
	err = errors.Join(err, n.tenants.Close())
	n.metrics.unregister()
	return err
}

// onceWith returns a function that runs f once; every later call waits for the first one and returns its error.
func onceWith(f func(context.Context) error) func(context.Context) error {
	var once sync.Once
	var err error
	return func(ctx context.Context) error {
		once.Do(func() { err = f(ctx) })
		return err
	}
}
