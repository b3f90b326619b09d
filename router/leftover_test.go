package router

import (
	"net/http"
	"testing"

	"fenec/internal/vfs/crashfs"
)

// leftBehind is a router that owes the deletion of a copy on n1, the tenant being on n2, and n1 away.
func leftBehind(t *testing.T) (*running, []*fakeNode) {
	t.Helper()
	rt, nodes := cluster(t, Config{FS: crashfs.New(1)}, 3)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	rt.must("POST", "/t/acme/c", "first", 200)
	nodes[0].cutting(func(_ *fakeNode, r *http.Request) verdict {
		if r.Method == "DELETE" {
			return before
		}
		return pass
	})
	rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 200)
	// From here on it does not answer at all.
	nodes[0].cutting(func(*fakeNode, *http.Request) verdict { return before })
	if nodes[0].copyOf("acme") == nil {
		t.Fatal("nothing is left behind")
	}
	return rt, nodes
}

// A node is recorded again under the address of the one that has the tenant, whose operator has frozen it for a backup:
// it is not the leftover of the move.
func TestALiveCopyIsNotTakenForALeftover(t *testing.T) {
	for name, body := range map[string]string{
		"frozen under a token":    `{"token":"backup"}`,
		"frozen without a token":  ``,
		"not frozen":              `-`,
		"never written to at all": `empty`,
	} {
		t.Run(name, func(t *testing.T) {
			rt, nodes := leftBehind(t)
			switch body {
			case "-":
			case "empty":
				nodes[1].mu.Lock()
				nodes[1].tenants["acme"].Values = nil
				nodes[1].mu.Unlock()
			default:
				if status := nodes[1].operate("POST", "acme/freeze", body); status != 200 {
					t.Fatalf("the operator is answered %d", status)
				}
			}
			was := nodes[1].copyOf("acme")
			rt.must("PUT", "/_shard/nodes/n1", `{"addr":"`+nodes[1].addr()+`","token":"n2-token"}`, 200)
			repairedAll(t, rt)
			now := nodes[1].copyOf("acme")
			if now == nil {
				t.Fatal("it is gone")
			}
			if now.frozen != was.frozen || now.token != was.token {
				t.Errorf("it was %+v and is %+v", was, now)
			}
			if status := nodes[1].operate("POST", "acme/thaw", ""); status != 200 {
				t.Fatalf("the operator is answered %d", status)
			}
			rt.must("POST", "/t/acme/c", "after", 200)
		})
	}
}

// So it is for the trace of a create that did not end: the tenant has been made elsewhere since, and takes writes.
func TestALiveCopyIsNotTakenForAnAbandonedCreate(t *testing.T) {
	rt, nodes := cluster(t, Config{FS: crashfs.New(1)}, 2)
	nodes[0].cutting(func(_ *fakeNode, r *http.Request) verdict {
		if r.Method == "PUT" {
			return after
		}
		return pass
	})
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 502)
	nodes[0].cutting(func(*fakeNode, *http.Request) verdict { return before })
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n2"}`, 201)
	rt.must("PUT", "/_shard/nodes/n1", `{"addr":"`+nodes[1].addr()+`","token":"n2-token"}`, 200)
	repairedAll(t, rt)
	rt.must("POST", "/t/acme/c", "first", 200)
}

// A copy that a node has instead of the leftover was made by an operator, and is kept.
func TestACopyThatIsNotALeftoverIsKept(t *testing.T) {
	for name, copy := range map[string]*fakeTenant{
		"frozen by its operator":                       {Values: []string{"precious"}, frozen: true, token: "backup"},
		"frozen by its operator without a token":       {Values: []string{"precious"}, frozen: true},
		"an image that an operator has installed":      {Values: []string{"precious"}, held: true},
		"an image that another move has installed":     {Values: []string{"precious"}, held: true, token: "other"},
		"thawed and written to":                        {Values: []string{"precious"}},
		"frozen by its operator, and never written to": {frozen: true, token: "backup"},
	} {
		t.Run(name, func(t *testing.T) {
			rt, nodes := leftBehind(t)
			nodes[0].restart()
			nodes[0].give("acme", copy)
			nodes[0].cutting(nil)
			rt.record(nodes[0])
			repairedAll(t, rt)
			if nodes[0].copyOf("acme") == nil {
				t.Error("it is gone")
			}
			rt.must("POST", "/t/acme/c", "after", 200)
			if copy.held {
				return // an image that was not put into service may be replaced
			}
			rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n1"}`, 409)
			if nodes[0].copyOf("acme") == nil {
				t.Error("a move has replaced it")
			}
		})
	}
}

// A tenant that its operator has frozen is not moved: what was not the router's to freeze is not its to thaw.
func TestATenantFrozenByItsOperatorStaysFrozen(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 2)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	rt.must("POST", "/t/acme/c", "first", 200)
	for _, body := range []string{`{"token":"backup"}`, ``} {
		if status := nodes[0].operate("POST", "acme/freeze", body); status != 200 {
			t.Fatalf("the operator is answered %d", status)
		}
		rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 409)
		if got := nodes[0].copyOf("acme"); !got.frozen || nodes[1].copyOf("acme") != nil || rt.tenants()["acme"] != "n1 active" {
			t.Errorf("it is %+v on n1, %+v on n2, and %s", got, nodes[1].copyOf("acme"), rt.tenants()["acme"])
		}
		if status := nodes[0].operate("POST", "acme/thaw", ""); status != 200 {
			t.Fatalf("the operator is answered %d", status)
		}
	}
	rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 200)
}

// A node without a revision in its answer is of an older version, or has lost its admin token.
func TestANodeThatShowsNoRevisionIsAskedToChangeNothing(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 2)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	real := nodes[0].server.Config.Handler
	changed := make(chan string, 100)
	nodes[0].server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" {
			changed <- r.Method + " " + r.URL.Path
		}
		if r.URL.Path == "/_admin/tenants/acme/frozen" {
			refuseWith(w, 404, "no such route")
			return
		}
		real.ServeHTTP(w, r)
	})
	rt.must("DELETE", "/_shard/tenants/acme", "", 502)
	rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 502)
	rt.must("POST", "/t/acme/c", "first", 200)
	for len(changed) > 0 {
		switch what := <-changed; what {
		case "POST /t/acme/c", "POST /_admin/tenants/acme/revision":
		default:
			t.Errorf("it was asked to %s", what)
		}
	}
}

// repairedAll waits until no repair is pending, without the pauses between the rounds of repair.
func repairedAll(t *testing.T, rt *running) {
	t.Helper()
	eventually(t, "no repair is pending", func() bool {
		rt.repairer.wake()
		return rt.repairer.pending() == 0
	})
}
