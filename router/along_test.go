package router

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func (r *running) move(tenant, to string) (done moved) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.must("POST", "/_shard/tenants/"+tenant+"/move", `{"to":"`+to+`"}`, 200)), &done); err != nil {
		r.t.Fatal(err)
	}
	return done
}

func TestAMoveTakesTheReplicaAlong(t *testing.T) {
	rt, nodes := cluster(t, Config{Replicas: true}, 4)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	rt.must("POST", "/t/acme/c", "first", 200)
	if done := rt.move("acme", "n3"); done.Replica != "n2" || !done.SourceRemoved {
		t.Errorf("it says %+v", done)
	}
	wantCopies(t, rt, nodes, "acme", map[string]string{"n3": "writable", "n2": "follows n3"})
	rt.must("POST", "/t/acme/c", "second", 200)
	if done := rt.move("acme", "n2"); done.Replica != "n1" {
		t.Errorf("onto its replica: it says %+v", done)
	}
	wantCopies(t, rt, nodes, "acme", map[string]string{"n2": "writable", "n1": "follows n2"})
	if got := nodes[0].copyOf("acme"); cmp.Diff([]string{"first", "second"}, got.Values) != "" {
		t.Errorf("the new replica is %+v", got)
	}
}

// The node of the replica does not answer as the tenant moves: it follows the new node once it does.
func TestAReplicaThatIsAwayFollowsTheNewNodeLater(t *testing.T) {
	rt, nodes := cluster(t, Config{Replicas: true}, 3)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	nodes[1].kill()
	rt.must("POST", "/t/acme/c", "first", 200)
	if done := rt.move("acme", "n3"); done.Replica != "" || !done.SourceRemoved {
		t.Errorf("it says %+v", done)
	}
	nodes[1].revive()
	wantCopies(t, rt, nodes, "acme", map[string]string{"n3": "writable", "n2": "follows n3"})
	if got := placements(rt)["acme"]; got != "n3 n2" {
		t.Errorf("acme is on %s", got)
	}
}

// A move onto the replica's node that fails has deleted the replica, and gives the tenant one again.
func TestAMoveThatFailsLeavesAReplica(t *testing.T) {
	rt, nodes := cluster(t, Config{Replicas: true}, 3)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	rt.must("POST", "/t/acme/c", "first", 200)
	nodes[1].cutting(func(_ *fakeNode, r *http.Request) verdict {
		if strings.HasSuffix(r.URL.Path, "/file") {
			return refuse503
		}
		return pass
	})
	rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 502)
	repairedAll(t, rt)
	on := rt.dir.Tenant("acme").Replica
	wantCopies(t, rt, nodes, "acme", map[string]string{"n1": "writable", on: "follows n1"})
}

func TestADrainMovesReplicasToo(t *testing.T) {
	rt, nodes := cluster(t, Config{Replicas: true}, 4)
	for i := range 12 {
		rt.must("PUT", "/_shard/tenants/t"+itoa(i), `{"node":"n`+itoa(1+i%3)+`"}`, 201)
		rt.must("POST", "/t/t"+itoa(i)+"/c", "value", 200)
	}
	text := rt.must("POST", "/_shard/nodes/n1/drain", "", 200)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var last drained
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if last.Moved != 4 || last.Replicas == 0 || last.Left != 0 || last.Error != "" || len(lines) != 1+last.Moved+last.Replicas {
		t.Errorf("it says %s", text)
	}
	repairedAll(t, rt)
	if left := nodes[0].names(); len(left) > 0 {
		t.Errorf("the node still holds %v", left)
	}
	for name, on := range placements(rt) {
		node, replica, _ := strings.Cut(on, " ")
		if replica == "" || replica == node || strings.Contains(on, "n1") {
			t.Errorf("%s is on %s", name, on)
		}
		wantCopies(t, rt, nodes, name, map[string]string{node: "writable", replica: "follows " + node})
	}
	rt.must("DELETE", "/_shard/nodes/n1", "", 204)
}

// The new replica has caught up before the old one goes.
func TestADrainKeepsAReplicaUntilTheNewOneHasCaughtUp(t *testing.T) {
	rt, nodes := cluster(t, Config{Replicas: true}, 3)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	rt.must("POST", "/t/acme/c", "first", 200)
	nodes[2].deaf.Store(true)
	done := make(chan string)
	go func() {
		_, body, _ := ask(rt.addr, "POST", "/_shard/nodes/n2/drain", "", "")
		done <- body
	}()
	eventually(t, "the new replica is asked for its position again", func() bool {
		nodes[2].mu.Lock()
		defer nodes[2].mu.Unlock()
		return strings.Count(strings.Join(nodes[2].calls, " "), "GET tenants/acme/position") > 5
	})
	if got := placements(rt)["acme"]; got != "n1 n2" || nodes[1].copyOf("acme") == nil {
		t.Errorf("acme is on %s", got)
	}
	nodes[2].deaf.Store(false)
	if body := <-done; !strings.Contains(body, `{"tenant":"acme","from":"n2","replica":"n3"}`) || !strings.Contains(body, `"replicas":1`) {
		t.Errorf("says %s", body)
	}
	wantCopies(t, rt, nodes, "acme", map[string]string{"n1": "writable", "n3": "follows n1"})
}

func TestADrainWithoutANodeForAReplicaStops(t *testing.T) {
	rt, nodes := cluster(t, Config{Replicas: true}, 2)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	if body := rt.must("POST", "/_shard/nodes/n2/drain", "", 200); !strings.Contains(body, `"left":1,"error":"no node for a replica of tenant acme`) {
		t.Errorf("says %s", body)
	}
	wantCopies(t, rt, nodes, "acme", map[string]string{"n1": "writable", "n2": "follows n1"})
}
