package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// changes is how many of a node's changes to its disk are tried, one in a run; a short run tries every third.
const changes = 36

// TestANodeThatLosesPowerIsFailedOver takes the power from the node of a tenant, or from that of its replica, at each of its
// changes to the disk, while clients write to the tenant. The tenant goes on where the other copy is, and once the node is back both
// copies are equal and one of them accepts writes. Every acknowledged row is in the tenant, or was on its way to the replica and
// is kept beside it.
func TestANodeThatLosesPowerIsFailedOver(t *testing.T) {
	for victim, of := range map[string]string{"n1": "the primary", "n2": "the replica"} {
		t.Run(of, func(t *testing.T) {
			step := 1
			if testing.Short() {
				step = 3
			}
			for k := 1; k <= changes && !t.Failed(); k += step {
				t.Run(fmt.Sprintf("at change %d", k), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { losePowerAndFailOver(t, victim, k) })
				})
			}
		})
	}
}

func losePowerAndFailOver(t *testing.T, victim string, k int) {
	c := (&cluster{t: t, replicas: true}).start(uint64(k), "n1", "n2")
	defer c.stop()
	c.want(201, "PUT", "router", "/_shard/tenants/acme", `{"node": "n1"}`)
	c.want(200, "POST", "router", "/t/acme/query", `{"query": "create collection log (w text, n int)"}`)
	c.eventually("the replica has caught up", func() bool { return c.equal("n1", "n2") })
	all, stop := c.writers(3)
	off := c.nodes[victim].losePowerAt(k)
	<-off
	time.Sleep(500 * time.Millisecond)
	if victim == "n1" {
		c.want(200, "POST", "router", "/_shard/nodes/n1/failover", "")
	}
	acknowledged := all[0].acknowledged.Load()
	c.eventually("writes go on", func() bool { return all[0].acknowledged.Load() > acknowledged+3 })
	c.restart(victim)
	c.eventually("the copies follow", func() bool {
		a, err := c.send("POST", "router", "/_shard/replicas", "")
		return err == nil && a.status == 200 && len(c.takingWrites()) == 1
	})
	stop()
	c.eventually("the copies are equal", func() bool { return c.equal("n1", "n2") })
	if want := []string{map[string]string{"n1": "n2", "n2": "n1"}[victim]}; !slices.Equal(c.takingWrites(), want) {
		t.Errorf("writes are accepted on %v, want %v", c.takingWrites(), want)
	}
	c.wantRows(all, c.forked(victim)...)
	const rows = "/t/acme/log?order=id"
	if one, two := c.want(200, "GET", "n1", rows, ""), c.want(200, "GET", "n2", rows, ""); one != two {
		t.Errorf("the copies hold\n%s\nand\n%s", one, two)
	}
}

// forked returns the rows that a node keeps beside acme: those that it had acknowledged, and that were still on their way to the
// replica when its power went.
func (c *cluster) forked(node string) (rows []row) {
	c.t.Helper()
	var branches []struct{ History string }
	const path = "/_admin/tenants/acme/forked"
	if err := json.Unmarshal([]byte(c.want(200, "GET", node, path, "")), &branches); err != nil {
		c.t.Fatal(err)
	}
	for _, b := range branches {
		for line := range strings.Lines(c.want(200, "GET", node, path+"/"+b.History, "")) {
			var change struct{ Doc row }
			if err := json.Unmarshal([]byte(line), &change); err != nil {
				c.t.Fatal(err)
			}
			rows = append(rows, change.Doc)
		}
	}
	return rows
}

// equal reports whether two copies of acme are at one position, and one of them follows.
func (c *cluster) equal(one, two string) bool {
	type position struct {
		Role, History string
		Seq, Durable  uint64
		CaughtUp      bool `json:"caught_up"`
	}
	var p [2]position
	for i, name := range []string{one, two} {
		a, err := c.send("GET", name, "/_admin/tenants/acme/position", "")
		if err != nil || a.status != 200 || json.Unmarshal([]byte(a.body), &p[i]) != nil {
			return false
		}
	}
	return p[0].Seq == p[1].Seq && p[0].History == p[1].History && p[0].Role != p[1].Role && (p[0].CaughtUp || p[1].CaughtUp)
}
