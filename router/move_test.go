package router

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"fenec/internal/vfs/crashfs"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
)

func TestAMoveReportsWhatItDid(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 2)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	rt.must("POST", "/t/acme/c", "first", 200)
	var done moved
	if err := json.Unmarshal([]byte(rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 200)), &done); err != nil {
		t.Fatal(err)
	}
	want := moved{Tenant: "acme", From: "n1", To: "n2", Bytes: int64(len(nodes[1].copyOf("acme").image())), MS: done.MS, SourceRemoved: true}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Error(diff)
	}
	if got := rt.must("GET", "/t/acme/c", "", 200); got != `["first"]`+"\n" {
		t.Errorf("after the move it holds %s", got)
	}
	rt.must("POST", "/t/acme/c", "second", 200)
	cases := []struct {
		name, tenant, body string
		status             int
	}{
		{"where it is", "acme", `{"to":"n2"}`, 409},
		{"an unknown node", "acme", `{"to":"n9"}`, 404},
		{"an unknown tenant", "nobody", `{"to":"n1"}`, 404},
		{"nowhere", "acme", `{}`, 400},
		{"an unknown member", "acme", `{"to":"n1","force":true}`, 400},
		{"no body", "acme", "", 400},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { rt.must("POST", "/_shard/tenants/"+c.tenant+"/move", c.body, c.status) })
	}
	metrics := rt.must("GET", "/_metrics", "", 200)
	for _, line := range []string{`fenec_router_moves_total{result="done"} 1`, "fenec_router_move_seconds_count 1"} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

// held is a fake node whose requests of one sort wait until they are let go.
func hold(n *fakeNode, what string) (reached, release chan struct{}) {
	reached, release = make(chan struct{}), make(chan struct{})
	var once sync.Once
	n.cutting(func(n *fakeNode, r *http.Request) verdict {
		if r.Method+" "+r.URL.Path == what {
			once.Do(func() {
				close(reached)
				<-release
			})
		}
		return pass
	})
	return reached, release
}

func TestATenantsOperationsAreSerialized(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 2)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	reached, release := hold(nodes[1], "PUT /_admin/tenants/acme/file")
	done := make(chan int)
	go func() {
		status, _, _ := ask(rt.addr, "POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, "")
		done <- status
	}()
	<-reached
	for _, other := range []string{"POST /_shard/tenants/acme/move", "DELETE /_shard/tenants/acme", "PUT /_shard/tenants/acme"} {
		method, path, _ := strings.Cut(other, " ")
		body := ""
		if method == "POST" {
			body = `{"to":"n2"}`
		}
		if text := rt.must(method, path, body, 409); !strings.Contains(text, "tenant acme is being moved") {
			t.Errorf("%s says %s", other, text)
		}
	}
	if rt.tenants()["acme"] != "n1 moving" {
		t.Errorf("it is %s", rt.tenants()["acme"])
	}
	rt.must("GET", "/t/acme/c", "", 200) // reads go on
	if got := raw(t, rt.addr, "POST /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 503 ") || !strings.Contains(got, "\r\nRetry-After: 1\r\n") {
		t.Errorf("a write is answered %q", got)
	}
	if body := rt.must("DELETE", "/_shard/nodes/n2", "", 409); !strings.Contains(body, "holds 1 tenant") {
		t.Errorf("the target leaves: %s", body)
	}
	rt.must("PUT", "/_shard/tenants/other", `{"node":"n2"}`, 201) // other tenants are none of its business
	close(release)
	if status := <-done; status != 200 {
		t.Errorf("the move is answered %d", status)
	}
}

// A move continues if its client disconnects.
func TestAMoveOutlivesItsClient(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 2)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	reached, release := hold(nodes[1], "PUT /_admin/tenants/acme/file")
	conn := dial(t, rt.addr)
	conn.Write([]byte("POST /_shard/tenants/acme/move HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n{\"to\":\"n2\"}"))
	<-reached
	conn.SetLinger(0)
	conn.Close()
	close(release)
	eventually(t, "the tenant is there", func() bool { return rt.tenants()["acme"] == "n2 active" })
}

func TestAFreezeThatDidNotLastEndsTheMove(t *testing.T) {
	meddle := map[string]func(n *fakeNode){
		"an operator thawed it":          func(n *fakeNode) { n.tenants["acme"].frozen = false },
		"an operator froze it":           func(n *fakeNode) { n.tenants["acme"].token = "other" },
		"it was thawed, written, frozen": func(n *fakeNode) { n.tenants["acme"].Values = append(n.tenants["acme"].Values, "late") },
		"it is gone":                     func(n *fakeNode) { delete(n.tenants, "acme") },
	}
	for name, change := range meddle {
		t.Run(name, func(t *testing.T) {
			rt, nodes := cluster(t, Config{}, 2)
			rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
			nodes[1].cutting(func(_ *fakeNode, r *http.Request) verdict {
				if r.Method+" "+r.URL.Path == "PUT /_admin/tenants/acme/file" {
					nodes[0].mu.Lock()
					defer nodes[0].mu.Unlock()
					change(nodes[0])
				}
				return pass
			})
			if body := rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 409); !strings.Contains(body, "did not stay frozen") {
				t.Errorf("says %s", body)
			}
			eventually(t, "no repair is pending", func() bool { return rt.repairer.pending() == 0 })
			// Where the source is gone the copy stays: it may be all that is left.
			stays := name == "it is gone"
			if there := nodes[1].copyOf("acme") != nil; there != stays {
				t.Errorf("the copy is on the target: %v", there)
			}
			if where := rt.tenants()["acme"]; !strings.HasPrefix(where, "n1 ") {
				t.Errorf("it is %s", where)
			}
		})
	}
}

func TestADamagedImageEndsTheMove(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 2)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	rt.must("POST", "/t/acme/c", "first", 200)
	real := nodes[0].server.Config.Handler
	nodes[0].server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "GET" && strings.HasSuffix(r.URL.Path, "/file") {
			image := nodes[0].copyOf("acme").image()
			image[len(image)-2] ^= 1
			w.Write(image)
			return
		}
		real.ServeHTTP(w, r)
	})
	if body := rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 502); !strings.Contains(body, "the image is damaged") {
		t.Errorf("says %s", body)
	}
	rt.must("POST", "/t/acme/c", "second", 200)
	if rt.tenants()["acme"] != "n1 active" || nodes[1].copyOf("acme") != nil {
		t.Errorf("it is %s, and on n2 is %v", rt.tenants()["acme"], nodes[1].copyOf("acme"))
	}
}

func TestAMoveBetweenTwoNamesOfOneNodeIsRefused(t *testing.T) {
	n := newFakeNode(t, "n1")
	rt := start(t, Config{})
	rt.record(n)
	rt.must("PUT", "/_shard/nodes/alias", `{"addr":"`+n.addr()+`","token":"n1-token"}`, 201)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	for _, written := range []bool{false, true} {
		if written {
			rt.must("POST", "/t/acme/c", "first", 200)
		}
		rt.must("POST", "/_shard/tenants/acme/move", `{"to":"alias"}`, 409)
		if n.copyOf("acme") == nil {
			t.Fatal("the tenant is gone")
		}
		rt.must("POST", "/t/acme/c", "after", 200)
	}
}

func TestAnUnknownFileOnTheTargetStopsTheMove(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 2)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	nodes[1].give("acme", &fakeTenant{Values: []string{"precious"}})
	rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 409)
	if got := nodes[1].copyOf("acme"); got == nil || len(got.Values) != 1 {
		t.Error("the file is gone")
	}
	rt.must("POST", "/t/acme/c", "first", 200)
	nodes[1].give("acme", &fakeTenant{Values: []string{"x"}, held: true}) // an image that was not put into service
	rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 200)
	if got := rt.must("GET", "/t/acme/c", "", 200); got != `["first"]`+"\n" {
		t.Errorf("it holds %s", got)
	}
}

func TestTheLogDistinguishesAMoveFromAFailedOne(t *testing.T) {
	var log bytes.Buffer
	rt, _ := cluster(t, Config{FS: crashfs.New(1), Log: zerolog.New(zerolog.SyncWriter(&log))}, 2)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n1"}`, 409)
	rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 200)
	rt.stop()
	if said := log.String(); strings.Count(said, `"a move failed"`) != 1 || strings.Count(said, `"a tenant is moved"`) != 1 {
		t.Errorf("the log is\n%s", said)
	}
}

// A node and a router log under one key which request a line is of, so that one search finds it on both.
func TestTheLogNamesTheRequestAsTheNodesLogDoes(t *testing.T) {
	var log bytes.Buffer
	rt, nodes := cluster(t, Config{FS: crashfs.New(1), Log: zerolog.New(zerolog.SyncWriter(&log))}, 1)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	nodes[0].cutting(func(*fakeNode, *http.Request) verdict { return before })
	rt.must("GET", "/t/acme/c", "", 502)
	rt.stop()
	if !strings.Contains(log.String(), `"request":"`) {
		t.Errorf("the log is\n%s", log.String())
	}
}

// The source stops before its copy is deleted: the move is done, and the copy is deleted once the node is back.
func TestALeftoverIsDeletedLater(t *testing.T) {
	fs := crashfs.New(1)
	rt, nodes := cluster(t, Config{FS: fs}, 3)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	rt.must("POST", "/t/acme/c", "first", 200)
	nodes[0].cutting(func(_ *fakeNode, r *http.Request) verdict {
		if r.Method == "DELETE" {
			return before
		}
		return pass
	})
	if body := rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 200); !strings.Contains(body, `"source_removed":false`) {
		t.Errorf("says %s", body)
	}
	if rt.tenants()["acme"] != "n2 active" {
		t.Errorf("it is %s", rt.tenants()["acme"])
	}
	rt.must("POST", "/t/acme/c", "second", 200)
	// Even a restart and a deletion do not forget it.
	rt.stop()
	rt = start(t, Config{FS: fs})
	rt.must("DELETE", "/_shard/tenants/acme", "", 204)
	rt.must("GET", "/_shard/tenants/acme", "", 404)
	if nodes[0].copyOf("acme") == nil {
		t.Fatal("the test's node has let go of its copy")
	}
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 502) // it would be taken for the old one
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n3"}`, 201)
	nodes[0].cutting(nil)
	rt.record(nodes[0]) // the operator records it again
	eventually(t, "the copy is gone", func() bool { return nodes[0].copyOf("acme") == nil })
	eventually(t, "no repair is pending", func() bool { return rt.repairer.pending() == 0 })
	rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n1"}`, 200)
	if got := rt.must("GET", "/t/acme/c", "", 200); got != "null\n" {
		t.Errorf("the new tenant holds %s", got)
	}
}

// A copy that accepts writes was thawed by an operator, and the router never deletes it.
func TestACopyThatAcceptsWritesIsKept(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 2)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	rt.must("POST", "/t/acme/c", "first", 200)
	// The node does not answer any more once its copy is to be deleted; the router is seen to try again.
	var mu sync.Mutex
	deletes, looks := 0, 0
	nodes[0].cutting(func(n *fakeNode, r *http.Request) verdict {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Method == "DELETE":
			deletes++
			return before
		case deletes > 0:
			looks++
			return before
		}
		return pass
	})
	rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 200)
	eventually(t, "the router tries again", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return looks > 0
	})
	nodes[0].mu.Lock()
	nodes[0].tenants["acme"].frozen = false
	nodes[0].mu.Unlock()
	nodes[0].cutting(nil)
	rt.record(nodes[0])
	eventually(t, "no repair is pending", func() bool { return rt.repairer.pending() == 0 })
	if nodes[0].copyOf("acme") == nil {
		t.Error("it is gone")
	}
}

// A request that was on its way to the source as the tenant left is served by the target.
func TestARequestCaughtByTheFlipIsServedByTheTarget(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 2)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	reached, release := hold(nodes[0], "POST /t/acme/c")
	answered := make(chan string)
	go func() {
		status, body, err := ask(rt.addr, "POST", "/t/acme/c", "caught", "")
		answered <- itoa(status) + " " + body
		if err != nil {
			t.Error(err)
		}
	}()
	<-reached
	rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 200)
	close(release)
	if got := <-answered; got != "200 kept" {
		t.Errorf("answered %s", got)
	}
	if got := nodes[1].copyOf("acme"); len(got.Values) != 1 {
		t.Errorf("the target holds %q", got.Values)
	}
	t.Run("and where nothing changed, the node's 404 is passed on", func(t *testing.T) {
		nodes[1].mu.Lock()
		delete(nodes[1].tenants, "acme")
		nodes[1].mu.Unlock()
		got := raw(t, rt.addr, "GET /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 404 ") || !strings.Contains(got, "Fenec-Tenant: absent") {
			t.Errorf("answered %q", got)
		}
	})
}

func drainLines(t *testing.T, text string) (moves []moved, last drained) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, line := range lines[:len(lines)-1] {
		var m moved
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		moves = append(moves, m)
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return moves, last
}

func TestADrainMovesEverythingOff(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 3)
	for i := range 25 {
		rt.must("PUT", "/_shard/tenants/t"+itoa(i), `{"node":"n1"}`, 201)
		rt.must("POST", "/t/t"+itoa(i)+"/c", "value", 200)
	}
	var mu sync.Mutex
	most, now := 0, 0
	nodes[0].cutting(func(_ *fakeNode, r *http.Request) verdict {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case strings.HasSuffix(r.URL.Path, "/freeze"):
			now++
			most = max(most, now)
		case r.Method == "DELETE":
			now--
		}
		return pass
	})
	moves, last := drainLines(t, rt.must("POST", "/_shard/nodes/n1/drain", "", 200))
	if diff := cmp.Diff(drained{Node: "n1", Moved: 25}, last); diff != "" {
		t.Error(diff)
	}
	to := map[string]int{}
	for _, m := range moves {
		to[m.To]++
	}
	if len(moves) != 25 || to["n2"]+to["n3"] != 25 || to["n2"] < 8 || to["n3"] < 8 {
		t.Errorf("they went to %v", to)
	}
	if most < 2 || most > operationWidth {
		t.Errorf("%d were moved at a time, want a few and at most %d", most, operationWidth)
	}
	if len(nodes[0].names()) != 0 {
		t.Errorf("the node still holds %v", nodes[0].names())
	}
	rt.must("DELETE", "/_shard/nodes/n1", "", 204)
	rt.must("POST", "/_shard/nodes/n1/drain", "", 404)
	_, last = drainLines(t, rt.must("POST", "/_shard/nodes/n2/drain", "", 200))
	if last.Moved != to["n2"] {
		t.Errorf("the second drain says %+v", last)
	}
	rt.must("DELETE", "/_shard/nodes/n2", "", 204)
	rt.must("POST", "/_shard/nodes/n3/drain", "", 409)
}

func TestADrainStopsAtTheFirstFailure(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 2)
	for i := range 20 {
		rt.must("PUT", "/_shard/tenants/t"+itoa(10+i), `{"node":"n1"}`, 201)
	}
	nodes[1].cutting(func(_ *fakeNode, r *http.Request) verdict {
		if r.Method == "PUT" && r.URL.Path == "/_admin/tenants/t15/file" {
			return refuse503
		}
		return pass
	})
	text := rt.must("POST", "/_shard/nodes/n1/drain", "", 200)
	moves, last := drainLines(t, text)
	if last.Error == "" || last.Moved+last.Left != 20 || last.Moved < 5 || len(moves) != last.Moved+1 {
		t.Errorf("it ends with %+v", last)
	}
	_, after, found := strings.Cut(text, `{"tenant":"t15","error":"node n2 refuses to install the image (503: not now)"}`+"\n")
	if !found {
		t.Errorf("it does not say which one: %s", text)
	}
	// Others go on while the one that fails is put back; once it has failed, those under way end and none begins.
	if ended := strings.Count(after, "\n") - 1; ended > operationWidth-1 {
		t.Errorf("%d moves ended after the failure, at most %d were under way: %s", ended, operationWidth-1, text)
	}
	if rt.tenants()["t15"] != "n1 active" {
		t.Errorf("t15 is %s", rt.tenants()["t15"])
	}
	nodes[1].cutting(nil)
	if _, last := drainLines(t, rt.must("POST", "/_shard/nodes/n1/drain", "", 200)); last.Left != 0 || last.Error != "" {
		t.Errorf("run again it ends with %+v", last)
	}
}

func TestNothingIsPlacedOnANodeThatIsDrained(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 2)
	nodes[1].disk = 1 << 30
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	reached, release := hold(nodes[1], "PUT /_admin/tenants/acme/file")
	done := make(chan string)
	go func() {
		_, body, _ := ask(rt.addr, "POST", "/_shard/nodes/n1/drain", "", "")
		done <- body
	}()
	<-reached
	if got := rt.must("PUT", "/_shard/tenants/new", "", 201); got != `{"tenant":"new","node":"n2"}` {
		t.Errorf("placed %s", got)
	}
	close(release)
	if _, last := drainLines(t, <-done); last.Moved != 1 || last.Left != 0 {
		t.Errorf("the drain says %+v", last)
	}
}

func TestAStoppingRouterRollsItsMovesBack(t *testing.T) {
	fs := crashfs.New(1)
	rt, nodes := cluster(t, Config{FS: fs}, 2)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	reached, release := hold(nodes[1], "PUT /_admin/tenants/acme/file")
	go ask(rt.addr, "POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, "")
	<-reached
	time.AfterFunc(50*time.Millisecond, func() { close(release) })
	rt.stop() // the move is given its time
	rt = start(t, Config{FS: fs})
	eventually(t, "no repair is pending", func() bool { return rt.repairer.pending() == 0 })
	rt.must("POST", "/t/acme/c", "after", 200)
}
