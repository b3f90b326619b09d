// Package sim tests a cluster in one process: a router and nodes in a testing/synctest bubble, on a network in memory and on
// disks that lose power at a chosen moment. Time is virtual, so waits cost nothing.
package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
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

// server is what runs on a machine: a node or a router.
type server interface {
	Serve(l net.Listener) error
	Shutdown(ctx context.Context) error
}

// machine is a host of the network with a disk.
type machine struct {
	t     *testing.T
	host  *simnet.Host
	disk  *crashfs.FS
	start func(disk *crashfs.FS) (server, error)

	server server
	served chan error
}

func (m *machine) boot() {
	m.t.Helper()
	s, err := m.start(m.disk)
	if err != nil {
		m.t.Fatal(err)
	}
	l, err := m.host.Listen(80)
	if err != nil {
		m.t.Fatal(err)
	}
	m.server, m.served = s, make(chan error, 1)
	go func() { m.served <- s.Serve(l) }()
}

// halt ends what runs on the machine.
func (m *machine) halt() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := m.server.Shutdown(ctx)
	if failed := <-m.served; err == nil {
		err = failed
	}
	return err
}

// losePower ends what runs on the machine: nothing that it does from now on has an effect. Then it starts again, some time
// later, from what is on its disk.
func (m *machine) losePower() {
	left := m.disk.Crash()
	m.disk.PowerOffAt(m.disk.Ops() + 1)
	m.host.Crash()
	m.halt() // it fails, since its disk does
	m.disk = left
	time.Sleep(5 * time.Second)
	m.boot()
}

// cluster is a router and two nodes.
type cluster struct {
	t      *testing.T
	router *machine
	nodes  map[string]*machine
	client *http.Client
}

const token = "secret"

func newCluster(t *testing.T, seed uint64) *cluster {
	network := simnet.New()
	c := &cluster{t: t, nodes: map[string]*machine{}}
	for i, name := range []string{"n1", "n2"} {
		disk := crashfs.New(seed + uint64(i))
		if err := disk.MkdirAll("/data", 0o700); err != nil {
			t.Fatal(err)
		}
		c.nodes[name] = &machine{t: t, host: network.Host(name), disk: disk, start: func(disk *crashfs.FS) (server, error) {
			return node.New(node.Config{Dir: "/data", FS: disk, AdminToken: token, Sync: wal.Policy{Always: true}, IdleTimeout: time.Hour})
		}}
	}
	c.router = &machine{t: t, host: network.Host("router"), disk: crashfs.New(seed + 2), start: func(disk *crashfs.FS) (server, error) {
		return router.New(router.Config{
			Directory: "shard.fenec", FS: disk, Dial: network.Host("router").Dial, UpstreamTimeout: 10 * time.Second, IdleTimeout: time.Hour,
		})
	}}
	c.client = &http.Client{Transport: &http.Transport{DialContext: network.Host("client").Dial}}
	for _, m := range []*machine{c.nodes["n1"], c.nodes["n2"], c.router} {
		m.boot()
	}
	t.Cleanup(func() {
		c.client.CloseIdleConnections()
		for _, m := range []*machine{c.router, c.nodes["n1"], c.nodes["n2"]} {
			if err := m.halt(); err != nil {
				t.Errorf("a machine does not stop: %v", err)
			}
		}
	})
	for name := range c.nodes {
		c.must(201, "router", "PUT", "/_shard/nodes/"+name, `{"addr": "`+name+`:80", "token": "`+token+`"}`)
	}
	c.must(201, "router", "PUT", "/_shard/tenants/acme", `{"node": "n1"}`)
	c.must(200, "router", "POST", "/t/acme/query", `{"query": "create collection writes (n int)"}`)
	return c
}

// ask sends a request to a host. The status is 0 if there is no answer.
func (c *cluster) ask(host, method, path, body string) (status int, answer []byte) {
	r, err := http.NewRequest(method, "http://"+host+":80"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	got, err := c.client.Do(r)
	if err != nil {
		return 0, nil
	}
	defer got.Body.Close()
	if answer, err = io.ReadAll(got.Body); err != nil {
		return 0, nil
	}
	return got.StatusCode, answer
}

func (c *cluster) must(want int, host, method, path, body string) []byte {
	c.t.Helper()
	status, answer := c.ask(host, method, path, body)
	if status != want {
		c.t.Fatalf("%s %s is answered %d %s, want %d", method, path, status, answer, want)
	}
	return answer
}

// writers write rows with numbers of their own until stop is called, which returns those that were acknowledged.
func (c *cluster) writers() (stop func() map[int]bool) {
	const count = 3
	end, kept := make(chan struct{}), make(chan map[int]bool)
	for i := range count {
		go func() {
			acknowledged := map[int]bool{}
			for n := i; ; n += count {
				select {
				case <-end:
					kept <- acknowledged
					return
				default:
				}
				if status, _ := c.ask("router", "POST", "/t/acme/writes", fmt.Sprintf(`{"n": %d}`, n)); status == 201 {
					acknowledged[n] = true
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
	}
	return func() map[int]bool {
		close(end)
		all := map[int]bool{}
		for range count {
			for n := range <-kept {
				all[n] = true
			}
		}
		return all
	}
}

// settled waits until the tenant accepts writes, and returns the node that it is on.
func (c *cluster) settled() string {
	c.t.Helper()
	for range 60 {
		if status, _ := c.ask("router", "POST", "/t/acme/writes", `{"n": -1}`); status == 201 {
			var shown struct{ Node string }
			if err := json.Unmarshal(c.must(200, "router", "GET", "/_shard/tenants/acme", ""), &shown); err != nil {
				c.t.Fatal(err)
			}
			return shown.Node
		}
		time.Sleep(time.Second)
	}
	c.t.Fatal("the tenant does not accept writes")
	return ""
}

// check checks that everything acknowledged is in the tenant, and that of its copies one accepts writes: the one on a node.
func (c *cluster) check(acknowledged map[int]bool, on string) {
	c.t.Helper()
	var rows []struct{ N int }
	if err := json.Unmarshal(c.must(200, "router", "GET", "/t/acme/writes?limit=100000", ""), &rows); err != nil {
		c.t.Fatal(err)
	}
	found := map[int]bool{}
	for _, row := range rows {
		found[row.N] = true
	}
	for n := range acknowledged {
		if !found[n] {
			c.t.Errorf("write %d was acknowledged and is lost", n)
		}
	}
	if len(acknowledged) == 0 {
		c.t.Error("no write was acknowledged")
	}
	for name := range c.nodes {
		status, _ := c.ask(name, "POST", "/t/acme/query", `{"query": "set writes {n: 0} where n = -2"}`)
		if (status == 200) != (name == on) {
			c.t.Errorf("the tenant is on %s, and a write to %s is answered %d", on, name, status)
		}
	}
}
