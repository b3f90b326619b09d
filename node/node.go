// Package node serves the tenants of a directory over HTTP: for each request it finds the tenant's database, opening it
// where it is not open, turns the request into statements and the result into an answer.
//
// The tenant surface is a function from a parsed request to an answer (Node.Handle); the connection loop that carries
// it is internal/http1.
//
// A tenant is one file, `<tenant>.fenec`. It is opened by the first request that names it and closed when nobody has
// used it for a while or when memory or descriptors are wanted for others, the least recently used first and never one
// in use. Requests count themselves in and out of a tenant with one atomic each; whatever opens, closes, creates,
// deletes, freezes or installs a tenant holds that name's gate, so no two of those ever meet.
//
// Locks, in the order they are taken:
//
//	gate of a name    one opening, closing, create, delete, freeze, thaw or install of that tenant at a time; a second
//	                  gate is only ever tried, never waited for, by an opening that wants another tenant closed
//	Node.ending       the end of the node against openings under way
//	registryShard.mu  the map of some of the open tenants being copied
//	refusals.mu       the tenants that could not be opened lately
//	streams.mu        the live queries of a tenant
//	compactor.mu      the tenants that wait to be compacted; taken under a database's lock
//
// A live query (stream) is the goroutine of its connection, in its tenant for as long as it is open. It waits for the
// feed, which wakes it as a block lands, and for its client to leave; the tenant and the node wake it to have it end.
//
// The goroutines are the connection loop's, which ends with Serve, and one that closes idle tenants, one that deletes
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
	"fenec/internal/http1"
	"fenec/internal/vfs"

	"github.com/rs/zerolog"
)

// Node serves a directory of tenants, or one database.
type Node struct {
	config  Config
	fs      vfs.FS
	clock   func() time.Time
	log     zerolog.Logger
	dir     string // of the tenants' files
	lock    io.Closer
	single  *tenant // of a node over one file
	metrics *metricSet
	server  *http1.Server

	registry  registry
	gates     gates
	revisions revisions
	refusals  refusals
	budget    budget
	compactor compactor

	maxClaims int64 // held at a time

	ending    sync.RWMutex // held for reading while a tenant is being opened
	ended     bool         // no tenant is opened any more
	stopping  atomic.Bool
	waiting   atomic.Int64  // requests held until something happens
	claims    atomic.Int64  // of them, and of those about to try, the claims
	streaming atomic.Int64  // live queries open
	stop      chan struct{} // ends the goroutines of the node
	stopped   sync.WaitGroup
	shutdown  func(context.Context) error
}

// New takes the directory's (or the file's) lock and makes a node over it. Nothing but a single file is opened before
// a request asks for it. The caller ends the node with Shutdown.
func New(c Config) (*Node, error) {
	c = c.withDefaults()
	n := &Node{config: c, fs: c.FS, clock: c.Clock, log: c.Log, stop: make(chan struct{}), maxClaims: maxClaims}
	n.registry.init()
	n.revisions.init()
	n.budget = newBudget(c)
	n.metrics = newMetrics(n)
	n.compactor.init(n)
	n.server = &http1.Server{
		Handler: handler{n}, MaxConnections: n.budget.connections, Refusals: n.budget.refusals,
		IdleTimeout: c.IdleTimeout, Bodies: n.budget.bodies, Log: c.Log, Trusts: n.fromRouter,
	}
	if c.TLSCert != "" {
		config, err := loadTLS(c.TLSCert, c.TLSKey)
		if err != nil {
			return nil, err
		}
		n.server.TLS = config
	}
	n.shutdown = onceWith(n.end)
	var err error
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

// serveDirectory locks the directory and clears away what an interrupted operation left in it.
func (n *Node) serveDirectory(dir string) error {
	n.dir = dir
	if !n.config.ReadOnly {
		if err := n.fs.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("cannot make the directory %s: %s", dir, vfs.Reason(err))
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

// mustLock tells whether a lock that could not be taken ends the start. A read-only node goes without one where the
// directory takes none: there nobody can write, and it does not.
func (n *Node) mustLock(err error) bool {
	return err != nil && (!n.config.ReadOnly || fail.KindOf(err) == fail.Conflict)
}

func (n *Node) unlock() error {
	if n.lock == nil {
		return nil
	}
	return n.lock.Close()
}

// probe finds out whether files can be made in the directory, so that a node that can keep nothing says so at its
// start and not to the first client that writes.
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

// serveFile opens the one database of a node over a file, making it where there is none.
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
			hint = "; `fenec check` says what can be saved"
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

// Shutdown lets the requests in flight finish until ctx ends, then syncs and closes every tenant and lets go of the
// directory. The error is ctx's where requests were cut off, or that of a tenant that could not be synced. It may be
// called again and then answers the same.
func (n *Node) Shutdown(ctx context.Context) error { return n.shutdown(ctx) }

func (n *Node) end(ctx context.Context) error {
	n.stopping.Store(true)
	close(n.stop)
	n.compactor.stop()
	n.eachOpen(func(t *tenant) { t.streams.hurry() })
	err := n.server.Shutdown(ctx)
	n.stopped.Wait()
	err = errors.Join(err, n.closeAll())
	n.metrics.unregister()
	return errors.Join(err, n.unlock())
}

// onceWith makes f run once and every later call wait for, and answer with, the first one's error.
func onceWith(f func(context.Context) error) func(context.Context) error {
	var once sync.Once
	var err error
	return func(ctx context.Context) error {
		once.Do(func() { err = f(ctx) })
		return err
	}
}
