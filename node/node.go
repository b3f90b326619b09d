// Package node serves the tenants of a directory over HTTP: for each request it finds the tenant's database, opens it if it
// is not open, turns the request into statements and the result into an answer.
//
// The tenant API is a function from a parsed request to an answer (Node.Handle); the connection loop that calls it is
// internal/http1.
//
// A tenant is one file, `<tenant>.fenec`. It is opened by the first request that names it and closed when it is unused for a
// while or when others need its memory or descriptors, the least recently used first and never one in use. Requests enter
// and leave a tenant with one atomic operation each. Opening, closing, creating, deleting, freezing and installing a tenant
// hold that name's gate, so at most one of them runs at a time.
//
// Locks, in the order they are taken:
//
//	gate of a name    at most one open, close, create, delete, freeze, thaw or install of that tenant at a time; an open
//	                  that needs another tenant closed only tries that tenant's gate and never waits for it
//	Node.ending       the end of the node, against opens under way
//	registryShard.mu  the map of some of the open tenants, while it is copied
//	refusals.mu       the tenants that could not be opened lately
//	streams.mu        the live queries of a tenant
//	compactor.mu      the tenants that wait to be compacted; taken under a database's lock
//
// A live query (stream) is the goroutine of its connection, and in its tenant for as long as it is open. It waits for the
// feed, which wakes it when a block lands, and for its client to disconnect; the tenant and the node wake it to end it.
//
// The goroutines are the connection loop's, which end with Serve, and one that closes idle tenants, one that deletes
// expired documents and those of the compactor, which Shutdown stops and waits for.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/internal/edge"
	"fenec/internal/http1"
	"fenec/internal/vfs"

	"github.com/rs/zerolog"
)

// Node serves a directory of tenants, or one database.
type Node struct {
	config                Config
	dataToken, adminToken edge.Token
	fs                    vfs.FS
	clock                 func() time.Time
	log                   zerolog.Logger
	dir                   string // of the tenants' files
	lock                  io.Closer
	single                *tenant // of a node over one file
	metrics               *metricSet
	server                *http1.Server

	registry  registry
	gates     gates
	revisions revisions
	refusals  refusals
	budget    budget
	compactor compactor

	maxClaims int64 // waiting at a time

	ending    sync.RWMutex // held for reading while a tenant is being opened
	ended     bool         // no more tenants are opened
	stopping  atomic.Bool
	waiting   atomic.Int64  // requests that wait
	claims    atomic.Int64  // claims among them, and claims about to try
	streaming atomic.Int64  // live queries open
	stop      chan struct{} // ends the goroutines of the node
	stopped   sync.WaitGroup
	shutdown  func(context.Context) error
}

// New takes the directory's (or the file's) lock and returns a node over it. Only a single file is opened before a request
// asks for it. The caller ends the node with Shutdown.
func New(c Config) (*Node, error) {
	c = c.withDefaults()
	n := &Node{config: c, dataToken: edge.NewToken(c.DataToken), adminToken: edge.NewToken(c.AdminToken), fs: c.FS, clock: c.Clock, log: c.Log, stop: make(chan struct{}), maxClaims: maxClaims}
	n.registry.init()
	n.revisions.init()
	n.budget = newBudget(c)
	n.metrics = newMetrics(n)
	n.compactor.init(n)
	n.server = &http1.Server{
		Handler: handler{n}, MaxConnections: n.budget.connections, Refusals: n.budget.refusals,
		IdleTimeout: c.IdleTimeout, Bodies: n.budget.bodies, Log: c.Log, Trusts: n.fromRouter,
	}
	var err error
	if n.server.TLS, err = edge.LoadTLS(c.TLSCert, c.TLSKey); err != nil {
		return nil, err
	}
	n.shutdown = onceWith(n.end)
	if c.File != "" {
		err = n.serveFile(c.File)
	} else {
		err = n.serveDirectory(c.Dir)
	}
	if err != nil {
		return nil, err
	}
	n.stopped.Go(func() { n.every(sweepEvery, n.sweep) })
	n.stopped.Go(func() { n.every(expireEvery, n.expire) })
	for range n.config.compactors() {
		n.stopped.Go(n.compactor.work)
	}
	return n, nil
}

// serveDirectory locks the directory and removes what an interrupted operation left in it.
func (n *Node) serveDirectory(dir string) error {
	n.dir = dir
	if !n.config.ReadOnly {
		if err := n.fs.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("cannot create the directory %s: %s", dir, vfs.Reason(err))
		}
	}
	info, err := n.fs.Stat(dir)
	if err != nil {
		return fmt.Errorf("cannot read the directory %s: %s", dir, vfs.Reason(err))
	}
	if !info.Dir {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if n.lock, err = engine.LockDir(n.fs, dir); n.mustLock(err) {
		return n.errUnwritable(err)
	}
	if n.config.ReadOnly {
		return nil
	}
	if err = n.probe(); err == nil {
		err = n.clearLeftovers()
	}
	if err != nil {
		err = errors.Join(err, n.unlock())
	}
	return err
}

// mustLock reports whether the node must not start without the lock. A read-only node runs without one if the lock file
// cannot be created: then no process can write there, and neither does the node.
func (n *Node) mustLock(err error) bool {
	return err != nil && (!n.config.ReadOnly || fail.KindOf(err) == fail.Conflict)
}

func (n *Node) unlock() error {
	if n.lock == nil {
		return nil
	}
	return n.lock.Close()
}

// probe tests whether files can be created in the directory, so that a node that cannot store anything fails at its start
// and not at the first write.
func (n *Node) probe() error {
	name := filepath.Join(n.dir, probeName)
	f, err := openForWriting(n.fs, name)
	if err == nil {
		err = errors.Join(f.Close(), n.fs.Remove(name))
	}
	if err != nil {
		return n.errUnwritable(err)
	}
	return nil
}

func (n *Node) errUnwritable(err error) error {
	if fail.KindOf(err) == fail.Conflict {
		return fmt.Errorf("cannot serve %s: %w", n.dir, err)
	}
	return fmt.Errorf("cannot write in the directory %s: %s; --http-read-only serves it without", n.dir, vfs.Reason(err))
}

// serveFile opens or creates the one database of a node over a file.
func (n *Node) serveFile(file string) error {
	n.dir = filepath.Dir(file)
	var err error
	if n.lock, err = engine.LockFile(n.fs, file); n.mustLock(err) {
		return fmt.Errorf("cannot lock %s: %s", file, vfs.Reason(err))
	}
	o, changes := n.engineOptions("")
	db, err := n.openOrCreate(file, o)
	if err != nil {
		hint := ""
		if fail.KindOf(err) == fail.Damaged {
			hint = "; `fenec check` reports what can be saved"
		}
		return errors.Join(fmt.Errorf("cannot open %s: %s%s", file, vfs.Reason(err), hint), n.unlock())
	}
	n.single = n.newTenant("", db, changes)
	n.compactIfDue(n.single)
	return nil
}

func (n *Node) openOrCreate(path string, o engine.Options) (*engine.DB, error) {
	_, err := n.fs.Stat(path)
	if errors.Is(err, os.ErrNotExist) && !n.config.ReadOnly {
		return engine.Create(path, o)
	}
	return engine.Open(path, o)
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
	n.compactor.stop()
	n.eachOpen(func(t *tenant) { t.streams.endSoon() })
	err := n.server.Shutdown(ctx)
	n.stopped.Wait()
	err = errors.Join(err, n.closeAll())
	n.metrics.unregister()
	return errors.Join(err, n.unlock())
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
