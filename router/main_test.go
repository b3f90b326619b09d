package router

import (
	"context"
	"net"
	"testing"
	"time"

	"fenec/internal/vfs/crashfs"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of a test for something that must come about.
const patience = 10 * time.Second

// running is a router that serves on loopback.
type running struct {
	*Router
	t    testing.TB
	addr string
	done chan error
}

// start runs a router until the test ends. A Config without a file system gets one in memory.
func start(t testing.TB, c Config) *running {
	t.Helper()
	if c.FS == nil {
		c.FS = crashfs.New(1)
	}
	if c.Directory == "" {
		c.Directory = "shard.fenec"
	}
	if c.UpstreamTimeout == 0 {
		c.UpstreamTimeout = patience
	}
	rt, err := New(c)
	if err != nil {
		t.Fatalf("the router does not start: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	run := &running{Router: rt, t: t, addr: l.Addr().String(), done: make(chan error, 1)}
	go func() { run.done <- rt.Serve(l) }()
	t.Cleanup(run.stop)
	return run
}

// node returns the router's object for a node.
func (r *running) node(name string) *node {
	_, n := r.dir.Node(name)
	return n
}

// stop ends the router, and may be called again.
func (r *running) stop() {
	r.t.Helper()
	if r.done == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r.Shutdown(ctx) // a router killed in a test has a directory that fails
	if err := <-r.done; err != nil {
		r.t.Errorf("Serve ended with %v", err)
	}
	r.done = nil
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came about that %s", what)
		}
	}
}
