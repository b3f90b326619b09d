// Package tenants opens, closes, creates, deletes, freezes and installs the tenants of one directory, each a file
// `<tenant>.fenec`. It knows nothing of HTTP.
//
// A tenant is opened by the first caller that acquires it. It is closed when it is unused for a while, or when others need
// its memory or descriptors: the least recently used first and never one in use. Callers enter and leave an open tenant with
// one atomic operation each. Opening, closing, creating, deleting, freezing and installing a tenant hold that name's gate, so
// at most one of them runs at a time. A Set over one file has one tenant, without a name, which is open from Open to Close.
//
// Locks, in the order they are taken:
//
//	gate of a name    at most one open, close, create, delete, freeze, thaw or install of that tenant at a time; an open
//	                  that needs another tenant closed only tries that tenant's gate and never waits for it
//	Set.ending        the end of the Set, against opens under way
//	registryShard.mu  the map of some of the open tenants, while it is copied
//	refusals.mu       the tenants that could not be opened lately
//	compactor.mu      the tenants that wait to be compacted; taken under a database's lock
//
// A Set's goroutines are one that closes idle tenants, one that deletes expired documents, and those that compact files.
// Open starts them, EndSoon asks them to end, and Close waits for them.
package tenants

import (
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"fenec/engine"
	"fenec/engine/feed"
	"fenec/internal/vfs"
	"fenec/replication"

	"github.com/VictoriaMetrics/metrics"
	"github.com/rs/zerolog"
)

// Config configures a Set.
type Config struct {
	Dir  string // of the tenants' files
	File string // or the file of the only tenant

	Engine         engine.Options // of each tenant's database; the Set adds Due, Feed, and the tenant's name to Log
	Feed           int64          // bytes of changes kept that a tenant's file no longer has; 64 MiB if zero
	IdleClose      time.Duration  // a tenant that is unused for that long is closed; never if zero
	CompactWorkers int            // how many files are compacted at once; none if zero

	ReplicaOf string    // the address of the node that new tenants follow; none if empty
	Connector Connector // reaches the nodes that tenants follow; nil if the Set cannot follow

	Budget     *Budget        // shared with the caller
	NewStreams func() Streams // returns the streams of a tenant that is being opened; may be nil
	Metrics    *metrics.Set   // to which the Set adds its metrics; may be nil
}

// Streams are what its user runs in a tenant for longer than a request.
type Streams interface {
	// EndSoon asks all of them to end, and does not wait until they have. The Set may hold the gate of the tenant's name.
	EndSoon()
}

// noStreams are the streams of a tenant whose user has none.
type noStreams struct{}

func (noStreams) EndSoon() {}

// Set is the tenants of a directory, or the one of a file. Its methods may be called by several goroutines at once.
type Set struct {
	registry registry // first: every request reads it

	config Config
	fs     vfs.FS
	clock  func() time.Time
	log    zerolog.Logger
	dir    string // of the tenants' files
	lock   io.Closer
	single *Tenant // of a Set over one file

	gates     gates
	revisions revisions
	refusals  refusals
	budget    *Budget
	compactor compactor
	metrics   counters
	primary   *replication.Primary
	follower  *replication.Follower
	unsynced  atomic.Bool // see syncNames

	ending  sync.RWMutex  // held for reading while a tenant is being opened
	ended   bool          // no more tenants are opened
	stop    chan struct{} // ends the goroutines
	stopped sync.WaitGroup
	endSoon func()
	close   func() error
}

// Open takes the lock of the directory or the file, removes what an interrupted operation left there, and returns the Set of
// its tenants. Only a single file is opened before it is acquired. The caller ends the Set with Close.
func Open(c Config) (*Set, error) {
	c.Engine = withDefaults(c.Engine)
	if c.Feed == 0 {
		c.Feed = feed.DefaultKeep
	}
	if c.NewStreams == nil {
		c.NewStreams = func() Streams { return noStreams{} }
	}
	if c.Metrics == nil {
		c.Metrics = metrics.NewSet()
	}
	s := &Set{
		config: c, fs: c.Engine.FS, clock: c.Engine.Clock, log: c.Engine.Log, budget: c.Budget, stop: make(chan struct{}),
	}
	s.registry.init()
	s.revisions.init(c.Engine.Rand)
	s.compactor.init(s)
	s.register(c.Metrics)
	s.startReplication()
	s.endSoon = sync.OnceFunc(s.beginEnd)
	s.close = sync.OnceValue(s.end)
	var err error
	if c.File != "" {
		err = s.openFile(c.File)
	} else {
		err = s.openDirectory(c.Dir)
	}
	if err == nil && c.Connector != nil && c.File == "" {
		err = s.followAll()
	}
	if err != nil {
		return nil, err
	}
	s.stopped.Go(func() { s.every(sweepEvery, s.Sweep) })
	s.stopped.Go(func() { s.every(expireEvery, s.Expire) })
	for range c.CompactWorkers {
		s.stopped.Go(s.compactor.work)
	}
	return s, nil
}

func withDefaults(o engine.Options) engine.Options {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return o
}

// every is a goroutine of the Set: it calls work at each interval until the Set ends.
func (s *Set) every(interval time.Duration, work func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			work()
		}
	}
}

// engineOptions returns the options of a tenant's database, and the feed in them; the name is empty for the one of a file.
func (s *Set) engineOptions(name string) (engine.Options, *feed.Feed) {
	o := s.config.Engine
	if name != "" {
		o.Log = o.Log.With().Str("tenant", name).Logger()
	}
	changes := feed.New(s.config.Feed)
	o.Feed, o.Due = changes, func() { s.compactor.want(name) }
	if copies := s.primary.Copies(name); o.Sync.Always {
		o.Acknowledge = copies.Handed
	}
	return o, changes
}

// EndSoon begins the end of the Set: it stops the compactions, the closing of idle tenants and the deleting of expired
// documents, and asks the streams of the open tenants to end. Tenants can still be acquired and opened.
func (s *Set) EndSoon() { s.endSoon() }

func (s *Set) beginEnd() {
	close(s.stop)
	s.compactor.stop()
	s.Each(func(t *Tenant) { t.Streams.EndSoon() })
}

// Close ends the Set: it waits for its goroutines and until every caller has left the tenants, syncs and closes them, and
// releases the lock of the directory. The error is that of a tenant that could not be synced. It may be called again and then
// returns the same.
func (s *Set) Close() error { return s.close() }

func (s *Set) end() error {
	s.EndSoon()
	s.follower.Close()
	s.primary.Close()
	s.stopped.Wait()
	return errors.Join(s.closeAll(), s.unlock())
}
