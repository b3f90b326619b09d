package replication

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Times of a follower.
const (
	dialTimeout  = 3 * time.Second
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 5 * time.Second
)

const (
	// workers is how many tenants apply records at a time.
	workers = 16
	// imagesAtOnce is how many images are fetched at a time from one node.
	imagesAtOnce = 4
)

// Followers are the copies on a node that follow others. Its methods are called from several goroutines, at most one of Replace,
// Reopen and CaughtUp at a time for a tenant. Follow and Stop wait for them, so they must not be called under a lock that one of
// these methods takes.
type Followers interface {
	// Acquire returns a copy that follows, in use until it is released. It is called again later after an error.
	Acquire(tenant string) (Copy, error)
	// Replace puts an image, of size bytes, in place of a copy. It fails and changes nothing if the image is not of a history: what was
	// checked before is not what has come. Before it replaces the copy it keeps the copy's changes after change common, which the
	// image lacks; ok is false if nothing is common.
	Replace(tenant string, image io.Reader, size int64, history string, common uint64, ok bool) error
	// Reopen closes and opens a copy whose disk has failed.
	Reopen(tenant string) error
	// CaughtUp notes on disk that a copy has caught up since it was told to follow.
	CaughtUp(tenant string) error
}

// FollowerConfig configures a Follower.
type FollowerConfig struct {
	ID        string // of this node, the same as its Primary's
	Followers Followers
	// Connect returns a connection to the node at an address, on which frames may be sent: `GET /_replication` was answered 101.
	// Its error is an *Ended if the node has refused.
	Connect func(ctx context.Context, addr string) (net.Conn, error)
	// Image returns the image of a tenant of the node at an address. All of it is on disk there. Reading it fails once ctx ends.
	Image func(ctx context.Context, addr, tenant string) (image io.ReadCloser, size int64, err error)
	// Feeds returns the ids of the nodes that this node feeds a tenant.
	Feeds func(tenant string) []string
	Log   zerolog.Logger
}

// Follower follows tenants of other nodes. All tenants of one node share a connection. Its methods may be called from any
// goroutine.
type Follower struct {
	config FollowerConfig
	ctx    context.Context
	cancel context.CancelFunc
	pool   pool

	reconnects, images atomic.Int64

	mu      sync.Mutex
	ended   bool
	sources map[string]*source   // by address
	streams map[string]*inStream // by tenant
	work    sync.WaitGroup
}

// NewFollower returns a Follower that follows nothing yet. The caller ends it with Close.
func NewFollower(c FollowerConfig) *Follower {
	f := &Follower{config: c, sources: map[string]*source{}, streams: map[string]*inStream{}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.pool.most, f.pool.work = workers, &f.work
	return f
}

// Target is what a copy is told to follow.
type Target struct {
	From     string // the address of the node, such as http://10.0.0.1:8081
	Lineage  string // that the tenant must have; empty for any
	Force    bool   // another lineage or an older term does not stop the copy: it takes an image
	Counts   bool   // an acknowledgement counts for --sync replica
	CaughtUp bool   // it has caught up before, since it was told
}

// Follow makes a copy follow a tenant of the same name. If it follows already, it follows the new target instead.
func (f *Follower) Follow(tenant string, t Target) {
	for !f.follow(tenant, t) {
		f.Stop(tenant)
	}
}

// follow is Follow for a tenant that follows nothing; it returns false if it does.
func (f *Follower) follow(tenant string, t Target) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return true
	}
	if f.streams[tenant] != nil {
		return false
	}
	s := &inStream{follower: f, tenant: tenant, target: t, caughtUp: t.CaughtUp, noted: t.CaughtUp, settled: make(chan struct{})}
	s.idle.L = &s.mu
	s.waker.Wake = s.wake
	f.streams[tenant] = s
	from := f.sources[t.From]
	if from == nil {
		from = newSource(f, t.From)
		f.sources[t.From] = from
		f.work.Go(from.run)
	}
	s.source = from
	from.add(s)
	return true
}

// Stop ends the following of a tenant, and waits until the records that have come are applied and nothing more is done to the copy. It has no effect on a tenant that
// follows nothing.
func (f *Follower) Stop(tenant string) {
	s := f.stream(tenant)
	if s == nil {
		return
	}
	s.stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams[tenant] != s {
		return // another call was first
	}
	delete(f.streams, tenant)
	if s.source.remove(s) && f.sources[s.source.addr] == s.source {
		delete(f.sources, s.source.addr)
		s.source.cancel()
	}
}

// Close ends all following and waits.
func (f *Follower) Close() {
	f.mu.Lock()
	f.ended = true
	names := make([]string, 0, len(f.streams))
	for name := range f.streams {
		names = append(names, name)
	}
	f.mu.Unlock()
	f.cancel()
	for _, name := range names {
		f.Stop(name)
	}
	f.work.Wait()
}

// Status is how a copy follows.
type Status struct {
	From      string
	Connected bool
	CaughtUp  bool
	Known     bool      // Durable and Behind are known
	Durable   uint64    // the last change on the primary's disk
	Behind    uint64    // changes on the primary's disk that the copy lacks
	Contact   time.Time // when the primary was last heard; zero for never
	Images    int
	Diverged  bool  // it held other content than its primary, after an image too
	Err       error // why it does not follow at present; nil if it does
}

// Status returns how a tenant follows. ok is false if it follows nothing.
func (f *Follower) Status(tenant string) (s Status, ok bool) {
	one := f.stream(tenant)
	if one == nil {
		return Status{}, false
	}
	return one.status(), true
}

// Follows reports whether a tenant follows another node.
func (f *Follower) Follows(tenant string) bool { return f.stream(tenant) != nil }

func (f *Follower) stream(tenant string) *inStream {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.streams[tenant]
}

// Above returns the ids of the nodes that a tenant follows, directly and in turn, as far as they are known.
func (f *Follower) Above(tenant string) []string {
	s := f.stream(tenant)
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.above
}

// Settled returns a channel that is closed once the primary of a tenant has answered, or could not be reached, for the first time;
// nil if the tenant follows nothing.
func (f *Follower) Settled(tenant string) <-chan struct{} {
	if s := f.stream(tenant); s != nil {
		return s.settled
	}
	return nil
}

// Counts returns how many tenants follow and how many of them are connected.
func (f *Follower) Counts() (following, connected int) {
	f.each(func(s Status) {
		following++
		if s.Connected {
			connected++
		}
	})
	return following, connected
}

// Behind returns how many changes the tenants lack together, as far as that is known.
func (f *Follower) Behind() (changes uint64) {
	f.each(func(s Status) { changes += s.Behind })
	return changes
}

// each calls fn with the status of each tenant that follows.
func (f *Follower) each(fn func(Status)) {
	f.mu.Lock()
	streams := make([]*inStream, 0, len(f.streams))
	for _, s := range f.streams {
		streams = append(streams, s)
	}
	f.mu.Unlock()
	for _, s := range streams {
		fn(s.status())
	}
}

// Reconnects returns how many connections were dialled after the first one to a node, and Images how many images were taken.
func (f *Follower) Reconnects() int64 { return f.reconnects.Load() }
func (f *Follower) Images() int64     { return f.images.Load() }
