package replication

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/engine/feed"
	"fenec/engine/wal"
	"fenec/internal/simnet"
	"fenec/internal/vfs/crashfs"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a network of hosts in a bubble of virtual time.
type world struct {
	t       *testing.T
	network *simnet.Network
	hosts   map[string]*host
}

// host is a node as far as replication goes: tenants in memory, and both halves.
type host struct {
	w        *world
	name     string
	net      *simnet.Host
	sync     wal.Policy
	keep     int64
	slow     bool             // its connections deliver little
	random   func() io.Reader // of a tenant's history; the real one if nil
	listener net.Listener
	primary  *Primary
	follower *Follower
	log      *strings.Builder

	mu sync.Mutex
	// Called, if not nil, before a tenant is acquired to be fed, before an image is opened, after one was installed and before it is noted
	// that a copy has caught up. They may block.
	acquiring func(name string)
	imaging   func(ctx context.Context, name string) error
	installed func()
	noting    func(name string) error
	tenants   map[string]*held
	conns     sync.WaitGroup
	diverged  int
}

// held is a tenant of a host.
type held struct {
	fs   *crashfs.FS
	db   *engine.DB
	feed *feed.Feed
	path string
	kept []string // changes that images replaced
	seen bool     // has caught up

	mu       sync.Mutex
	changed  sync.Cond // of uses
	uses     int
	closed   bool // it is opened when it is acquired
	follower bool
}

// enter returns the tenant as a Copy, in use until that is released; ok is false if it is closed.
func (t *held) enter() (c Copy, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return Copy{}, false
	}
	t.uses++
	return Copy{t.db, t.feed, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.uses--; t.uses < 0 {
			panic("a tenant is released twice")
		}
		t.changed.Broadcast()
	}}, true
}

// now returns the database, which an image may replace.
func (t *held) now() *engine.DB {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.db
}

func (t *held) inUse() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.uses
}

// alone waits until the tenant is not in use and calls f, during which it comes in use by no one.
func (t *held) alone(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.uses > 0 {
		t.changed.Wait()
	}
	f()
}

// run runs a test in a bubble with hosts of these names.
func run(t *testing.T, names []string, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, network: simnet.New(), hosts: map[string]*host{}}
		for _, name := range names {
			w.start(name)
		}
		defer w.stop()
		test(w)
	})
}

func (w *world) start(name string) *host {
	h := &host{
		w: w, name: name, net: w.network.Host(name), tenants: map[string]*held{}, keep: feed.DefaultKeep,
		sync: wal.Policy{Always: true}, log: new(strings.Builder),
	}
	h.boot()
	w.hosts[name] = h
	return h
}

// boot starts both halves of the replication of a host, and its listener.
func (h *host) boot() {
	var lock sync.Mutex
	log := zerolog.New(writerFunc(func(p []byte) (int, error) {
		lock.Lock()
		defer lock.Unlock()
		return h.log.Write(p)
	}))
	h.primary = NewPrimary(PrimaryConfig{ID: h.name, Tenants: h, Log: log, Diverged: func(string) { h.diverged++ }})
	h.follower = NewFollower(FollowerConfig{ID: h.name, Followers: followers{h}, Connect: h.connect, Image: h.image, Feeds: h.feeds, Log: log})
	var err error
	if h.listener, err = h.net.Listen(80); err != nil {
		h.w.t.Fatal(err)
	}
	listener, primary := h.listener, h.primary
	h.conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			h.conns.Go(func() { _ = primary.Serve(conn) })
		}
	})
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func (w *world) stop() {
	for _, h := range w.hosts {
		h.follower.Close()
	}
	for _, h := range w.hosts {
		h.listener.Close()
		h.primary.Close()
		h.conns.Wait()
		for name, t := range h.tenants {
			if t.uses != 0 {
				w.t.Errorf("tenant %s of %s is in use %d times after the end", name, h.name, t.uses)
			}
			t.db.Close()
		}
	}
}

func (h *host) connect(ctx context.Context, addr string) (net.Conn, error) {
	c, err := h.net.Dial(ctx, "tcp", addr+":80")
	if err == nil && h.slow {
		c = slowConn{c}
	}
	return c, err
}

func (h *host) feeds(tenant string) []string { return h.primary.Copies(tenant).Nodes() }

func (h *host) image(ctx context.Context, addr, tenant string) (io.ReadCloser, int64, error) {
	if h.imaging != nil {
		if err := h.imaging(ctx, tenant); err != nil {
			return nil, 0, err
		}
	}
	c, err := h.w.hosts[addr].Acquire(tenant)
	if err != nil {
		return nil, 0, err
	}
	defer c.Release()
	r, size, _, err := c.DB.OpenImage()
	if err != nil {
		return nil, 0, err
	}
	return r, size, c.DB.Sync()
}

// options returns the options of a tenant that is opened next, with a feed for it.
func (h *host) options(t *held, follower bool) engine.Options {
	copies := h.primary.Copies(strings.TrimPrefix(t.path, "/"))
	return engine.Options{
		FS: t.fs, Sync: h.sync, Feed: feed.New(h.keep), Follower: follower,
		Acknowledge: func(ctx context.Context, seq uint64) error { return copies.Handed(ctx, seq) },
	}
}

// create makes a tenant, which follows from its start if follower.
func (h *host) create(name string, follower bool) *held {
	t := &held{fs: crashfs.New(1), path: "/" + name, follower: follower}
	t.changed.L = &t.mu
	var err error
	o := h.options(t, follower)
	if h.random != nil {
		o.Rand = h.random()
	}
	t.feed = o.Feed.(*feed.Feed)
	if t.db, err = engine.Create(t.path, o); err != nil {
		h.w.t.Fatal(err)
	}
	h.mu.Lock()
	h.tenants[name] = t
	h.mu.Unlock()
	return t
}

// reopen closes a tenant and opens it again.
func (h *host) reopen(name string, follower bool) *held {
	t := h.get(name)
	t.alone(func() {
		if err := t.db.Close(); err != nil {
			h.w.t.Error(err)
		}
		t.follower = follower
		h.openLocked(t)
	})
	h.primary.Opened(name)
	return t
}

func (h *host) openLocked(t *held) {
	var err error
	o := h.options(t, t.follower)
	if t.db, err = engine.Open(t.path, o); err != nil {
		h.w.t.Error(err)
		return
	}
	t.feed = o.Feed.(*feed.Feed)
	t.closed = false
}

// shut closes a tenant until it is acquired, as one is that is not used.
func (h *host) shut(name string) {
	t := h.get(name)
	t.alone(func() {
		if err := t.db.Close(); err != nil {
			h.w.t.Error(err)
		}
		t.closed = true
	})
	h.primary.Closed(name)
}

func (h *host) get(name string) *held {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tenants[name]
}

// Find, Acquire and Above implement Tenants.
func (h *host) Find(name string) (Copy, bool) {
	t := h.get(name)
	if t == nil {
		return Copy{}, false
	}
	return t.enter()
}

func (h *host) Acquire(name string) (Copy, error) {
	h.mu.Lock()
	acquiring := h.acquiring
	h.mu.Unlock()
	if acquiring != nil {
		acquiring(name)
	}
	return h.acquire(name)
}

func (h *host) acquire(name string) (Copy, error) {
	t := h.get(name)
	if t == nil {
		return Copy{}, &Ended{endAbsent, "no tenant " + name + " here"}
	}
	c, ok := t.enter()
	if !ok {
		t.alone(func() {
			if t.closed {
				h.openLocked(t)
			}
		})
		h.primary.Opened(name)
		c, _ = t.enter()
	}
	return c, nil
}

func (h *host) Above(name string) []string { return h.follower.Above(name) }

// followers are the tenants of a host as Followers.
type followers struct{ *host }

func (f followers) Acquire(name string) (Copy, error) { return f.acquire(name) }

func (f followers) Replace(name string, image io.Reader, _ int64, history string, common uint64, ok bool) error {
	t := f.get(name)
	options := f.options(t, true)
	received, err := engine.ReceiveImage(t.path, image, options)
	if err != nil {
		return err
	}
	if _, of := received.Position(); of != history {
		received.Discard()
		return fail.New(fail.Conflict, "the image is of history %s, expected %s", of, history)
	}
	t.alone(func() {
		if seq, _ := t.db.Position(); ok && seq > common {
			t.kept = append(t.kept, fmt.Sprintf("%d to %d", common+1, seq))
		}
		t.db.Close()
		t.feed = options.Feed.(*feed.Feed)
		t.db, err = received.Install()
	})
	f.primary.Closed(name)
	f.primary.End(name, &Ended{endLater, "the copy was replaced"})
	if f.installed != nil {
		f.installed()
	}
	return err
}

func (f followers) Reopen(name string) error {
	t := f.get(name)
	t.alone(func() {
		_ = t.db.Close() // its disk has failed
		f.openLocked(t)
	})
	f.primary.Opened(name)
	return nil
}

func (f followers) CaughtUp(name string) error {
	if f.noting != nil {
		if err := f.noting(name); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tenants[name].seen = true
	return nil
}

func (h *host) exec(name, text string) {
	h.w.t.Helper()
	if err := h.tryExec(name, text); err != nil {
		h.w.t.Fatalf("%s on %s: %v", text, h.name, err)
	}
}

func (h *host) tryExec(name, text string) error {
	_, err := h.get(name).now().Exec(context.Background(), engine.Everything(), engine.Statement{Text: text}, nil)
	return err
}

func (h *host) rows(name, text string) string {
	r, err := h.get(name).now().Exec(context.Background(), engine.Everything(), engine.Statement{Text: text}, nil)
	if err != nil {
		return err.Error()
	}
	return string(r.Body)
}

// eventually waits, in virtual time, until a condition holds.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	for range 6000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, h := range w.hosts {
		w.t.Logf("log of %s:\n%s", h.name, h.log)
		for name := range h.tenants {
			s, ok := h.follower.Status(name)
			seq, history := h.get(name).now().Position()
			w.t.Logf("%s: %s at %d of %s, follows %v: %+v", h.name, name, seq, history, ok, s)
		}
	}
	w.t.Fatalf("after a minute: not %s", what)
}

// same waits until a tenant is at one position on two hosts, and checks that it holds the same there.
func (w *world) same(name string, a, b *host) {
	w.t.Helper()
	w.eventually("at one position on "+a.name+" and "+b.name, func() bool {
		seqA, historyA := a.get(name).now().Position()
		seqB, historyB := b.get(name).now().Position()
		return seqA == seqB && historyA == historyB
	})
	_, _, sumA, _ := a.get(name).now().Sum()
	_, _, sumB, _ := b.get(name).now().Sum()
	if rowsA, rowsB := a.rows(name, "get c order id"), b.rows(name, "get c order id"); rowsA != rowsB || sumA != sumB {
		w.t.Fatalf("%s holds %s with the sum %x, %s holds %s with %x", a.name, rowsA, sumA, b.name, rowsB, sumB)
	}
}
