package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
)

// replicated is a router that gives each tenant a replica, and three nodes that write to disk before they answer.
type replicated struct {
	t      *testing.T
	router *process
	dirs   map[string]string
	nodes  map[string]*process
	addrs  map[string]string // of a node, kept when it starts again
}

func startReplicated(t *testing.T) *replicated {
	t.Helper()
	c := &replicated{
		t: t, router: startRouter(t, filepath.Join(t.TempDir(), "shard.fenec"), "--replicas"),
		dirs: map[string]string{}, nodes: map[string]*process{}, addrs: map[string]string{},
	}
	for _, name := range []string{"n1", "n2", "n3"} {
		c.dirs[name], c.addrs[name] = t.TempDir(), "127.0.0.1:0"
		c.start(name)
		record(t, c.router, name, c.addrs[name])
	}
	return c
}

// start starts a node, at the address that it had before.
func (c *replicated) start(name string) {
	c.t.Helper()
	c.nodes[name] = start(c.t, "node", "--dir", c.dirs[name], "--http", c.addrs[name], "--admin-token", adminToken,
		"--replication-token", "r3plication", "--sync", "always")
	c.addrs[name] = c.nodes[name].addr
}

// placement is where a tenant is.
type placement struct{ Node, Replica string }

func (c *replicated) placed(tenant string) (p placement) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(must(c.t, 200, "GET", c.router.url()+"/_shard/tenants/"+tenant, "")), &p); err != nil {
		c.t.Fatal(err)
	}
	return p
}

// caughtUp waits until a tenant has a replica that holds what its primary does not lose.
func (c *replicated) caughtUp(tenant string) placement {
	c.t.Helper()
	var p placement
	eventually(c.t, "a replica has caught up", func() bool {
		request("POST", c.router.url()+"/_shard/replicas", "") // what it answers is looked at below
		if p = c.placed(tenant); p.Replica == "" {
			return false
		}
		var position struct {
			CaughtUp bool `json:"caught_up"`
			Behind   *int
		}
		a, err := request("GET", fmt.Sprintf("http://%s/_admin/tenants/%s/position", c.addrs[p.Replica], tenant), "")
		return err == nil && a.status == 200 && json.Unmarshal([]byte(a.body), &position) == nil && position.CaughtUp &&
			position.Behind != nil && *position.Behind == 0
	})
	return p
}

// A node is killed under writers, three times: its tenant goes on where its replica is, and has every write that was answered. The
// node that comes back follows.
func TestAKilledNodesTenantGoesOnAtItsReplicaWithEveryAnsweredWrite(t *testing.T) {
	c := startReplicated(t)
	must(t, 201, "PUT", c.router.url()+"/_shard/tenants/acme", `{}`)
	tenant := c.router.url() + "/t/acme"
	query(t, tenant, "create collection writes (n int)")
	w := startWriters(4, func() string { return tenant })
	for range 3 {
		p := c.caughtUp("acme")
		w.more(t, 50)
		c.nodes[p.Node].kill()
		var done struct {
			Promoted []struct{ Tenant, To string }
			Failed   []any
		}
		answer := must(t, 200, "POST", c.router.url()+"/_shard/nodes/"+p.Node+"/failover", "")
		if err := json.Unmarshal([]byte(answer), &done); err != nil || len(done.Promoted) != 1 || done.Promoted[0].To != p.Replica || len(done.Failed) != 0 {
			t.Fatalf("the failover answered %s, %v, want acme to %s", answer, err, p.Replica)
		}
		w.more(t, 50)
		c.start(p.Node)
	}
	p := c.caughtUp("acme")
	w.stop()
	w.check(t, tenant)
	copy := fmt.Sprintf("http://%s/t/acme", c.addrs[p.Replica])
	if a, err := request("POST", copy+"/writes", `{"n": -1}`); err != nil || a.status != 403 || a.header.Get("Fenec-Tenant") != "replica" {
		t.Errorf("a write to the replica: %d %s, %v", a.status, a.body, err)
	}
	eventually(t, "the replica equals its primary", func() bool {
		return query(t, copy, "get writes order id") == query(t, tenant, "get writes order id")
	})
	for _, n := range c.nodes {
		n.stop()
	}
}
