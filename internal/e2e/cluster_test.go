package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// cluster is a router and two nodes, each a process of its own.
type cluster struct {
	t         *testing.T
	directory string
	router    atomic.Pointer[process]
	dirs      map[string]string
	nodes     map[string]*process
	gates     map[string]*gate // in front of the nodes, where a test wants them
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	return startClusterBehind(t, nil)
}

func startClusterBehind(t *testing.T, gates map[string]*gate) *cluster {
	t.Helper()
	c := &cluster{
		t: t, directory: filepath.Join(t.TempDir(), "shard.fenec"),
		dirs: make(map[string]string), nodes: make(map[string]*process), gates: gates,
	}
	c.router.Store(startRouter(t, c.directory))
	for _, name := range []string{"n1", "n2"} {
		c.dirs[name] = t.TempDir()
		c.startNode(name)
	}
	must(t, 201, "PUT", c.router.Load().url()+"/_shard/tenants/acme", `{"node": "n1"}`)
	query(t, c.tenant(), "create collection writes (n int)")
	// Something to carry, so that a move takes a while.
	query(t, c.tenant(), "create collection ballast (text text)")
	text := strings.Repeat("ballast ", 20_000)
	for range 20 {
		must(t, 201, "POST", c.tenant()+"/ballast", fmt.Sprintf(`{"text": %q}`, text))
	}
	return c
}

func (c *cluster) startNode(name string) {
	c.nodes[name] = startNode(c.t, c.dirs[name])
	addr := c.nodes[name].addr
	if c.gates != nil {
		c.gates[name].lead(c.nodes[name])
		addr = c.gates[name].addr()
	}
	record(c.t, c.router.Load(), name, addr)
}

func (c *cluster) tenant() string { return c.router.Load().url() + "/t/acme" }

// movesAndCrashes moves the tenant between its two nodes and kills the one it is on, three times, under the writers, who
// then stop.
func (c *cluster) movesAndCrashes(t *testing.T, w *writers) {
	t.Helper()
	on := "n1"
	for range 3 {
		w.more(t, 20)
		if a := c.move(other(on)); a.status != 200 {
			t.Fatalf("the move answered %d %s", a.status, a.body)
		}
		on = other(on)
		w.more(t, 20)
		c.nodes[on].kill()
		c.startNode(on)
	}
	w.more(t, 20)
	w.stop()
}

// move asks for one and answers its status, 0 where there was no answer.
func (c *cluster) move(to string) answered {
	a, err := request("POST", c.router.Load().url()+"/_shard/tenants/acme/move", fmt.Sprintf(`{"to": %q}`, to))
	if err != nil {
		return answered{}
	}
	return a
}

func (c *cluster) placement() string {
	return must(c.t, 200, "GET", c.router.Load().url()+"/_shard/tenants/acme", "")
}

// settled wants the tenant on one node, active, and no other copy anywhere: at
// once, or as soon as the router has put right what was interrupted.
func (c *cluster) settled(on string) {
	c.t.Helper()
	var what string
	defer func() {
		if c.t.Failed() {
			c.t.Logf("it is not settled: %s\n%s", what, c.router.Load().output())
		}
	}()
	eventually(c.t, "the tenant is on "+on+" alone", func() bool {
		what = c.placement()
		if !strings.Contains(what, `"active"`) || !strings.Contains(what, fmt.Sprintf("%q", on)) {
			return false
		}
		for name, node := range c.nodes {
			what = name + " has " + must(c.t, 200, "GET", node.url()+"/_admin/tenants", "")
			if strings.Contains(what, "acme") != (name == on) {
				return false
			}
		}
		return true
	})
}

// other is where the tenant is not.
func other(node string) string {
	if node == "n1" {
		return "n2"
	}
	return "n1"
}

func TestMovesWhileClientsWriteLoseNothing(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	w := startWriters(4, c.tenant)
	w.more(t, 50)
	on := "n1"
	for range 6 {
		to := other(on)
		if a := c.move(to); a.status != 200 {
			t.Fatalf("the move to %s answered %d %s", to, a.status, a.body)
		}
		on = to
		w.more(t, 20)
	}
	w.stop()
	w.check(t, c.tenant())
	for status := range w.errors {
		if status != "503" {
			t.Errorf("writers were answered %v, want 503 and nothing else", w.errors)
		}
	}
	c.settled(on)
	if got := must(t, 200, "GET", c.tenant()+"/ballast?count", ""); !strings.Contains(got, "20") {
		t.Errorf("the ballast counts %s, want 20", got)
	}
	c.router.Load().stop()
	for _, n := range c.nodes {
		n.stop()
	}
}

// TestTheRouterKilledInTheMiddleOfMoves kills it at arbitrary moments of moves,
// with writers running, and starts it again.
func TestTheRouterKilledInTheMiddleOfMoves(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := startCluster(t)
	w := startWriters(3, c.tenant)
	w.more(t, 20)
	on := "n1"
	for round := range 8 {
		to := other(on)
		moved := make(chan answered, 1)
		go func() { moved <- c.move(to) }()
		<-time.After(time.Duration(random.IntN(60)) * time.Millisecond)
		c.router.Load().kill()
		receive(t, "the move ends", moved)
		c.router.Store(startRouter(t, c.directory))
		// The writers go on, whatever became of the move.
		w.more(t, 5)
		placement := c.placement()
		switch {
		case strings.Contains(placement, fmt.Sprintf("%q", to)):
			on = to
		case strings.Contains(placement, `"moving"`):
			// Half of the times it is finished, half of them called off.
			if random.IntN(2) == 0 {
				to = on
			}
			if a := c.move(to); a.status != 200 {
				t.Fatalf("round %d: after %s the move to %s answered %d %s", round, placement, to, a.status, a.body)
			}
			on = to
		}
		w.more(t, 5)
	}
	// A last whole move clears away what an interrupted one left.
	for range 2 {
		on = other(on)
		if a := c.move(on); a.status != 200 {
			t.Fatalf("the last move to %s answered %d %s", on, a.status, a.body)
		}
	}
	w.stop()
	w.check(t, c.tenant())
	c.settled(on)
}

// TestANodeKilledInTheMiddleOfMoves kills the source or the target.
func TestANodeKilledInTheMiddleOfMoves(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := startCluster(t)
	w := startWriters(3, c.tenant)
	w.more(t, 20)
	on := "n1"
	for round := range 6 {
		to, victim := other(on), on
		if round%2 == 0 {
			victim = to
		}
		moved := make(chan answered, 1)
		go func() { moved <- c.move(to) }()
		<-time.After(time.Duration(random.IntN(40)) * time.Millisecond)
		c.nodes[victim].kill()
		a := receive(t, "the move ends", moved)
		c.startNode(victim)
		if a.status == 200 {
			on = to
		} else {
			eventually(t, fmt.Sprintf("round %d: the move to %s, which was answered %d %s, succeeds again", round, to, a.status, a.body), func() bool {
				a = c.move(to)
				return a.status == 200 || a.status == 409 && strings.Contains(c.placement(), fmt.Sprintf("%q", to))
			})
			on = to
		}
		w.more(t, 5)
	}
	w.stop()
	w.check(t, c.tenant())
	for range 2 {
		on = other(on)
		if a := c.move(on); a.status != 200 {
			t.Fatalf("the last move to %s answered %d %s", on, a.status, a.body)
		}
	}
	c.settled(on)
}

func TestADrainedNodeIsEmptyAndNothingIsLost(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	for i := range 5 {
		must(t, 201, "PUT", fmt.Sprintf("%s/_shard/tenants/t%d", c.router.Load().url(), i), `{"node": "n1"}`)
	}
	w := startWriters(2, c.tenant)
	w.more(t, 10)
	must(t, 200, "POST", c.router.Load().url()+"/_shard/nodes/n1/drain", "")
	w.more(t, 10)
	w.stop()
	w.check(t, c.tenant())
	if got := strings.TrimSpace(must(t, 200, "GET", c.nodes["n1"].url()+"/_admin/tenants", "")); got != "[]" {
		t.Errorf("the drained node holds %s", got)
	}
	must(t, 204, "DELETE", c.router.Load().url()+"/_shard/nodes/n1", "")
	files, err := filepath.Glob(filepath.Join(c.dirs["n1"], "*.fenec*"))
	if err != nil || len(files) != 0 {
		t.Errorf("the drained node's directory holds %v, %v", files, err)
	}
	if _, err := os.Stat(filepath.Join(c.dirs["n2"], "acme.fenec")); err != nil {
		t.Error(err)
	}
}
