package router

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pair records a node as the standby of another, and returns the answer.
func (r *running) pair(n *fakeNode, primary string, status int) string {
	r.t.Helper()
	return r.must("PUT", "/_shard/nodes/"+n.name, fmt.Sprintf(`{"addr":%q,"token":"%s-token","standby":%q}`, n.addr(), n.name, primary), status)
}

func TestAPair(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 3)
	for _, name := range []string{"a", "b", "c"} {
		rt.must("PUT", "/_shard/tenants/"+name, `{"node":"n1"}`, 201)
		rt.must("POST", "/t/"+name+"/c", "first", 200)
	}
	if got := rt.pair(nodes[1], "n1", 200); got != `{"node":"n2","unreplicated":[]}` {
		t.Errorf("answered %s", got)
	}
	wantCopies(t, rt, nodes, "a", map[string]string{"n1": "writable", "n2": "follows n1"})
	if got := rt.must("PUT", "/_shard/tenants/d", `{"node":"n1"}`, 201); got != `{"tenant":"d","node":"n1","replica":"n2"}` {
		t.Errorf("a new tenant of the pair: %s", got)
	}
	if got := rt.must("GET", "/_shard/nodes", "", 200); !strings.Contains(got, `"standby":"n1","tenants":0,"replicas":4,`) {
		t.Errorf("listed as %s", got)
	}
	nodes[0].disk, nodes[2].disk = 1000, 5000
	if got := rt.must("PUT", "/_shard/tenants/e", "", 201); got != `{"tenant":"e","node":"n1","replica":"n2"}` {
		t.Errorf("the emptiest node is a standby, and the tenant is placed so: %s", got)
	}
	for _, c := range []struct{ method, path, body, says string }{
		{"PUT", "/_shard/tenants/f", `{"node":"n2"}`, "no tenant is placed on it"},
		{"POST", "/_shard/tenants/a/move", `{"to":"n2"}`, "no tenant is moved to it"},
		{"PUT", "/_shard/nodes/n3", fmt.Sprintf(`{"addr":%q,"token":"n3-token","standby":"n1"}`, nodes[2].addr()), "has the standby n2 already"},
		{"DELETE", "/_shard/nodes/n2", "", "holds 5 replicas"},
	} {
		if got := rt.must(c.method, c.path, c.body, 409); !strings.Contains(got, c.says) {
			t.Errorf("%s %s says %s", c.method, c.path, got)
		}
	}
	if got := copies(nodes, "f"); len(got) > 0 {
		t.Errorf("the copies of f are %v", got)
	}
	rt.record(nodes[1]) // recorded again without a standby it stays one
	if got := rt.dir.StandbyOf("n1"); got != "n2" {
		t.Errorf("the standby is %q", got)
	}
	nodes[0].kill()
	if got := rt.must("POST", "/_shard/nodes/n1/failover", "", 200); got != `{"node":"n1","to":"n2","promoted":["a","b","c","d","e"],"failed":[],"unreplicated":[]}` {
		t.Errorf("answered %s", got)
	}
	if got := rt.dir.StandbyOf("n1"); got != "" {
		t.Errorf("the pair is not ended: %q", got)
	}
	nodes[0].revive()
	repairedAll(t, rt)
	if got := rt.pair(nodes[0], "n2", 200); got != `{"node":"n1","unreplicated":[]}` {
		t.Errorf("the other way round: %s", got)
	}
	wantCopies(t, rt, nodes, "e", map[string]string{"n2": "writable", "n1": "follows n2"})
	rt.pair(nodes[0], "", 200)
	if got := rt.dir.StandbyOf("n2"); got != "" {
		t.Errorf("the pair is not ended by hand: %q", got)
	}
}

// A tenant that the standby has no copy of keeps the pair.
func TestAFailoverThatLeavesATenantKeepsThePair(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 2)
	rt.must("PUT", "/_shard/tenants/a", `{"node":"n1"}`, 201)
	nodes[1].give("b", &fakeTenant{Values: []string{"precious"}, lineage: "another"})
	rt.must("PUT", "/_shard/tenants/b", `{"node":"n1"}`, 201)
	if got := rt.pair(nodes[1], "n1", 200); got != `{"node":"n2","unreplicated":["b"]}` {
		t.Errorf("answered %s", got)
	}
	nodes[0].kill()
	if got := rt.must("POST", "/_shard/nodes/n1/failover", "", 502); !strings.HasPrefix(got, `{"node":"n1","to":"n2","promoted":["a"],"failed":[{"tenant":"b",`) {
		t.Errorf("answered %s", got)
	}
	if got := rt.dir.StandbyOf("n1"); got != "n2" {
		t.Errorf("the standby is %q", got)
	}
}

// A pair has the replicas of its tenants on the standby, wherever they were before, and a tenant that leaves it does not.
func TestReplicasFollowPairs(t *testing.T) {
	rt, nodes := cluster(t, Config{Replicas: true}, 4)
	nodes[1].disk = 1 << 20
	rt.must("PUT", "/_shard/tenants/a", `{"node":"n1"}`, 201)
	rt.must("PUT", "/_shard/tenants/b", `{"node":"n1"}`, 201)
	rt.must("PUT", "/_shard/tenants/c", `{"node":"n1"}`, 201)
	if diff := cmp.Diff(map[string]string{"a": "n1 n2", "b": "n1 n3", "c": "n1 n4"}, placements(rt)); diff != "" {
		t.Fatal(diff)
	}
	if got := rt.pair(nodes[3], "n1", 200); got != `{"node":"n4","unreplicated":[]}` {
		t.Errorf("answered %s", got)
	}
	for _, name := range []string{"a", "b", "c"} {
		wantCopies(t, rt, nodes, name, map[string]string{"n1": "writable", "n4": "follows n1"})
	}
	rt.must("POST", "/_shard/tenants/a/move", `{"to":"n2"}`, 200)
	wantCopies(t, rt, nodes, "a", map[string]string{"n2": "writable", "n3": "follows n2"})
	rt.must("POST", "/_shard/tenants/a/move", `{"to":"n1"}`, 200)
	wantCopies(t, rt, nodes, "a", map[string]string{"n1": "writable", "n4": "follows n1"})
	rt.must("PUT", "/_shard/tenants/e", `{"node":"n2"}`, 201)
	if got := placements(rt)["e"]; got != "n2 n3" {
		t.Errorf("a tenant of no pair is on %s", got)
	}
	if body := rt.pair(nodes[2], "n2", 200); !strings.Contains(body, `"unreplicated":[]`) {
		t.Errorf("says %s", body)
	}
}
