package router

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"fenec/internal/vfs/crashfs"
	"fenec/router/directory"

	"github.com/google/go-cmp/cmp"
)

// copies returns where a tenant's copies are: the role of each node's.
func copies(nodes []*fakeNode, tenant string) map[string]string {
	found := map[string]string{}
	for _, n := range nodes {
		switch c := n.copyOf(tenant); {
		case c == nil:
		case c.replica != nil:
			found[n.name] = "follows " + nodeNamed(nodes, c.replica.from)
		case c.writable():
			found[n.name] = "writable"
		default:
			found[n.name] = "frozen"
		}
	}
	return found
}

func nodeNamed(nodes []*fakeNode, url string) string {
	for _, n := range nodes {
		if n.url() == url {
			return n.name
		}
	}
	return url
}

// wantCopies checks where a tenant's copies are, now or soon, as the repairer ends what it has to do.
func wantCopies(t *testing.T, rt *running, nodes []*fakeNode, tenant string, want map[string]string) {
	t.Helper()
	repairedAll(t, rt)
	if diff := cmp.Diff(want, copies(nodes, tenant)); diff != "" {
		t.Errorf("the copies of %s: %s", tenant, diff)
	}
}

func TestACreateMakesAReplica(t *testing.T) {
	rt, nodes := cluster(t, Config{Replicas: true}, 3)
	if got := rt.must("PUT", "/_shard/tenants/a", `{"node":"n1"}`, 201); got != `{"tenant":"a","node":"n1","replica":"n2"}` {
		t.Errorf("answered %s", got)
	}
	if got := rt.must("PUT", "/_shard/tenants/b", `{"node":"n1"}`, 201); got != `{"tenant":"b","node":"n1","replica":"n3"}` {
		t.Errorf("answered %s", got)
	}
	wantCopies(t, rt, nodes, "a", map[string]string{"n1": "writable", "n2": "follows n1"})
	rt.must("POST", "/t/a/c", "first", 200)
	if got := nodes[1].copyOf("a"); len(got.Values) != 1 || got.lineage != nodes[0].copyOf("a").lineage {
		t.Errorf("the replica is %+v", got)
	}
	if got := rt.must("GET", "/_shard/tenants/a", "", 200); got != `{"name":"a","node":"n1","state":"active","replica":"n2"}` {
		t.Errorf("got %s", got)
	}
	if got := rt.must("GET", "/_shard/nodes", "", 200); !strings.Contains(got, `"tenants":0,"replicas":1,`) || !strings.Contains(got, `"tenants":2,"replicas":0,`) {
		t.Errorf("got %s", got)
	}
	if body := rt.must("DELETE", "/_shard/nodes/n2", "", 409); !strings.Contains(body, "holds 1 replica: drain it first") {
		t.Errorf("says %s", body)
	}
	metrics := rt.must("GET", "/_metrics", "", 200)
	for _, line := range []string{`fenec_router_replicas{node="n2"} 1`, "fenec_router_unreplicated 0"} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

func TestATenantIsMadeWithoutAReplicaIfNoNodeCanHaveIt(t *testing.T) {
	fs := crashfs.New(1)
	rt, nodes := cluster(t, Config{Replicas: true, FS: fs}, 3)
	nodes[1].kill()
	nodes[2].cutting(func(_ *fakeNode, r *http.Request) verdict {
		if strings.HasSuffix(r.URL.Path, "/follow") {
			return refuse503
		}
		return pass
	})
	if got := rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201); got != `{"tenant":"acme","node":"n1"}` {
		t.Errorf("answered %s", got)
	}
	said := rt.must("POST", "/_shard/replicas", "", 502)
	if !strings.Contains(said, `"replicated":[],"failed":[{"tenant":"acme","error":"no node for a replica of tenant acme: node n3 refuses to`) {
		t.Errorf("says %s", said)
	}
	rt.must("POST", "/t/acme/c", "first", 200)
	nodes[2].cutting(nil)
	// A node that answers again gets its replica by the repairer, or now.
	rt.call("POST", "/_shard/replicas", "")
	wantCopies(t, rt, nodes, "acme", map[string]string{"n1": "writable", "n3": "follows n1"})
	if got := rt.must("POST", "/_shard/replicas", "", 200); got != `{"replicated":[],"failed":[]}` {
		t.Errorf("run again it says %s", got)
	}
	rt.stop()
	rt = start(t, Config{FS: fs})
	if got := rt.dir.Tenant("acme"); got.Replica != "n3" || got.Lineage != nodes[0].copyOf("acme").lineage {
		t.Errorf("a router that starts reads %+v", got)
	}
}

// Without the flag a tenant has a replica only after it was asked for, for tenants of an earlier version too: their lineage is
// not in the directory.
func TestReplicasAreGivenToThoseWithout(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 3)
	for _, name := range []string{"a", "b", "c"} {
		rt.must("PUT", "/_shard/tenants/"+name, `{"node":"n1"}`, 201)
		rt.must("POST", "/t/"+name+"/c", "first", 200)
	}
	row := *rt.dir.Tenant("a")
	row.Lineage = ""
	if _, err := rt.dir.Change(rt.dir.Tenant("a"), &row); err != nil {
		t.Fatal(err)
	}
	var said struct {
		Replicated []replicated
		Failed     []failedTenant
	}
	if err := json.Unmarshal([]byte(rt.must("POST", "/_shard/replicas", "", 200)), &said); err != nil {
		t.Fatal(err)
	}
	on := map[string]int{}
	for _, r := range said.Replicated {
		on[r.Replica]++
	}
	if len(said.Replicated) != 3 || on["n2"] == 0 || on["n3"] == 0 || said.Replicated[0].Tenant != "a" {
		t.Errorf("it says %+v", said)
	}
	if got := rt.dir.Tenant("a"); got.Lineage != nodes[0].copyOf("a").lineage {
		t.Errorf("the lineage of a is %q", got.Lineage)
	}
	for _, n := range nodes[1:] {
		for name := range n.names() {
			if c := n.copyOf(name); c.replica == nil || len(c.Values) != 1 {
				t.Errorf("%s on %s is %+v", name, n.name, c)
			}
		}
	}
}

func TestANodeThatHoldsACopyIsPreferred(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 3)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	rt.must("POST", "/t/acme/c", "first", 200)
	lineage := nodes[0].copyOf("acme").lineage
	nodes[2].give("acme", &fakeTenant{Values: []string{"first", "never sent"}, lineage: lineage})
	if got := rt.must("POST", "/_shard/replicas", "", 200); got != `{"replicated":[{"tenant":"acme","replica":"n3"}],"failed":[]}` {
		t.Errorf("says %s", got)
	}
	wantCopies(t, rt, nodes, "acme", map[string]string{"n1": "writable", "n3": "follows n1"})
}

// A file of the name that is not a copy of the tenant, or that its operator has frozen, is left as it is.
func TestAFileThatIsNotTheTenantsDoesNotBecomeItsReplica(t *testing.T) {
	for name, file := range map[string]func(lineage string) *fakeTenant{
		"of another lineage": func(string) *fakeTenant { return &fakeTenant{Values: []string{"precious"}, lineage: "another"} },
		"frozen by its operator": func(l string) *fakeTenant {
			return &fakeTenant{Values: []string{"x"}, lineage: l, frozen: true, token: "backup"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			rt, nodes := cluster(t, Config{}, 2)
			rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
			rt.must("POST", "/t/acme/c", "first", 200)
			nodes[1].give("acme", file(nodes[0].copyOf("acme").lineage))
			was := nodes[1].copyOf("acme")
			if got := rt.must("POST", "/_shard/replicas", "", 502); !strings.Contains(got, "the directory does not know") {
				t.Errorf("says %s", got)
			}
			if diff := cmp.Diff(was, nodes[1].copyOf("acme"), cmp.AllowUnexported(fakeTenant{}, follow{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestANodeRecordedUnderTwoNamesGetsNoReplicaOfItsOwnTenant(t *testing.T) {
	n := newFakeNode(t, "n1")
	rt := start(t, Config{Replicas: true})
	rt.record(n)
	rt.must("PUT", "/_shard/nodes/alias", `{"addr":"`+n.addr()+`","token":"n1-token"}`, 201)
	if got := rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201); strings.Contains(got, "replica") {
		t.Errorf("answered %s", got)
	}
	rt.must("POST", "/t/acme/c", "first", 200)
	rt.must("POST", "/_shard/replicas", "", 502)
	rt.must("POST", "/t/acme/c", "second", 200)
	repairedAll(t, rt)
	if c := n.copyOf("acme"); c == nil || !c.writable() {
		t.Errorf("it is %+v", c)
	}
	if n.wasAsked("POST tenants/acme/follow") > 0 {
		t.Error("it was told to follow itself")
	}
}

// wasAsked returns how often the node got a request under /_admin/.
func (n *fakeNode) wasAsked(what string) (times int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, call := range n.calls {
		if call == what {
			times++
		}
	}
	return times
}

// A follower that is left on the replica's node under another name of it is the replica.
func TestAReplicaIsNotTakenForALeftoverOfAnotherName(t *testing.T) {
	rt, nodes := cluster(t, Config{Replicas: true}, 2)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	rt.must("POST", "/t/acme/c", "first", 200)
	rt.must("PUT", "/_shard/nodes/alias", `{"addr":"`+nodes[1].addr()+`","token":"n2-token"}`, 201)
	row := *rt.dir.Tenant("acme")
	row.Stale = []directory.Leftover{{Node: "alias", Kind: directory.Follower}}
	if _, err := rt.dir.Change(rt.dir.Tenant("acme"), &row); err != nil {
		t.Fatal(err)
	}
	wantCopies(t, rt, nodes, "acme", map[string]string{"n1": "writable", "n2": "follows n1"})
}

// A replica whose node was away is deleted as another has taken its place, but not before that has caught up.
func TestASupersededReplicaStaysUntilTheOtherHasCaughtUp(t *testing.T) {
	rt, nodes := cluster(t, Config{Replicas: true}, 3)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	rt.must("POST", "/t/acme/c", "first", 200)
	nodes[1].kill()
	rt.must("POST", "/_shard/nodes/n2/failover", "", 200)
	nodes[2].deaf.Store(true)
	rt.must("POST", "/_shard/replicas", "", 200)
	if got := placements(rt)["acme"]; got != "n1 n3" {
		t.Fatalf("acme is on %s", got)
	}
	was := nodes[1].wasAsked("GET tenants/acme/position")
	nodes[1].revive()
	eventually(t, "the repairer has tried three times", func() bool {
		rt.repairer.wake()
		return nodes[1].wasAsked("GET tenants/acme/position") >= was+6 // two each
	})
	if nodes[1].copyOf("acme") == nil {
		t.Error("it is deleted and the other has not caught up")
	}
	nodes[2].deaf.Store(false)
	wantCopies(t, rt, nodes, "acme", map[string]string{"n1": "writable", "n3": "follows n1"})
}

func TestADeleteRemovesTheReplicaToo(t *testing.T) {
	rt, nodes := cluster(t, Config{Replicas: true}, 3)
	for _, name := range []string{"acme", "beta"} {
		rt.must("PUT", "/_shard/tenants/"+name, `{"node":"n1"}`, 201)
		rt.must("POST", "/t/"+name+"/c", "first", 200)
	}
	rt.must("DELETE", "/_shard/tenants/acme", "", 204)
	wantCopies(t, rt, nodes, "acme", map[string]string{})
	// A node of a replica that does not answer owes its deletion, also after the name is used again.
	on := rt.dir.Tenant("beta").Replica
	other := nodes[1]
	if on == "n3" {
		other = nodes[2]
	}
	other.kill()
	rt.must("DELETE", "/_shard/tenants/beta", "", 204)
	rt.must("GET", "/_shard/tenants/beta", "", 404)
	if other.copyOf("beta") == nil {
		t.Fatal("the test's node has let go of its copy")
	}
	rt.must("PUT", "/_shard/tenants/beta", `{"node":"n1"}`, 201)
	rt.must("POST", "/t/beta/c", "second", 200)
	replica := rt.dir.Tenant("beta").Replica
	if replica == "" || replica == on {
		t.Fatalf("the new tenant's replica is on %q", replica)
	}
	other.revive()
	wantCopies(t, rt, nodes, "beta", map[string]string{"n1": "writable", replica: "follows n1"})
	if got := rt.must("GET", "/t/beta/c", "", 200); got != `["second"]`+"\n" {
		t.Errorf("the new tenant holds %s", got)
	}
}

func TestTheStatusShowsHowFarCopiesAre(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 3)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	rt.must("PUT", "/_shard/tenants/beta", `{"node":"n3"}`, 201)
	rt.must("POST", "/_shard/replicas", "", 200) // acme on n2
	rt.must("POST", "/t/acme/c", "first", 200)
	nodes[1].deaf.Store(true)
	rt.must("POST", "/t/acme/c", "second", 200)
	if on := placements(rt)["acme"]; on != "n1 n2" {
		t.Fatalf("acme is on %s", on)
	}
	nodes[2].kill()
	got := rt.must("GET", "/_shard/status", "", 200)
	for _, part := range []string{
		`{"nodes":[{"name":"n1",`, `{"tenant":"acme","node":"n1","replica":"n2","state":"active","seq":2,"behind":1}`,
		`{"tenant":"beta","node":"n3",`, `"state":"active","seq":null,"behind":null}`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%s lacks %s", got, part)
		}
	}
}
