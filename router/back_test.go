package router

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fenec/internal/simnet"
	"fenec/internal/vfs/crashfs"
)

// inBubble is a router in a bubble over a number of nodes, and a client of it.
func inBubble(t *testing.T, count int, c Config) (rt *Router, nodes []*fakeNode, ask func(method, path, body string) int) {
	network := simnet.New()
	for i := range count {
		nodes = append(nodes, newFakeNodeOn(t, network, fmt.Sprintf("n%d", i+1)))
	}
	c.FS, c.Directory, c.Dial, c.IdleTimeout = crashfs.New(1), "shard.fenec", network.Host("router").Dial, time.Hour
	rt, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := network.Host("router").Listen(80)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- rt.Serve(l) }()
	client := &http.Client{Transport: &http.Transport{DialContext: network.Host("client").Dial}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		rt.Shutdown(context.Background())
		<-served
	})
	ask = func(method, path, body string) int {
		r, err := http.NewRequest(method, "http://router:80"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	for _, n := range nodes {
		if status := ask("PUT", "/_shard/nodes/"+n.name, `{"addr":"`+n.addr()+`","token":"`+n.name+`-token"}`); status != 201 {
			t.Fatalf("node %s: %d", n.name, status)
		}
	}
	return rt, nodes, ask
}

// unfinished is a router in a bubble whose tenant acme has been moved to n2, which holds it as it was sent: the node was lost
// before it could be told to serve it. down is what the node does with a request from then on.
func unfinished(t *testing.T, down func(r *http.Request) verdict) (rt *Router, n2 *fakeNode, write func() int) {
	rt, nodes, ask := inBubble(t, 2, Config{})
	if status := ask("PUT", "/_shard/tenants/acme", `{"node":"n1"}`); status != 201 {
		t.Fatal(status)
	}
	var lost atomic.Bool
	nodes[1].cutting(func(_ *fakeNode, r *http.Request) verdict {
		if strings.HasSuffix(r.URL.Path, "/thaw") {
			lost.Store(true)
		}
		if lost.Load() {
			return down(r)
		}
		return pass
	})
	if status := ask("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`); status != 502 {
		t.Fatalf("the move: %d", status)
	}
	return rt, nodes[1], func() int { return ask("POST", "/t/acme/c", "a value") }
}

// A tenant waits for a node that does not answer for so long that the repairer asks seldom. The node comes back, and a
// client's request is the first that it answers.
func TestATenantIsRepairedSoonAfterItsNodeAnswersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, n2, write := unfinished(t, func(*http.Request) verdict { return before })
		time.Sleep(40 * time.Second) // in the bubble: rounds are 1, 2, 4, 8, 16 and 32 s apart
		if status := write(); status != 502 {
			t.Fatalf("a write to a lost node: %d", status)
		}
		n2.cutting(nil)
		back := time.Now()
		for status := 0; status != 200; status = write() {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(back); took > 2*repairSoon {
			t.Errorf("the tenant accepts writes %s after its node answers", took)
		}
		time.Sleep(10 * time.Second)
		if n := rt.repairer.pending(); n != 0 {
			t.Errorf("%d repairs are pending", n)
		}
	})
}

// A node answers clients and none of the router's own requests. It is not asked more often for that.
func TestANodeThatAnswersSomeRequestsIsNotAskedMoreOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		rt, _, write := unfinished(t, func(r *http.Request) verdict {
			if strings.HasPrefix(r.URL.Path, "/_admin/") {
				asked.Add(1)
				return before
			}
			return pass
		})
		asked.Store(0)
		for range 1000 {
			if status := write(); status != 503 {
				t.Fatalf("a write to a tenant that is held: %d", status)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := asked.Load(); n < 8 || n > 24 { // a request and its repetition on a new connection
			t.Errorf("in 10 s with 100 answers a second, the node was asked %d times for what it does not answer", n)
		}
		if rt.repairer.pending() != 1 {
			t.Error("nothing is pending")
		}
	})
}

// A node whose tenants were failed over is back after so long that the repairer asks seldom. No client asks it for anything.
func TestAFormerPrimaryFollowsSoonAfterItsNodeAnswersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes, ask := inBubble(t, 3, Config{Replicas: true})
		if status := ask("PUT", "/_shard/tenants/acme", `{"node":"n1"}`); status != 201 {
			t.Fatal(status)
		}
		nodes[0].kill()
		if status := ask("POST", "/_shard/nodes/n1/failover", ""); status != 200 {
			t.Fatal(status)
		}
		time.Sleep(200 * time.Second) // in the bubble: rounds are a minute apart by then
		nodes[0].revive()
		back := time.Now()
		for nodes[0].copyOf("acme").replica == nil {
			time.Sleep(100 * time.Millisecond)
			if took := time.Since(back); took > probeEvery+2*repairSoon {
				t.Fatalf("the former primary still accepts writes %s after its node answers", took)
			}
		}
	})
}

// A replica that is to be replaced stays if the new one does not catch up.
func TestAReplicaStaysIfTheNewOneDoesNotCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, nodes, ask := inBubble(t, 3, Config{Replicas: true})
		if status := ask("PUT", "/_shard/tenants/acme", `{"node":"n1"}`); status != 201 {
			t.Fatal(status)
		}
		nodes[2].deaf.Store(true)
		began := time.Now()
		if status := ask("POST", "/_shard/nodes/n2/drain", ""); status != 200 {
			t.Fatal(status)
		}
		if took := time.Since(began); took < replicaPatience || took > replicaPatience+time.Minute {
			t.Errorf("the drain took %s", took)
		}
		if row := rt.dir.Tenant("acme"); row.Replica != "n2" || nodes[1].copyOf("acme") == nil {
			t.Errorf("the row is %+v", row)
		}
	})
}
