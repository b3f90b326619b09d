package router

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
)

// outage cuts the router's power at one of the effects it has on the world: a change of the directory's file system, or
// a request under a node's /_admin/. Whatever the router still tries after that has no effect, as if it had been killed.
type outage struct {
	mu    sync.Mutex
	at    int     // the effect it happens at; 0 for none
	how   verdict // before or after a request has its effect
	once  bool    // only that one effect fails, the router lives on
	count int
	off   bool
	met   bool
}

// effect counts an effect and returns what happens to it.
func (o *outage) effect() verdict {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.off {
		return before
	}
	o.count++
	if o.at == 0 || o.count != o.at {
		return pass
	}
	o.met = true
	o.off = !o.once
	return o.how
}

func (o *outage) plan(at int, how verdict, once bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at, o.how, o.once, o.count, o.off, o.met = at, how, once, 0, false, false
}

func (o *outage) dark() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.off
}

// happened reports whether the planned outage was met, and plans none from here on.
func (o *outage) happened() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at = 0
	return o.met
}

// world is two nodes and what happens to the routers in front of them.
type world struct {
	t     *testing.T
	nodes []*fakeNode
	fs    *crashfs.FS
	rt    *running
	conf  Config // of its routers
	outage
	traces   bool                   // copies that were never written to may lie about: creates come late
	disk     atomic.Bool            // an outage has met the router's disk
	flushing atomic.Bool            // a sync is made on behalf of one that fails
	wrote    int                    // how often writers were started
	torn     atomic.Pointer[string] // the first moment in which two copies took writes
}

// newWorld is a world with a tenant, acme, on its first node.
func newWorld(t *testing.T, seed uint64) *world { return newWorldOf(t, seed, 2, Config{}) }

// newWorldOf is newWorld with a number of nodes and a configuration of the routers.
func newWorldOf(t *testing.T, seed uint64, nodes int, c Config) *world {
	w := &world{t: t, fs: crashfs.New(seed), conf: c}
	for i := range nodes {
		n := newFakeNode(t, fmt.Sprintf("n%d", i+1))
		n.cutting(w.request)
		w.nodes = append(w.nodes, n)
	}
	w.boot()
	w.rt.record(w.nodes...)
	return w
}

// boot starts a router on what the file system holds.
func (w *world) boot() {
	fs := w.fs
	fs.Hook(func(op crashfs.Op, name string) error {
		if w.flushing.Load() {
			return nil
		}
		v := w.effect()
		if v == pass {
			return nil
		}
		w.disk.Store(true)
		switch {
		case v == after && op == crashfs.Sync:
			// It does its work and answers that it has failed.
			w.flushing.Store(true)
			defer w.flushing.Store(false)
			f, err := fs.OpenFile(strings.TrimSuffix(name, wal.SideSuffix), os.O_RDWR, 0) // made under that name
			if err == nil {
				err = errors.Join(f.Sync(), f.Close())
			}
			if err != nil {
				panic(err)
			}
		}
		return crashfs.ErrPower
	})
	c := w.conf
	c.FS, c.Directory, c.Log = w.fs, "shard.fenec", zerolog.Nop()
	w.rt = start(w.t, c)
}

// restart ends the router as it is and starts another on what a power loss leaves.
func (w *world) restart() { w.restartOn((*crashfs.FS).Crash) }

// everything and nothing are what a power loss may leave of what was not synced.
func everything(fs *crashfs.FS) *crashfs.FS { return fs.CrashKeeping(func(n int) int { return n }) }
func nothing(fs *crashfs.FS) *crashfs.FS    { return fs.CrashKeeping(func(int) int { return 0 }) }

func (w *world) restartOn(crash func(*crashfs.FS) *crashfs.FS) {
	w.t.Helper()
	w.mu.Lock()
	w.off = true
	w.mu.Unlock()
	w.rt.stop()
	w.fs = crash(w.fs)
	w.plan(0, pass, false)
	w.boot()
}

func (w *world) request(n *fakeNode, r *http.Request) verdict {
	w.watch("before " + r.Method + " " + r.URL.Path)
	if strings.HasPrefix(r.URL.Path, "/_admin/tenants/") {
		return w.effect()
	}
	if w.dark() {
		return before
	}
	return pass
}

// watch looks whether two copies of a tenant take writes.
func (w *world) watch(when string) {
	writable := map[string]int{}
	for _, n := range w.nodes {
		n.mu.Lock()
	}
	for _, n := range w.nodes {
		for name, t := range n.tenants {
			if t.writable() && !n.gone.Load() && !(w.traces && len(t.Values) == 0) {
				writable[name]++
			}
		}
	}
	for _, n := range w.nodes {
		n.mu.Unlock()
	}
	for name, copies := range writable {
		if copies > 1 {
			text := fmt.Sprintf("%d copies of %s take writes %s", copies, name, when)
			w.torn.CompareAndSwap(nil, &text)
		}
	}
}

// writers append to acme until they are stopped, and know what was answered.
type writers struct {
	w    *world
	stop chan struct{}
	work sync.WaitGroup
	mu   sync.Mutex
	kept map[string]bool
}

func (w *world) write() *writers {
	s := &writers{w: w, stop: make(chan struct{}), kept: map[string]bool{}}
	addr := w.rt.addr
	w.wrote++
	round := w.wrote
	for i := range 3 {
		s.work.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-s.stop:
					return
				default:
				}
				value := fmt.Sprintf("%d/%d/%d", round, i, n)
				if status, _, err := ask(addr, "POST", "/t/acme/c", value, ""); err == nil && status == 200 {
					s.mu.Lock()
					s.kept[value] = true
					s.mu.Unlock()
				} else {
					time.Sleep(time.Millisecond) // as Retry-After asks, in a hurry
				}
			}
		})
	}
	return s
}

func (s *writers) end() map[string]bool {
	close(s.stop)
	s.work.Wait()
	return s.kept
}

// holds checks that acme is somewhere, once, takes writes, and has everything that was answered.
func (w *world) holds(kept map[string]bool) {
	w.t.Helper()
	eventually(w.t, "acme takes writes", func() bool {
		status, _ := w.rt.call("POST", "/t/acme/c", "and this")
		return status == 200
	})
	eventually(w.t, "no repair is pending", func() bool { return w.rt.repairer.pending() == 0 })
	node, _, _ := strings.Cut(w.rt.tenants()["acme"], " ")
	for _, n := range w.nodes {
		if n.name != node {
			continue
		}
		seen := map[string]int{}
		for _, v := range n.copyOf("acme").Values {
			seen[v]++
		}
		for v := range kept {
			if seen[v] != 1 {
				w.t.Errorf("%s was answered and is there %d times", v, seen[v])
			}
		}
	}
	if torn := w.torn.Load(); torn != nil {
		w.t.Error(*torn)
	}
}

// alone checks that acme has no copies but those that the directory knows: the one that accepts writes, and the replica that
// follows it if there is one.
func (w *world) alone() {
	w.t.Helper()
	repairedAll(w.t, w.rt)
	node, state, _ := strings.Cut(w.rt.tenants()["acme"], " ")
	if state != "active" {
		w.t.Errorf("acme is %s", state)
	}
	want := map[string]string{node: "writable"}
	if row := w.rt.dir.Tenant("acme"); row.Replica != "" {
		want[row.Replica] = "follows " + node
	}
	if diff := cmp.Diff(want, copies(w.nodes, "acme")); diff != "" {
		w.t.Errorf("acme is on %s, and its copies are: %s", node, diff)
	}
}

// everyOutage runs a case for each effect that an operation has, until one is met by no outage.
func everyOutage(t *testing.T, once bool, hows []verdict, run func(t *testing.T, at int, how verdict) (met bool)) {
	for _, how := range hows {
		at := 1
		for met := true; met; at++ {
			t.Run(fmt.Sprintf("effect %d %s", at, how), func(t *testing.T) { met = run(t, at, how) })
			if at > 100 {
				t.Fatal("there is no end of effects")
			}
		}
		if at < 4 {
			t.Errorf("the operation has only %d effects", at-2)
		}
	}
}

func (v verdict) String() string {
	return [...]string{"passes", "is cut off before", "is cut off after", "is refused"}[v]
}
