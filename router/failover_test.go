package router

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"fenec/internal/vfs/crashfs"

	"github.com/google/go-cmp/cmp"
)

// Three nodes, n1 with a tenant on each of the others' replicas and the replica of one of n2's tenants.
func threeNodes(t *testing.T, c Config) (*running, []*fakeNode) {
	t.Helper()
	c.Replicas = true
	rt, nodes := cluster(t, c, 3)
	rt.must("PUT", "/_shard/tenants/gamma", `{"node":"n2"}`, 201)
	rt.must("PUT", "/_shard/tenants/beta", `{"node":"n1"}`, 201)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	for _, name := range []string{"acme", "beta", "gamma"} {
		rt.must("POST", "/t/"+name+"/c", "first", 200)
	}
	want := map[string]string{"acme": "n1 n2", "beta": "n1 n3", "gamma": "n2 n1"}
	if diff := cmp.Diff(want, placements(rt)); diff != "" {
		t.Fatal(diff)
	}
	return rt, nodes
}

// placements returns the node of each tenant, and of its replica.
func placements(rt *running) map[string]string {
	rt.t.Helper()
	var list []shownTenant
	if err := json.Unmarshal([]byte(rt.must("GET", "/_shard/tenants", "", 200)), &list); err != nil {
		rt.t.Fatal(err)
	}
	found := map[string]string{}
	for _, t := range list {
		found[t.Name] = strings.TrimSpace(t.Node + " " + t.Replica)
	}
	return found
}

func TestAFailoverPromotesEachTenantOnItsReplica(t *testing.T) {
	rt, nodes := threeNodes(t, Config{FS: crashfs.New(1)})
	nodes[0].kill()
	want := `{"node":"n1","promoted":[{"tenant":"acme","to":"n2"},{"tenant":"beta","to":"n3"}],"failed":[],"unreplicated":["gamma"]}`
	if got := rt.must("POST", "/_shard/nodes/n1/failover", "", 200); got != want {
		t.Errorf("answered %s", got)
	}
	if diff := cmp.Diff(map[string]string{"acme": "n2", "beta": "n3", "gamma": "n2"}, placements(rt)); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"acme", "beta", "gamma"} {
		rt.must("POST", "/t/"+name+"/c", "second", 200)
		if got := rt.must("GET", "/t/"+name+"/c", "", 200); got != `["first","second"]`+"\n" {
			t.Errorf("%s holds %s", name, got)
		}
	}
	if body := rt.must("POST", "/_shard/nodes/n1/failover", "", 409); !strings.Contains(body, "no tenant with a replica") {
		t.Errorf("run again it says %s", body)
	}
	rt.must("POST", "/_shard/nodes/n9/failover", "", 404)
	metrics := rt.must("GET", "/_metrics", "", 200)
	for _, line := range []string{`fenec_router_failovers_total{by="hand",result="done"} 2`, "fenec_router_unreplicated 3"} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	nodes[0].revive()
	// It follows as it answers, and what it held is used again.
	rt.call("POST", "/_shard/replicas", "")
	repairedAll(t, rt)
	if diff := cmp.Diff(map[string]string{"acme": "n2 n1", "beta": "n3 n1", "gamma": "n2 n1"}, placements(rt)); diff != "" {
		t.Error(diff)
	}
	wantCopies(t, rt, nodes, "acme", map[string]string{"n1": "follows n2", "n2": "writable"})
	if got := nodes[0].copyOf("beta"); len(got.Values) != 2 || got.replica == nil {
		t.Errorf("the copy of beta on n1 is %+v", got)
	}
}

// A node that comes back has its former primaries follow without a person, though it took writes that were never sent: they are
// gone from the tenant.
func TestAFormerPrimaryFollowsAsItsNodeComesBack(t *testing.T) {
	rt, nodes := threeNodes(t, Config{})
	nodes[0].deaf.Store(true)
	nodes[1].deaf.Store(true) // nothing is sent to the replica any more
	rt.must("POST", "/t/acme/c", "never sent", 200)
	nodes[0].kill()
	rt.must("POST", "/_shard/nodes/n1/failover", "", 200)
	nodes[1].deaf.Store(false)
	rt.must("POST", "/t/acme/c", "second", 200)
	nodes[0].deaf.Store(false)
	nodes[0].revive()
	wantCopies(t, rt, nodes, "acme", map[string]string{"n1": "follows n2", "n2": "writable"})
	nodes[0].pull("acme")
	if got := nodes[0].copyOf("acme"); got.tails != 1 || cmp.Diff([]string{"first", "second"}, got.Values) != "" {
		t.Errorf("the former primary is %+v", got)
	}
	if got := placements(rt)["acme"]; got != "n2 n1" {
		t.Errorf("acme is on %s", got)
	}
}

// The tenant has another replica by then: the former primary follows first, and is deleted only if it holds nothing that the
// tenant lacks.
func TestAFormerPrimaryThatIsNotNeededIsDeletedUnlessItHasATail(t *testing.T) {
	for name, c := range map[string]struct {
		tail bool
		want map[string]string
	}{
		"with a tail":    {true, map[string]string{"n1": "follows n2", "n2": "writable", "n3": "follows n2"}},
		"without a tail": {false, map[string]string{"n2": "writable", "n3": "follows n2"}},
	} {
		t.Run(name, func(t *testing.T) {
			rt, nodes := threeNodes(t, Config{})
			if c.tail {
				nodes[1].deaf.Store(true)
				rt.must("POST", "/t/acme/c", "never sent", 200)
			}
			nodes[0].kill()
			rt.must("POST", "/_shard/nodes/n1/failover", "", 200)
			nodes[1].deaf.Store(false)
			rt.must("POST", "/_shard/replicas", "", 200)
			if got := placements(rt)["acme"]; got != "n2 n3" {
				t.Fatalf("acme is on %s", got)
			}
			nodes[0].revive()
			wantCopies(t, rt, nodes, "acme", c.want)
			if got := placements(rt)["acme"]; got != "n2 n3" {
				t.Errorf("acme is on %s", got)
			}
		})
	}
}

func TestATenantWhoseReplicaMayNotBePromotedStays(t *testing.T) {
	rt, nodes := cluster(t, Config{Replicas: true}, 3)
	rt.must("PUT", "/_shard/tenants/bare", `{"node":"n1"}`, 201)
	bare := *rt.dir.Tenant("bare")
	bare.Replica = ""
	if _, err := rt.dir.Change(rt.dir.Tenant("bare"), &bare); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes[1:] {
		n.deaf.Store(true)
	}
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201) // its replica never catches up
	on := rt.dir.Tenant("acme").Replica
	nodes[0].kill()
	got := rt.must("POST", "/_shard/nodes/n1/failover", "", 502)
	for _, part := range []string{
		`"promoted":[],`, `{"tenant":"bare","error":"tenant bare has no replica"}`, `"error":"2 tenants of node n1 are not failed over"`,
		`{"tenant":"acme","error":"node ` + on + ` refuses to POST /_admin/tenants/acme/promote (409: the copy has never caught up)`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%s lacks %s", got, part)
		}
	}
	nodes[0].revive()
	wantCopies(t, rt, nodes, "acme", map[string]string{"n1": "writable", on: "follows n1"})
	if got := rt.tenants()["acme"]; got != "n1 active" {
		t.Errorf("acme is %s", got)
	}
	rt.must("POST", "/t/acme/c", "first", 200)
}

// A node that answers and does not freeze a tenant takes writes: nothing is promoted beside it.
func TestATenantThatItsLivingNodeDoesNotFreezeStays(t *testing.T) {
	rt, nodes := threeNodes(t, Config{})
	var full atomic.Bool
	real := nodes[0].server.Config.Handler
	nodes[0].server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasSuffix(r.URL.Path, "/freeze"):
			real.ServeHTTP(w, r)
		case full.Load():
			refuseWith(w, 507, "the disk is full")
		default:
			refuseWith(w, 429, "later")
		}
	})
	got := rt.must("POST", "/_shard/nodes/n1/failover", "", 502)
	if !strings.Contains(got, "node n1 answers and may accept writes of tenant acme") || !strings.Contains(got, `"promoted":[]`) {
		t.Errorf("answered %s", got)
	}
	wantCopies(t, rt, nodes, "acme", map[string]string{"n1": "writable", "n2": "follows n1"})
	rt.must("POST", "/t/acme/c", "second", 200)
	full.Store(true) // a node whose disk is full may be failed over: it is why one does it
	rt.must("POST", "/_shard/nodes/n1/failover", "", 200)
	wantCopies(t, rt, nodes, "acme", map[string]string{"n1": "follows n2", "n2": "writable"})
}

// The answer to the promotion is lost: the failover goes on when its node answers, as recorded.
func TestARecordedFailoverIsFinished(t *testing.T) {
	for name, v := range map[string]verdict{"not promoted": before, "promoted": after} {
		t.Run(name, func(t *testing.T) {
			fs := crashfs.New(1)
			rt, nodes := threeNodes(t, Config{FS: fs})
			nodes[0].kill()
			var off atomic.Bool
			nodes[1].cutting(func(_ *fakeNode, r *http.Request) verdict {
				switch {
				case strings.HasSuffix(r.URL.Path, "/promote") && off.CompareAndSwap(false, true):
					return v
				case off.Load():
					return before
				}
				return pass
			})
			got := rt.must("POST", "/_shard/nodes/n1/failover", "", 502)
			if !strings.Contains(got, `{"tenant":"acme","error":"node n2 cannot be reached`) || !strings.Contains(got, `"promoted":[{"tenant":"beta","to":"n3"}]`) {
				t.Errorf("answered %s", got)
			}
			if got := rt.tenants()["acme"]; got != "n1 moving" {
				t.Errorf("acme is %s", got)
			}
			rt.stop()
			nodes[1].cutting(nil)
			rt = start(t, Config{FS: fs, Replicas: true})
			eventually(t, "acme takes writes", func() bool {
				status, _ := rt.call("POST", "/t/acme/c", "second")
				return status == 200
			})
			if got := rt.tenants()["acme"]; got != "n2 active" {
				t.Errorf("acme is %s", got)
			}
		})
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	rt, nodes := threeNodes(t, Config{})
	rt.must("POST", "/t/acme/c", "second", 200)
	before := placements(rt)
	var got struct {
		Promoted     []promoted
		Failed       []failedTenant
		Unreplicated []string
		Copies       []standing
	}
	if err := json.Unmarshal([]byte(rt.must("POST", "/_shard/nodes/n1/failover?dry_run", "", 200)), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]promoted{{"acme", "n2"}, {"beta", "n3"}}, got.Promoted); diff != "" || len(got.Failed) > 0 || len(got.Unreplicated) != 1 {
		t.Errorf("it would %+v", got)
	}
	if len(got.Copies) != 2 || got.Copies[0].Position.Seq != 2 || got.Copies[0].Copy.Seq != 2 || got.Copies[0].Copy.Role != "replica" {
		t.Errorf("the copies are %+v", got.Copies)
	}
	if diff := cmp.Diff(before, placements(rt)); diff != "" {
		t.Error(diff)
	}
	wantCopies(t, rt, nodes, "acme", map[string]string{"n1": "writable", "n2": "follows n1"})
	nodes[1].kill()
	if said := rt.must("POST", "/_shard/nodes/n1/failover?dry_run=1", "", 200); !strings.Contains(said, `"failed":[{"tenant":"acme","error":"node n2 does not answer"}]`) {
		t.Errorf("says %s", said)
	}
	rt.must("POST", "/_shard/nodes/n2/failover?dryrun", "", 400) // which must not be taken for a failover
	rt.must("POST", "/_shard/nodes/n2/failover?dry_run=false", "", 200)
	if got := rt.tenants()["gamma"]; got != "n1 active" {
		t.Errorf("gamma is %s", got)
	}
}

// A promotion that was given up arrives after all: the tenant is served where it was, and there alone.
func TestALatePromotionAfterItWasGivenUpIsRefused(t *testing.T) {
	rt, nodes := threeNodes(t, Config{})
	fit := func(is bool) {
		nodes[1].mu.Lock()
		defer nodes[1].mu.Unlock()
		nodes[1].tenants["acme"].replica.caughtUp = is
	}
	var sent atomic.Int64
	nodes[1].cutting(func(_ *fakeNode, r *http.Request) verdict {
		if !strings.HasSuffix(r.URL.Path, "/acme/promote") {
			return pass
		}
		if sent.Add(1) > 2 { // the second was as its connection broke
			return pass
		}
		fit(false) // as of a copy that is found to differ from its primary's
		return late
	})
	nodes[1].deaf.Store(true)
	if body := rt.must("POST", "/_shard/nodes/n1/failover", "", 502); !strings.Contains(body, `{"tenant":"acme"`) {
		t.Errorf("answered %s", body)
	}
	repairedAll(t, rt)
	wantCopies(t, rt, nodes, "acme", map[string]string{"n1": "writable", "n2": "follows n1"})
	fit(true)
	nodes[1].deliver()
	wantCopies(t, rt, nodes, "acme", map[string]string{"n1": "writable", "n2": "follows n1"})
}

// The same if the node was away, comes back and does not freeze the tenant: nothing was sent to the replica in that attempt.
func TestALatePromotionIsRefusedAfterTheNodeIsBack(t *testing.T) {
	rt, nodes := threeNodes(t, Config{})
	real := nodes[0].server.Config.Handler
	nodes[0].server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/freeze") {
			refuseWith(w, 429, "later")
			return
		}
		real.ServeHTTP(w, r)
	})
	nodes[0].kill()
	var back atomic.Bool
	nodes[1].cutting(func(_ *fakeNode, r *http.Request) verdict {
		switch {
		case !strings.Contains(r.URL.Path, "/acme/"):
			return pass
		case strings.HasSuffix(r.URL.Path, "/promote"):
			return late
		case r.Method != "GET" && !back.Load():
			return before // the failover is not given up yet
		}
		return pass
	})
	rt.must("POST", "/_shard/nodes/n1/failover", "", 502)
	nodes[0].down.Store(false)
	back.Store(true)
	repairedAll(t, rt)
	want := map[string]string{"n1": "writable", "n2": "follows n1"}
	wantCopies(t, rt, nodes, "acme", want)
	nodes[1].deliver()
	wantCopies(t, rt, nodes, "acme", want)
}

// An error that is no refusal leaves the failover recorded: it is tried again.
func TestAPromotionThatFailsIsTriedAgain(t *testing.T) {
	rt, nodes := threeNodes(t, Config{})
	nodes[0].kill()
	var sent atomic.Int64
	nodes[1].cutting(func(_ *fakeNode, r *http.Request) verdict {
		if strings.HasSuffix(r.URL.Path, "/acme/promote") && sent.Add(1) == 1 {
			return refuse503
		}
		return pass
	})
	rt.must("POST", "/_shard/nodes/n1/failover", "", 502)
	eventually(t, "acme takes writes", func() bool {
		rt.repairer.wake()
		status, _ := rt.call("POST", "/t/acme/c", "second")
		return status == 200
	})
	if got := rt.tenants()["acme"]; got != "n2 active" {
		t.Errorf("acme is %s", got)
	}
}

// A replica that is behind gets a moment to hold what its frozen primary has.
func TestAFailoverOfALivingNodeWaitsForTheReplica(t *testing.T) {
	rt, nodes := threeNodes(t, Config{})
	nodes[1].deaf.Store(true)
	rt.must("POST", "/t/acme/c", "second", 200)
	var asked atomic.Int64
	nodes[1].cutting(func(n *fakeNode, r *http.Request) verdict {
		if strings.HasSuffix(r.URL.Path, "/acme/position") && asked.Add(1) == 5 {
			n.deaf.Store(false)
		}
		return pass
	})
	rt.must("POST", "/_shard/nodes/n1/failover", "", 200)
	if got := rt.must("GET", "/t/acme/c", "", 200); got != `["first","second"]`+"\n" {
		t.Errorf("it holds %s", got)
	}
}
