package e2e

import (
	"io"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A node keeps silent in the middle of a move. The router ends within its drain all the same, and what it leaves the next
// one puts right.
func TestARouterEndsInTheMiddleOfAMove(t *testing.T) {
	t.Parallel()
	gs, _ := gates(t)
	c := startClusterBehind(t, gs)
	c.router.Load().stop()
	c.router.Store(startRouter(t, c.directory, "--drain", "1"))
	reached, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	silent := func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		io.Copy(io.Discard, r.Body)
		once.Do(func() { close(reached) })
		<-release
		panic(http.ErrAbortHandler)
	}
	gs["n2"].install.Store(&silent)
	moved := make(chan answered, 1)
	go func() { moved <- c.move("n2") }()
	receive(t, "the move reaches its target", reached)
	began := time.Now()
	router := c.router.Load()
	router.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-router.exited:
	case <-time.After(patience):
		t.Fatalf("the router did not end: %s", router.output())
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the router ended %s after its SIGTERM, at a drain of 1 s", took)
	}
	if code := router.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d: %s", code, router.output())
	}
	receive(t, "the move ends", moved)
	close(release)
	gs["n2"].install.Store(nil)
	c.router.Store(startRouter(t, c.directory))
	w := startWriters(2, c.tenant)
	w.more(t, 10)
	if a := c.move("n2"); a.status != 200 {
		t.Errorf("the move is answered %d %s", a.status, a.body)
	}
	w.more(t, 10)
	w.stop()
	w.check(t, c.tenant())
	c.settled("n2")
}
