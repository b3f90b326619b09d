// Package sim tests whole clusters in one process: routers and nodes in a testing/synctest bubble, on a network in memory
// (internal/simnet) and disks that lose power (internal/vfs/crashfs). Time is virtual, so a minute of waiting costs nothing.
package sim

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fenec/engine/wal"
	"fenec/internal/simnet"
	"fenec/internal/vfs/crashfs"
	"fenec/node"
	"fenec/router"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	adminToken = "secret"
	port       = 80
	// patience bounds every wait, in virtual time.
	patience = 5 * time.Minute
)

// machine is a host and its disk.
type machine struct {
	host *simnet.Host
	name string
	disk *crashfs.FS
	stop func() // ends the process on it
}

// cluster is a router and some nodes.
type cluster struct {
	t       *testing.T
	network *simnet.Network
	client  *http.Client
	router  *machine
	nodes   map[string]*machine

	replicas bool // each tenant has one
}

// start returns a cluster with a router and the nodes of these names.
func start(t *testing.T, seed uint64, nodes ...string) *cluster {
	t.Helper()
	return (&cluster{t: t}).start(seed, nodes...)
}

func (c *cluster) start(seed uint64, nodes ...string) *cluster {
	c.t.Helper()
	c.network, c.nodes = simnet.New(), map[string]*machine{}
	c.client = &http.Client{Transport: &http.Transport{DialContext: c.network.Host("client").Dial}}
	c.router = &machine{host: c.network.Host("router"), name: "router", disk: crashfs.New(seed)}
	c.startRouter()
	for i, name := range nodes {
		c.nodes[name] = &machine{host: c.network.Host(name), name: name, disk: crashfs.New(seed + uint64(i) + 1)}
		c.startNode(name)
		c.want(201, "PUT", "router", "/_shard/nodes/"+name, fmt.Sprintf(`{"addr": "%s:%d", "token": %q}`, name, port, adminToken))
	}
	return c
}

// server is a node or a router.
type server interface {
	Serve(l net.Listener) error
	Shutdown(ctx context.Context) error
}

func (c *cluster) startRouter() {
	rt, err := router.New(router.Config{Directory: "/shard.fenec", FS: c.router.disk, Dial: c.router.host.Dial, Replicas: c.replicas})
	if err != nil {
		c.t.Fatalf("the router does not start: %v", err)
	}
	c.serve(c.router, rt)
}

func (c *cluster) startNode(name string) {
	m := c.nodes[name]
	n, err := node.New(node.Config{
		Dir: "/data", FS: m.disk, Dial: m.host.Dial, AdminToken: adminToken, ReplicationToken: "shared", Sync: wal.Policy{Always: true},
	})
	if err != nil {
		c.t.Fatalf("node %s does not start: %v", name, err)
	}
	c.serve(m, n)
}

// serve runs a server on a machine.
func (c *cluster) serve(m *machine, s server) {
	l, err := m.host.Listen(port)
	if err != nil {
		c.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	m.stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s.Shutdown(ctx) // fails if the machine has lost power
		<-done
	}
}

// stop ends all processes.
func (c *cluster) stop() {
	c.client.CloseIdleConnections()
	c.router.stop()
	for _, m := range c.nodes {
		m.stop()
	}
}

// losePowerAt has a machine lose power at its k-th change to its disk from now on. The returned channel is closed then.
func (m *machine) losePowerAt(k int) (off <-chan struct{}) {
	lost := make(chan struct{})
	var count atomic.Int64
	m.disk.Hook(func(crashfs.Op, string) error {
		if count.Add(1) != int64(k) {
			return nil
		}
		close(lost) // first: what fails from here on fails because of it
		m.disk.PowerOffAt(m.disk.Ops())
		m.host.Crash()
		return crashfs.ErrPower
	})
	return lost
}

// restart starts a node that has lost power, with what is left on its disk.
func (c *cluster) restart(name string) {
	m := c.nodes[name]
	m.host.Crash() // what was dialed since
	m.stop()
	m.disk = m.disk.Crash()
	c.startNode(name)
}

// answer is the answer to a request.
type answer struct {
	status int
	body   string
}

// send sends a request to a host. The error is one of the network.
func (c *cluster) send(method, host, path, body string, headers ...string) (answer, error) {
	req, err := http.NewRequest(method, fmt.Sprintf("http://%s:%d%s", host, port, path), strings.NewReader(body))
	if err != nil {
		c.t.Error(err)
		return answer{}, err
	}
	if host != "router" {
		req.Header.Set("Authorization", "Bearer "+adminToken)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(text)}, err
}

// want sends a request that must have that status.
func (c *cluster) want(status int, method, host, path, body string) string {
	c.t.Helper()
	a, err := c.send(method, host, path, body)
	if err != nil || a.status != status {
		c.t.Fatalf("%s %s%s: %d %s, %v; expected %d", method, host, path, a.status, a.body, err, status)
	}
	return a.body
}

// eventually waits until something holds.
func (c *cluster) eventually(what string, holds func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
