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
	random   func() io.Reader // of a tenant's history; the real one if nil
	listener net.Listener
	primary  *Primary
	follower *Follower
	log      *strings.Builder

	mu       sync.Mutex
	tenants  map[string]*held
	conns    sync.WaitGroup
	diverged int
}

// held is a tenant of a host.
type held struct {
	fs   *crashfs.FS
	db   *engine.DB
	feed *feed.Feed
	path string
	kept []string // changes that images replaced
	seen bool     // has caught up
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
	var lock sync.Mutex
	log := zerolog.New(writerFunc(func(p []byte) (int, error) {
		lock.Lock()
		defer lock.Unlock()
		return h.log.Write(p)
	}))
	h.primary = NewPrimary(PrimaryConfig{ID: name, Tenants: h, Log: log, Diverged: func(string) { h.diverged++ }})
	h.follower = NewFollower(FollowerConfig{ID: name, Followers: followers{h}, Connect: h.connect, Image: h.image, Feeds: h.feeds, Log: log})
	var err error
	if h.listener, err = h.net.Listen(80); err != nil {
		w.t.Fatal(err)
	}
	h.conns.Go(func() {
		for {
			conn, err := h.listener.Accept()
			if err != nil {
				return
			}
			h.conns.Go(func() { _ = h.primary.Serve(conn) })
		}
	})
	w.hosts[name] = h
	return h
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
		for _, t := range h.tenants {
			t.db.Close()
		}
	}
}

func (h *host) connect(ctx context.Context, addr string) (net.Conn, error) {
	return h.net.Dial(ctx, "tcp", addr+":80")
}

func (h *host) feeds(tenant string) []string { return h.primary.Copies(tenant).Nodes() }

func (h *host) image(_ context.Context, addr, tenant string) (io.ReadCloser, int64, error) {
	c, err := h.w.hosts[addr].Acquire(tenant)
	if err != nil {
		return nil, 0, err
	}
	r, size, _, err := c.DB.OpenImage()
	return r, size, err
}

func (h *host) options(t *held, follower bool) engine.Options {
	t.feed = feed.New(h.keep)
	name := strings.TrimPrefix(t.path, "/")
	copies := h.primary.Copies(name)
	return engine.Options{
		FS: t.fs, Sync: h.sync, Feed: t.feed, Follower: follower,
		Acknowledge: func(ctx context.Context, seq uint64) error { return copies.Handed(ctx, seq) },
	}
}

// create makes a tenant, which follows from its start if follower.
func (h *host) create(name string, follower bool) *held {
	t := &held{fs: crashfs.New(1), path: "/" + name}
	var err error
	o := h.options(t, follower)
	if h.random != nil {
		o.Rand = h.random()
	}
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
	if err := t.db.Close(); err != nil {
		h.w.t.Fatal(err)
	}
	var err error
	if t.db, err = engine.Open(t.path, h.options(t, follower)); err != nil {
		h.w.t.Fatal(err)
	}
	h.primary.Opened(name)
	return t
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
	return Copy{t.db, t.feed, func() {}}, true
}

func (h *host) Acquire(name string) (Copy, error) {
	c, ok := h.Find(name)
	if !ok {
		return c, &Ended{endAbsent, "no tenant " + name + " here"}
	}
	return c, nil
}

func (h *host) Above(name string) []string { return h.follower.Above(name) }

// followers are the tenants of a host as Followers.
type followers struct{ *host }

func (f followers) Replace(name string, image io.Reader, _ int64, common uint64, ok bool) error {
	t := f.get(name)
	if seq, _ := t.db.Position(); ok && seq > common {
		t.kept = append(t.kept, fmt.Sprintf("%d to %d", common+1, seq))
	}
	received, err := engine.ReceiveImage(t.path, image, f.options(t, true))
	if err != nil {
		return err
	}
	t.db.Close()
	t.db, err = received.Install()
	f.primary.End(name, &Ended{endLater, "the copy was replaced"})
	return err
}

func (f followers) Reopen(name string) error {
	f.reopen(name, true)
	return nil
}

func (f followers) CaughtUp(name string) error {
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
	_, err := h.get(name).db.Exec(context.Background(), engine.Everything(), engine.Statement{Text: text}, nil)
	return err
}

func (h *host) rows(name, text string) string {
	r, err := h.get(name).db.Exec(context.Background(), engine.Everything(), engine.Statement{Text: text}, nil)
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
			seq, history := h.get(name).db.Position()
			w.t.Logf("%s: %s at %d of %s, follows %v: %+v", h.name, name, seq, history, ok, s)
		}
	}
	w.t.Fatalf("after a minute: not %s", what)
}

// same waits until a tenant is at one position on two hosts, and checks that it holds the same there.
func (w *world) same(name string, a, b *host) {
	w.t.Helper()
	w.eventually("at one position on "+a.name+" and "+b.name, func() bool {
		seqA, historyA := a.get(name).db.Position()
		seqB, historyB := b.get(name).db.Position()
		return seqA == seqB && historyA == historyB
	})
	_, _, sumA, _ := a.get(name).db.Sum()
	_, _, sumB, _ := b.get(name).db.Sum()
	if rowsA, rowsB := a.rows(name, "get c order id"), b.rows(name, "get c order id"); rowsA != rowsB || sumA != sumB {
		w.t.Fatalf("%s holds %s with the sum %x, %s holds %s with %x", a.name, rowsA, sumA, b.name, rowsB, sumB)
	}
}
