package router

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fenec/internal/vfs/crashfs"

	"github.com/google/go-cmp/cmp"
)

func (r *running) tenants() map[string]string {
	r.t.Helper()
	var list []shownTenant
	if err := json.Unmarshal([]byte(r.must("GET", "/_shard/tenants", "", 200)), &list); err != nil {
		r.t.Fatal(err)
	}
	found := map[string]string{}
	for i, t := range list {
		if i > 0 && list[i-1].Name >= t.Name {
			r.t.Errorf("the list is not sorted at %s", t.Name)
		}
		found[t.Name] = t.Node + " " + t.State
	}
	return found
}

func TestNodesAreCheckedBeforeTheyAreRecorded(t *testing.T) {
	n := newFakeNode(t, "n1")
	rt := start(t, Config{})
	good := `{"addr":"` + n.addr() + `","token":"n1-token"}`
	bare := httptest.NewServer(http.NotFoundHandler())
	defer bare.Close()
	cases := []struct {
		name, path, body string
		status           int
		says             string
	}{
		{"a new one", "n1", good, 201, `{"node":"n1","addr":"` + n.addr() + `"}`},
		{"one that is there", "n1", `{"addr":"http://` + n.addr() + `","token":"n1-token"}`, 200, `{"node":"n1","addr":"http://` + n.addr() + `"}`},
		{"a wrong token", "n2", `{"addr":"` + n.addr() + `","token":"guess"}`, 502, "does not accept the admin token"},
		{"no admin token", "n2", `{"addr":"` + bare.Listener.Addr().String() + `","token":"x"}`, 502, "has no /_admin/"},
		{"nobody there", "n2", `{"addr":"` + unused(t) + `","token":"x"}`, 502, "cannot be reached: connection refused"},
		{"TLS where there is none", "n2", `{"addr":"https://` + n.addr() + `","token":"x"}`, 502, "cannot be reached"},
		{"no address", "n2", `{"token":"x"}`, 400, "requires addr and token"},
		{"no token", "n2", `{"addr":"` + n.addr() + `"}`, 400, "requires addr and token"},
		{"no port", "n2", `{"addr":"localhost","token":"x"}`, 400, "expected a host and a port"},
		{"a path", "n2", `{"addr":"localhost:1/x","token":"x"}`, 400, "expected a host and a port"},
		{"a line break in the token", "n2", `{"addr":"localhost:1","token":"x\r\ny"}`, 400, "line break"},
		{"a bad name", "N2", good, 400, "a node's name is"},
		{"an unknown member", "n2", `{"addr":"x:1","token":"x","port":1}`, 400, "unknown field port"},
		{"a wrong kind", "n2", `{"addr":1,"token":"x"}`, 400, "addr has the wrong type"},
		{"a member twice", "n2", `{"addr":"x:1","addr":"x:2","token":"x"}`, 400, ""},
		{"no JSON", "n2", `{"addr"`, 400, "invalid JSON at byte"},
		{"a region", "n2", `{"addr":"x:1","token":"x","region":"eu"}`, 501, "comes with a later version"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			status, body := rt.call("PUT", "/_shard/nodes/"+c.path, c.body)
			if status != c.status || !strings.Contains(body, c.says) {
				t.Errorf("answers %d %s, want %d ... %s", status, body, c.status, c.says)
			}
		})
	}
	want := fmt.Sprintf(`[{"name":"n1","addr":"http://%s","tenants":0,"replicas":0,"disk_bytes":0}]`, n.addr())
	if got := rt.must("GET", "/_shard/nodes", "", 200); got != want {
		t.Errorf("the list is %s, want %s", got, want)
	}
}

func TestANodeIsRemovedOnlyIfItHoldsNothing(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 2)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	if body := rt.must("DELETE", "/_shard/nodes/n1", "", 409); !strings.Contains(body, "holds 1 tenant:") {
		t.Errorf("says %s", body)
	}
	rt.must("DELETE", "/_shard/nodes/n3", "", 404)
	rt.must("DELETE", "/_shard/nodes/n2", "", 204)
	rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 404)
	rt.record(nodes[1])
	rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 200)
	rt.must("DELETE", "/_shard/nodes/n1", "", 204)
}

func TestPlacement(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 3)
	nodes[0].disk, nodes[1].disk, nodes[2].disk = 1000, 500, 900
	if got := rt.must("PUT", "/_shard/tenants/a", "", 201); got != `{"tenant":"a","node":"n2"}` {
		t.Errorf("the emptiest node is n2, got %s", got)
	}
	if got := rt.must("PUT", "/_shard/tenants/b", `{"node":"n1"}`, 201); got != `{"tenant":"b","node":"n1"}` {
		t.Errorf("the node is named, got %s", got)
	}
	nodes[1].server.Close()
	if got := rt.must("PUT", "/_shard/tenants/c", "{}", 201); got != `{"tenant":"c","node":"n3"}` {
		t.Errorf("the emptiest node that answers is n3, got %s", got)
	}
	nodes[0].disk, nodes[2].disk = 0, 0 // n1 and n3 have a tenant each: the name decides
	if got := rt.must("PUT", "/_shard/tenants/d", "{}", 201); got != `{"tenant":"d","node":"n1"}` {
		t.Errorf("of equals the first is n1, got %s", got)
	}
	cases := []struct {
		name, path, body string
		status           int
	}{
		{"taken", "a", "", 409},
		{"an unknown node", "x", `{"node":"n9"}`, 404},
		{"a bad name", "X", "", 400},
		{"a name too long", strings.Repeat("x", 65), "", 400},
		{"an unknown member", "x", `{"at":"n1"}`, 400},
		{"a dead node", "x", `{"node":"n2"}`, 502},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { rt.must("PUT", "/_shard/tenants/"+c.path, c.body, c.status) })
	}
	want := map[string]string{"a": "n2 active", "b": "n1 active", "c": "n3 active", "d": "n1 active"}
	if diff := cmp.Diff(want, rt.tenants()); diff != "" {
		t.Error(diff)
	}
	if got := rt.must("GET", "/_shard/tenants/b", "", 200); got != `{"name":"b","node":"n1","state":"active"}` {
		t.Errorf("got %s", got)
	}
	rt.must("GET", "/_shard/tenants/x", "", 404)
}

func TestNoNodeToPlaceOn(t *testing.T) {
	rt := start(t, Config{})
	if body := rt.must("PUT", "/_shard/tenants/a", "", 409); !strings.Contains(body, "record one with PUT /_shard/nodes/") {
		t.Errorf("says %s", body)
	}
}

func TestAnUnknownFileIsNotTakenOver(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 1)
	nodes[0].give("acme", &fakeTenant{Values: []string{"precious"}})
	if body := rt.must("PUT", "/_shard/tenants/acme", "", 409); !strings.Contains(body, "the directory does not know") {
		t.Errorf("says %s", body)
	}
	eventually(t, "no repair is pending", func() bool { return rt.repairer.pending() == 0 })
	if got := nodes[0].copyOf("acme"); got == nil || len(got.Values) != 1 {
		t.Fatal("the file is gone")
	}
	nodes[0].give("acme", &fakeTenant{}) // a file that was never written to may be replaced
	rt.must("PUT", "/_shard/tenants/acme", "", 201)
}

func TestDelete(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 1)
	rt.must("PUT", "/_shard/tenants/acme", "", 201)
	rt.must("DELETE", "/_shard/tenants/acme", "", 204)
	if nodes[0].copyOf("acme") != nil {
		t.Error("the file is still there")
	}
	rt.must("DELETE", "/_shard/tenants/acme", "", 404)
	rt.must("GET", "/t/acme/c", "", 404)
	rt.must("PUT", "/_shard/tenants/acme", "", 201)
	nodes[0].server.Close()
	rt.must("DELETE", "/_shard/tenants/acme", "", 502)
	if rt.tenants()["acme"] != "n1 active" {
		t.Error("a tenant that could not be deleted is gone from the directory")
	}
}

func TestTheTokenGuardsTheShard(t *testing.T) {
	rt := start(t, Config{Token: "s3cret"})
	for _, path := range []string{"/_shard/nodes", "/_shard/tenants", "/_shard/tenants/x", "/_metrics"} {
		for _, token := range []string{"", "s3cre", "s3cret1"} {
			status, body, err := ask(rt.addr, "GET", path, "", token)
			if err != nil || status != 401 {
				t.Errorf("GET %s with %q answers %d %s %v", path, token, status, body, err)
			}
		}
	}
	if got := raw(t, rt.addr, "GET /_shard/nodes HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Basic s3cret\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 401 ") {
		t.Errorf("answered %q", got)
	}
	if got := raw(t, rt.addr, "GET /_shard/nodes HTTP/1.1\r\nHost: x\r\nConnection: close\r\nauthorization: bearer  s3cret\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("answered %q", got)
	}
	rt.must("GET", "/_shard/nodes", "", 200)
	if status, _, err := ask(rt.addr, "GET", "/_health", "", ""); err != nil || status != 200 {
		t.Errorf("health wants no token: %d %v", status, err)
	}
}

func TestRoutesOfLaterVersionsAreRefusedByName(t *testing.T) {
	rt, _ := cluster(t, Config{}, 1)
	rt.must("PUT", "/_shard/tenants/acme", "", 201)
	for _, route := range []string{
		"PUT /_shard/tenants/acme/quota",
		"GET /_shard/tenants/acme/quota", "GET /_shard/tenants/acme/usage", "POST /_replication/promote", "GET /_replication/status",
	} {
		method, path, _ := strings.Cut(route, " ")
		if body := rt.must(method, path, "", 501); !strings.Contains(body, "comes with a later version") {
			t.Errorf("%s says %s", route, body)
		}
	}
}

func TestAWrongMethodIsAnsweredWithTheAllowedOnes(t *testing.T) {
	rt := start(t, Config{})
	for path, allow := range map[string]string{
		"/_shard/nodes": "GET, HEAD, OPTIONS", "/_shard/tenants": "GET, HEAD, OPTIONS", "/_health": "GET, HEAD, OPTIONS",
		"/_shard/nodes/n1": "PUT, DELETE, OPTIONS", "/_shard/tenants/a": "GET, HEAD, PUT, DELETE, OPTIONS",
		"/_shard/tenants/a/move": "POST, OPTIONS", "/_shard/nodes/n1/drain": "POST, OPTIONS",
	} {
		for method, status := range map[string]string{"PATCH": "405", "OPTIONS": "204"} {
			got := raw(t, rt.addr, method+" "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if !strings.HasPrefix(got, "HTTP/1.1 "+status+" ") || !strings.Contains(got, "\r\nAllow: "+allow+"\r\n") {
				t.Errorf("%s %s is answered %q", method, path, got)
			}
		}
	}
	rt.must("GET", "/_shard/elsewhere", "", 404)
}

func TestTheDirectorySurvivesARestart(t *testing.T) {
	fs := crashfs.New(1)
	rt, nodes := cluster(t, Config{FS: fs}, 2)
	for i := range 20 {
		rt.must("PUT", fmt.Sprintf("/_shard/tenants/t%d", i), `{"node":"n1"}`, 201)
	}
	rt.must("DELETE", "/_shard/tenants/t3", "", 204)
	rt.must("POST", "/_shard/tenants/t4/move", `{"to":"n2"}`, 200)
	want, before := rt.tenants(), rt.must("GET", "/_shard/nodes", "", 200)
	rt.stop()
	again := start(t, Config{FS: fs})
	if diff := cmp.Diff(want, again.tenants()); diff != "" {
		t.Error(diff)
	}
	if got := again.must("GET", "/_shard/nodes", "", 200); got != before {
		t.Errorf("the nodes are %s, were %s", got, before)
	}
	again.must("POST", "/t/t4/c", "x", 200)
	if len(nodes[1].copyOf("t4").Values) != 1 {
		t.Error("the write went elsewhere")
	}
}

func TestTwoRoutersDoNotShareADirectory(t *testing.T) {
	fs := crashfs.New(1)
	start(t, Config{FS: fs})
	if _, err := New(Config{FS: fs, Directory: "shard.fenec"}); err == nil || !strings.Contains(err.Error(), "shard.fenec is in use by another router") {
		t.Errorf("the second one says %v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	cases := []struct {
		name, listen string
		config       Config
		says         string
	}{
		{"fine", "127.0.0.1:8090", Config{Directory: "d"}, ""},
		{"fine by name", "localhost:8090", Config{Directory: "d"}, ""},
		{"fine on IPv6", "[::1]:8090", Config{Directory: "d"}, ""},
		{"beyond loopback with a token", "0.0.0.0:8090", Config{Directory: "d", Token: "t"}, ""},
		{"beyond loopback on one's own risk", ":8090", Config{Directory: "d", Insecure: true}, ""},
		{"beyond loopback", "0.0.0.0:8090", Config{Directory: "d"}, "--token"},
		{"everywhere", ":8090", Config{Directory: "d"}, "--token"},
		{"no directory", "127.0.0.1:8090", Config{}, "--directory"},
		{"no address", "8090", Config{Directory: "d"}, "--listen"},
		{"a certificate without a key", "127.0.0.1:8090", Config{Directory: "d", TLSCert: "c"}, "--tls-key"},
		{"a negative time", "127.0.0.1:8090", Config{Directory: "d", UpstreamTimeout: -1}, "--upstream-timeout"},
		{"a negative idle time", "127.0.0.1:8090", Config{Directory: "d", IdleTimeout: -1}, "--idle-timeout"},
		{"a negative number", "127.0.0.1:8090", Config{Directory: "d", MaxConnections: -1}, "--max-connections"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := c.config.Validate(c.listen)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("says %v", err)
			}
		})
	}
}
