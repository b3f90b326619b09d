package node

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"
)

const replicationToken = "the-replication-token"

// startReplicating starts a node with a replication token, which syncs every write by default.
func startReplicating(t testing.TB, c Config) *running {
	t.Helper()
	c.ReplicationToken = replicationToken
	if !c.Sync.Always && c.Sync.Every == 0 {
		c.Sync = wal.Policy{Always: true}
	}
	return start(t, c)
}

// manage sends a request to /_admin/tenants/<path>, checks the status and returns the fields of the response.
func (r *running) manage(want int, method, path, body string) map[string]any {
	r.t.Helper()
	got := r.wantAdmin(want, method, "tenants/"+path, body)
	fields := map[string]any{}
	if strings.HasPrefix(got.body, "{") {
		if err := json.Unmarshal([]byte(got.body), &fields); err != nil {
			r.t.Fatal(err)
		}
	}
	return fields
}

// follow makes a tenant follow the tenant of the same name on another node.
func (r *running) follow(tenant string, of *running) {
	r.t.Helper()
	r.manage(200, "POST", tenant+"/follow", fmt.Sprintf(`{"from": %q}`, of.url))
}

// caughtUp waits until a copy is at the position of its primary.
func (r *running) caughtUp(tenant string, primary *running) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		here, there := r.manage(200, "GET", tenant+"/position", ""), primary.manage(200, "GET", tenant+"/position", "")
		if here["seq"] == there["seq"] && here["history"] == there["history"] && here["caught_up"] == true {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("got the copy at %v and its primary at %v, expected the same position", here, there)
		}
	}
}

// replicated returns a primary of the tenant acme and a node with a copy that has caught up.
func replicated(t *testing.T) (one, two *running) {
	t.Helper()
	one, two = startReplicating(t, Config{}), startReplicating(t, Config{})
	one.manage(201, "PUT", "acme", "")
	one.exec("acme", `create collection c (n int)`)
	one.exec("acme", `put c {n: 1}`)
	two.follow("acme", one)
	two.caughtUp("acme", one)
	return one, two
}

func TestACopyServesReadsAndRefusesWrites(t *testing.T) {
	one, two := replicated(t)
	one.exec("acme", `put c {n: 2}`)
	two.caughtUp("acme", one)
	if got := two.do("GET", "/t/acme/c", ""); got.body != `[{"id":1,"n":1},{"id":2,"n":2}]` {
		t.Errorf("got %d %s from the copy, expected the rows of its primary", got.status, got.body)
	}
	for _, write := range [][2]string{
		{"query", `{"query": "put c {n: 3}"}`},
		{"query", `{"query": "compact"}`},
		{"query", `{"query": "create collection d (n int)"}`},
		{"batch", `{"query": "del c"}`},
		{"c", `{"n": 3}`},
		{"_changes/consumers/k", `{"since": 1}`},
	} {
		got := two.do("POST", "/t/acme/"+write[0], write[1])
		if got.status != 403 || got.header.Get("Fenec-Tenant") != "replica" {
			t.Errorf("%s %s: got %d %s with Fenec-Tenant %q, expected 403 with replica", write[0], write[1], got.status, got.body, got.header.Get("Fenec-Tenant"))
		}
	}
	marked := two.do("POST", "/t/acme/c", `{"n": 3}`, "Fenec-Read", "replica")
	if marked.status != 403 || marked.header.Get("Fenec-Tenant") != "" {
		t.Errorf("got %d %s with Fenec-Tenant %q for a write marked as a read, expected 403 without it", marked.status, marked.body, marked.header.Get("Fenec-Tenant"))
	}
	if got := two.manage(409, "POST", "acme/freeze", ""); !strings.Contains(fmt.Sprint(got["error"]), "freeze that one") {
		t.Errorf("got %v for a freeze of a copy, expected a refusal that names its primary", got)
	}
	position := two.manage(200, "GET", "acme/position", "")
	for field, want := range map[string]any{
		"role": "replica", "writable": false, "frozen": false, "from": one.url, "connected": true, "behind": 0.0, "images": 1.0, "error": nil,
	} {
		if position[field] != want {
			t.Errorf("got %s %v in the copy's position, expected %v", field, position[field], want)
		}
	}
	if primary := one.manage(200, "GET", "acme/position", ""); primary["role"] != "primary" || primary["writable"] != true || len(primary["replicas"].([]any)) != 1 {
		t.Errorf("got the position %v of the primary, expected a writable primary with one replica", primary)
	}
}

func TestAReadOfACopyWaitsForAPosition(t *testing.T) {
	one, two := replicated(t)
	wrote := one.do("POST", "/t/acme/c", `{"n": 7}`)
	got := two.do("GET", "/t/acme/c?n=7&select=n", "", "Fenec-Read", "replica",
		"Fenec-After", wrote.header.Get("Fenec-Seq"), "Fenec-History", wrote.header.Get("Fenec-History"))
	if got.status != 200 || got.body != `[{"n":7}]` {
		t.Errorf("got %d %s for a read after the write, expected its row", got.status, got.body)
	}
}

func TestARoleSurvivesARestart(t *testing.T) {
	one := startReplicating(t, Config{})
	fs := crashfs.New(1)
	two := startReplicating(t, Config{Dir: "/data", FS: fs})
	one.manage(201, "PUT", "acme", "")
	one.exec("acme", `create collection c (n int)`)
	two.follow("acme", one)
	two.caughtUp("acme", one)
	two.stop()
	one.exec("acme", `put c {n: 1}`)
	two = startReplicating(t, Config{Dir: "/data", FS: fs})
	two.caughtUp("acme", one)
	if got := two.manage(200, "GET", "acme/position", ""); got["images"] != 0.0 {
		t.Errorf("got %v images of the copy after the restart, expected 0", got["images"])
	}
	if got := two.do("POST", "/t/acme/c", `{"n": 2}`); got.status != 403 {
		t.Errorf("got %d %s for a write after the restart, expected 403", got.status, got.body)
	}
	two.manage(200, "POST", "acme/promote", "")
	two.exec("acme", `put c {n: 2}`)
	two.stop()
	two = startReplicating(t, Config{Dir: "/data", FS: fs, ReplicaOf: one.url})
	two.exec("acme", `put c {n: 3}`) // --replica-of does not change the role of an existing tenant
	if got := two.manage(200, "GET", "acme/position", ""); got["role"] != "primary" {
		t.Errorf("got %v for the promoted copy after the restart, expected a primary", got)
	}
}

func TestAPromotionRequiresACopyThatHasCaughtUp(t *testing.T) {
	stopped := startReplicating(t, Config{})
	stopped.stop()
	two := startReplicating(t, Config{})
	if got := two.manage(200, "POST", "acme/follow", fmt.Sprintf(`{"from": %q}`, stopped.url)); got["following"] != true || got["connected"] != false {
		t.Errorf("got %v for a follow of a stopped node, expected it accepted and not connected", got)
	}
	if got := two.do("GET", "/t/acme/c", ""); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("got %d %s for a read of a copy that never caught up, expected 503 with Retry-After", got.status, got.body)
	}
	if got := two.manage(409, "POST", "acme/promote", ""); !strings.Contains(fmt.Sprint(got["error"]), "never caught up") {
		t.Errorf("got %v for the promotion of a copy that never caught up, expected a refusal", got)
	}
	if got := two.manage(200, "GET", "acme/position", ""); got["role"] != "replica" || got["from"] != stopped.url || got["behind"] != nil {
		t.Errorf("got the position %v after the refused promotion, expected a replica", got)
	}
	if got := two.manage(200, "POST", "acme/promote", `{"force": true}`); got["promoted"] != true {
		t.Errorf("got %v for a forced promotion, expected it done", got)
	}
	two.exec("acme", `create collection c (n int)`)
}

func TestAFailoverKeepsAcknowledgedWritesAndTheTailOfTheOldPrimary(t *testing.T) {
	one, two := replicated(t)
	one.exec("acme", `put c {n: 2}`) // acknowledged
	two.caughtUp("acme", one)
	promoted := two.manage(200, "POST", "acme/promote", "")
	again := two.manage(200, "POST", "acme/promote", "")
	if promoted["promoted"] != true || again["promoted"] != false || again["history"] != promoted["history"] || again["seq"] != promoted["seq"] {
		t.Errorf("got %v for the promotion and %v for a second one, expected no second promotion", promoted, again)
	}
	two.exec("acme", `put c {n: 3}`)
	one.exec("acme", `put c {n: 99}`) // by a client that does not know of the promotion
	one.follow("acme", two)
	one.caughtUp("acme", two)
	if got := one.do("GET", "/t/acme/c?select=n", ""); got.body != `[{"n":1},{"n":2},{"n":3}]` {
		t.Errorf("got %s from the old primary, expected the rows of the new one", got.body)
	}
	forked := one.do("GET", "/_admin/tenants/acme/forked", "", "Authorization", "Bearer "+adminToken)
	var all []struct {
		History           string
		From, To, Changes uint64
		Bytes             int
	}
	if err := json.Unmarshal([]byte(forked.body), &all); err != nil || len(all) != 1 || all[0].From != 4 || all[0].To != 4 || all[0].Changes != 1 {
		t.Fatalf("got the kept branches %s, %v, expected one of change 4", forked.body, err)
	}
	lines := one.do("GET", "/_admin/tenants/acme/forked/"+all[0].History, "", "Authorization", "Bearer "+adminToken)
	if lines.status != 200 || !strings.Contains(lines.body, `"op":"put","id":3,"doc":{"id":3,"n":99}`) || len(lines.body) != all[0].Bytes {
		t.Errorf("got %d %s for the branch, expected the lost put", lines.status, lines.body)
	}
	one.manage(404, "GET", "acme/forked/1-00", "")
	one.manage(204, "DELETE", "acme/forked/"+all[0].History, "")
	one.manage(404, "DELETE", "acme/forked/"+all[0].History, "")
	lineage := one.manage(200, "GET", "acme/lineage", "")
	if left := lineage["left"].([]any); len(left) != 1 || left[0].(map[string]any)["at"] != 3.0 {
		t.Errorf("got the lineage %v, expected one branch left at change 3", lineage)
	}
}

func TestAnInvalidFollowIsRefusedAndChangesNothing(t *testing.T) {
	one, two := replicated(t)
	other := startReplicating(t, Config{})
	other.manage(201, "PUT", "acme", "")
	other.exec("acme", `create collection c (n int)`)
	wrong := start(t, Config{ReplicationToken: "another-token", Sync: wal.Policy{Always: true}})
	without := start(t, Config{})
	before := two.manage(200, "GET", "acme/position", "")
	for name, tc := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"another lineage":       {fmt.Sprintf(`{"from": %q}`, other.url), 409, "another tenant"},
		"an unexpected lineage": {fmt.Sprintf(`{"from": %q, "lineage": "0123456789abcdef"}`, one.url), 409, "expected 0123456789abcdef"},
		"itself":                {fmt.Sprintf(`{"from": %q}`, two.url), 409, "this node"},
		"a wrong token":         {fmt.Sprintf(`{"from": %q}`, wrong.url), 502, "refuses the replication token"},
		"no replication":        {fmt.Sprintf(`{"from": %q}`, without.url), 409, "404"},
		"no address":            {`{"from": "n1"}`, 400, "expected http://host:port"},
		"no lineage":            {`{"from": "http://127.0.0.1:1", "lineage": "x"}`, 400, "16 hexadecimal digits"},
		"no primary":            {``, 409, "--replica-of"},
		"no object":             {`[]`, 400, "expected an object"},
		"an unknown field":      {`{"form": "x"}`, 400, "expected an object"},
	} {
		if got := two.manage(tc.status, "POST", "acme/follow", tc.body); !strings.Contains(fmt.Sprint(got["error"]), tc.want) {
			t.Errorf("%s: got %v, expected %q", name, got["error"], tc.want)
		}
		after := two.manage(200, "GET", "acme/position", "")
		if after["from"] != before["from"] || after["role"] != "replica" {
			t.Errorf("%s: got the position %v, expected %v", name, after, before)
		}
	}
	one.exec("acme", `put c {n: 5}`)
	two.caughtUp("acme", one)
	// A follow of a primary is refused too, and the primary still accepts writes.
	if got := one.manage(409, "POST", "acme/follow", fmt.Sprintf(`{"from": %q}`, two.url)); !strings.Contains(fmt.Sprint(got["error"]), "this node or follows it") {
		t.Errorf("got %v for a ring, expected a refusal", got)
	}
	one.exec("acme", `put c {n: 6}`)
	without.manage(409, "POST", "acme/follow", fmt.Sprintf(`{"from": %q}`, one.url))
}

func TestACopySurvivesTheDeleteOfItsPrimary(t *testing.T) {
	one, two := replicated(t)
	one.manage(204, "DELETE", "acme", "")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		p := two.manage(200, "GET", "acme/position", "")
		if p["connected"] == false && strings.Contains(fmt.Sprint(p["error"]), "no tenant acme here") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got the position %v of the copy, expected that its primary is absent", p)
		}
	}
	if got := two.do("GET", "/t/acme/c", ""); got.body != `[{"id":1,"n":1}]` {
		t.Errorf("got %d %s from the copy, expected the rows of its primary", got.status, got.body)
	}
	two.manage(204, "DELETE", "acme", "")
	two.manage(404, "GET", "acme/position", "")
}

func TestNewTenantsOfAStandbyFollowItsNode(t *testing.T) {
	one := startReplicating(t, Config{})
	two := startReplicating(t, Config{ReplicaOf: one.url})
	for _, r := range []*running{one, two} {
		r.manage(201, "PUT", "acme", "")
	}
	one.exec("acme", `create collection c (n int)`)
	two.caughtUp("acme", one)
	two.manage(200, "POST", "acme/promote", "")
	one.stop()
	two.exec("acme", `put c {n: 1}`)
}

func TestReplicationPathsRequireTheReplicationToken(t *testing.T) {
	with, without := startReplicating(t, Config{}), start(t, Config{})
	for _, r := range []*running{with, without} {
		r.manage(201, "PUT", "acme", "")
	}
	for _, path := range []string{"/_replication", "/t/acme/_replication", "/t/acme/_replication/status", "/t/nosuch/_replication"} {
		if got := without.do("GET", path, ""); got.status != 404 {
			t.Errorf("%s of a node without a token: got %d %s, expected 404", path, got.status, got.body)
		}
		if got := with.do("GET", path, ""); got.status != 401 {
			t.Errorf("%s without the token: got %d %s, expected 401", path, got.status, got.body)
		}
	}
	authorized := []string{"Authorization", "Bearer " + replicationToken}
	for path, want := range map[string]int{
		"/_replication": 426, "/_replication/x": 404, "/t/acme/_replication/status": 200, "/t/acme/_replication/x": 404,
		"/t/acme/_replication?since=x": 400, "/t/acme/_replication?history=x": 400, "/t/acme/_replication?image=2": 400, "/t/acme/_replication?x=1": 400,
		"/t/acme/_replication?since=9": 409, "/t/nosuch/_replication?since=0": 404,
	} {
		if got := with.do("GET", path, "", authorized...); got.status != want {
			t.Errorf("%s: got %d %s, expected %d", path, got.status, got.body, want)
		}
	}
	if got := with.do("POST", "/t/acme/_replication/promote", "", authorized...); got.status != 200 || !strings.Contains(got.body, `"promoted":false`) {
		t.Errorf("got %d %s for a promotion with the replication token, expected 200 and no change", got.status, got.body)
	}
}

// A tool can read the frames of one tenant without the connection of a follower.
func TestTheFeedOfATenantIsServedAsFrames(t *testing.T) {
	one := startReplicating(t, Config{})
	one.manage(201, "PUT", "acme", "")
	one.exec("acme", `create collection c (n int)`)
	conn, err := net.Dial("tcp", strings.TrimPrefix(one.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /t/acme/_replication?since=0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", replicationToken)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != 200 || res.Header.Get("Fenec-Seq") != "1" {
		t.Fatalf("got %+v, %v, expected 200 with Fenec-Seq 1", res, err)
	}
	buf := make([]byte, 4096)
	seen := ""
	for !strings.Contains(seen, "marker") {
		if !strings.Contains(seen, "c") {
			one.exec("acme", `create collection marker (n int)`)
		}
		n, err := res.Body.Read(buf)
		if err != nil {
			t.Fatalf("read %q, then got %v, expected the marker", seen, err)
		}
		seen += string(buf[:n])
	}
}
