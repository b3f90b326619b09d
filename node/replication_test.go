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

// startReplicating is start of a node that takes part in replication.
func startReplicating(t testing.TB, c Config) *running {
	t.Helper()
	c.ReplicationToken = replicationToken
	if !c.Sync.Always && c.Sync.Every == 0 {
		c.Sync = wal.Policy{Always: true}
	}
	return start(t, c)
}

// admin sends a request to /_admin/tenants/<path> and returns the answer's fields.
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

func (r *running) follow(tenant string, of *running) {
	r.t.Helper()
	r.manage(200, "POST", tenant+"/follow", fmt.Sprintf(`{"from": %q}`, of.url))
}

// caughtUp waits until a copy has what its primary has.
func (r *running) caughtUp(tenant string, primary *running) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		here, there := r.manage(200, "GET", tenant+"/position", ""), primary.manage(200, "GET", tenant+"/position", "")
		if here["seq"] == there["seq"] && here["history"] == there["history"] && here["caught_up"] == true {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the copy is at %v and its primary at %v", here, there)
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

func TestACopyAnswersReadsAndRefusesWrites(t *testing.T) {
	one, two := replicated(t)
	one.exec("acme", `put c {n: 2}`)
	two.caughtUp("acme", one)
	if got := two.do("GET", "/t/acme/c", ""); got.body != `[{"id":1,"n":1},{"id":2,"n":2}]` {
		t.Errorf("the copy answers %d %s", got.status, got.body)
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
			t.Errorf("%s %s: %d %s with Fenec-Tenant %q", write[0], write[1], got.status, got.body, got.header.Get("Fenec-Tenant"))
		}
	}
	marked := two.do("POST", "/t/acme/c", `{"n": 3}`, "Fenec-Read", "replica")
	if marked.status != 403 || marked.header.Get("Fenec-Tenant") != "" {
		t.Errorf("a marked write: %d %s with Fenec-Tenant %q, want 403 without it", marked.status, marked.body, marked.header.Get("Fenec-Tenant"))
	}
	if got := two.manage(409, "POST", "acme/freeze", ""); !strings.Contains(fmt.Sprint(got["error"]), "freeze that one") {
		t.Errorf("a freeze of a copy: %v", got)
	}
	position := two.manage(200, "GET", "acme/position", "")
	for field, want := range map[string]any{
		"role": "replica", "writable": false, "frozen": false, "from": one.url, "connected": true, "behind": 0.0, "images": 1.0, "error": nil,
	} {
		if position[field] != want {
			t.Errorf("%s of the copy's position is %v, want %v", field, position[field], want)
		}
	}
	if primary := one.manage(200, "GET", "acme/position", ""); primary["role"] != "primary" || primary["writable"] != true || len(primary["replicas"].([]any)) != 1 {
		t.Errorf("the primary's position is %v", primary)
	}
}

func TestAReadOfACopyWaitsForAPosition(t *testing.T) {
	one, two := replicated(t)
	wrote := one.do("POST", "/t/acme/c", `{"n": 7}`)
	got := two.do("GET", "/t/acme/c?n=7&select=n", "", "Fenec-Read", "replica",
		"Fenec-After", wrote.header.Get("Fenec-Seq"), "Fenec-History", wrote.header.Get("Fenec-History"))
	if got.status != 200 || got.body != `[{"n":7}]` {
		t.Errorf("a read after the write: %d %s", got.status, got.body)
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
		t.Errorf("after the restart the copy took %v images, want none", got["images"])
	}
	if got := two.do("POST", "/t/acme/c", `{"n": 2}`); got.status != 403 {
		t.Errorf("a write after the restart: %d %s", got.status, got.body)
	}
	two.manage(200, "POST", "acme/promote", "")
	two.exec("acme", `put c {n: 2}`)
	two.stop()
	two = startReplicating(t, Config{Dir: "/data", FS: fs, ReplicaOf: one.url})
	two.exec("acme", `put c {n: 3}`) // a primary's file stays a primary, whatever the node restarts with
	if got := two.manage(200, "GET", "acme/position", ""); got["role"] != "primary" {
		t.Errorf("after the restart the promoted copy is %v", got)
	}
}

func TestAPromotionNeedsACopyThatHasCaughtUp(t *testing.T) {
	gone := startReplicating(t, Config{})
	gone.stop()
	two := startReplicating(t, Config{})
	if got := two.manage(200, "POST", "acme/follow", fmt.Sprintf(`{"from": %q}`, gone.url)); got["following"] != true || got["connected"] != false {
		t.Errorf("following a node that is gone: %v", got)
	}
	if got := two.do("GET", "/t/acme/c", ""); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("a read of a copy that never caught up: %d %s", got.status, got.body)
	}
	if got := two.manage(409, "POST", "acme/promote", ""); !strings.Contains(fmt.Sprint(got["error"]), "never caught up") {
		t.Errorf("promoting a copy that never caught up: %v", got)
	}
	if got := two.manage(200, "GET", "acme/position", ""); got["role"] != "replica" || got["from"] != gone.url || got["behind"] != nil {
		t.Errorf("after the refused promotion: %v", got)
	}
	if got := two.manage(200, "POST", "acme/promote", `{"force": true}`); got["promoted"] != true {
		t.Errorf("by force: %v", got)
	}
	two.exec("acme", `create collection c (n int)`)
}

func TestAFailoverLosesNothingAndKeepsTheTailOfTheOldPrimary(t *testing.T) {
	one, two := replicated(t)
	one.exec("acme", `put c {n: 2}`) // acknowledged: the copy has been handed it
	two.caughtUp("acme", one)
	promoted := two.manage(200, "POST", "acme/promote", "")
	again := two.manage(200, "POST", "acme/promote", "")
	if promoted["promoted"] != true || again["promoted"] != false || again["history"] != promoted["history"] || again["seq"] != promoted["seq"] {
		t.Errorf("promoted: %v, and again: %v", promoted, again)
	}
	two.exec("acme", `put c {n: 3}`)
	one.exec("acme", `put c {n: 99}`) // by a client that does not know yet
	one.follow("acme", two)
	one.caughtUp("acme", two)
	if got := one.do("GET", "/t/acme/c?select=n", ""); got.body != `[{"n":1},{"n":2},{"n":3}]` {
		t.Errorf("the old primary answers %s", got.body)
	}
	forked := one.do("GET", "/_admin/tenants/acme/forked", "", "Authorization", "Bearer "+adminToken)
	var all []struct {
		History           string
		From, To, Changes uint64
		Bytes             int
	}
	if err := json.Unmarshal([]byte(forked.body), &all); err != nil || len(all) != 1 || all[0].From != 4 || all[0].To != 4 || all[0].Changes != 1 {
		t.Fatalf("the kept branches are %s, %v", forked.body, err)
	}
	lines := one.do("GET", "/_admin/tenants/acme/forked/"+all[0].History, "", "Authorization", "Bearer "+adminToken)
	if lines.status != 200 || !strings.Contains(lines.body, `"op":"put","id":3,"doc":{"id":3,"n":99}`) || len(lines.body) != all[0].Bytes {
		t.Errorf("the branch is %d %s", lines.status, lines.body)
	}
	one.manage(404, "GET", "acme/forked/1-00", "")
	one.manage(204, "DELETE", "acme/forked/"+all[0].History, "")
	one.manage(404, "DELETE", "acme/forked/"+all[0].History, "")
	lineage := one.manage(200, "GET", "acme/lineage", "")
	if left := lineage["left"].([]any); len(left) != 1 || left[0].(map[string]any)["at"] != 3.0 || lineage["history"] == again["history"] && false {
		t.Errorf("the lineage is %v", lineage)
	}
}

func TestAFollowIsRefusedWithASentence(t *testing.T) {
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
		"another lineage":     {fmt.Sprintf(`{"from": %q}`, other.url), 409, "another tenant"},
		"a lineage not there": {fmt.Sprintf(`{"from": %q, "lineage": "0123456789abcdef"}`, one.url), 409, "expected 0123456789abcdef"},
		"itself":              {fmt.Sprintf(`{"from": %q}`, two.url), 409, "this node"},
		"a wrong token":       {fmt.Sprintf(`{"from": %q}`, wrong.url), 502, "refuses the replication token"},
		"no replication":      {fmt.Sprintf(`{"from": %q}`, without.url), 409, "404"},
		"no address":          {`{"from": "n1"}`, 400, "expected http://host:port"},
		"no lineage":          {`{"from": "http://127.0.0.1:1", "lineage": "x"}`, 400, "16 hexadecimal digits"},
		"nobody":              {``, 409, "--replica-of"},
		"no object":           {`[]`, 400, "expected an object"},
		"an unknown field":    {`{"form": "x"}`, 400, "expected an object"},
	} {
		if got := two.manage(tc.status, "POST", "acme/follow", tc.body); !strings.Contains(fmt.Sprint(got["error"]), tc.want) {
			t.Errorf("%s: %v, want %q", name, got["error"], tc.want)
		}
		after := two.manage(200, "GET", "acme/position", "")
		if after["from"] != before["from"] || after["role"] != "replica" {
			t.Errorf("%s: the position is %v, before it was %v", name, after, before)
		}
	}
	one.exec("acme", `put c {n: 5}`)
	two.caughtUp("acme", one)
	// A primary is refused too, and goes on.
	if got := one.manage(409, "POST", "acme/follow", fmt.Sprintf(`{"from": %q}`, two.url)); !strings.Contains(fmt.Sprint(got["error"]), "this node or follows it") {
		t.Errorf("a ring: %v", got)
	}
	one.exec("acme", `put c {n: 6}`)
	without.manage(409, "POST", "acme/follow", fmt.Sprintf(`{"from": %q}`, one.url))
}

func TestADeletedPrimaryLeavesItsCopy(t *testing.T) {
	one, two := replicated(t)
	one.manage(204, "DELETE", "acme", "")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		p := two.manage(200, "GET", "acme/position", "")
		if p["connected"] == false && strings.Contains(fmt.Sprint(p["error"]), "no tenant acme here") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the copy of a deleted tenant is at %v", p)
		}
	}
	if got := two.do("GET", "/t/acme/c", ""); got.body != `[{"id":1,"n":1}]` {
		t.Errorf("the copy answers %d %s", got.status, got.body)
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

func TestReplicationDoesNotExistWithoutItsToken(t *testing.T) {
	with, without := startReplicating(t, Config{}), start(t, Config{})
	for _, r := range []*running{with, without} {
		r.manage(201, "PUT", "acme", "")
	}
	for _, path := range []string{"/_replication", "/t/acme/_replication", "/t/acme/_replication/status", "/t/nosuch/_replication"} {
		if got := without.do("GET", path, ""); got.status != 404 {
			t.Errorf("%s of a node without a token: %d %s", path, got.status, got.body)
		}
		if got := with.do("GET", path, ""); got.status != 401 {
			t.Errorf("%s without the token: %d %s", path, got.status, got.body)
		}
	}
	authorized := []string{"Authorization", "Bearer " + replicationToken}
	for path, want := range map[string]int{
		"/_replication": 426, "/_replication/x": 404, "/t/acme/_replication/status": 200, "/t/acme/_replication/x": 404,
		"/t/acme/_replication?since=x": 400, "/t/acme/_replication?history=x": 400, "/t/acme/_replication?image=2": 400, "/t/acme/_replication?x=1": 400,
		"/t/acme/_replication?since=9": 409, "/t/nosuch/_replication?since=0": 404,
	} {
		if got := with.do("GET", path, "", authorized...); got.status != want {
			t.Errorf("%s: %d %s, want %d", path, got.status, got.body, want)
		}
	}
	if got := with.do("POST", "/t/acme/_replication/promote", "", authorized...); got.status != 200 || !strings.Contains(got.body, `"promoted":false`) {
		t.Errorf("a promotion under the replication token: %d %s", got.status, got.body)
	}
}

// A tool reads the frames of one tenant without a connection of a follower.
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
		t.Fatalf("the answer is %+v, %v", res, err)
	}
	buf := make([]byte, 4096)
	seen := ""
	for !strings.Contains(seen, "marker") {
		if !strings.Contains(seen, "c") {
			one.exec("acme", `create collection marker (n int)`)
		}
		n, err := res.Body.Read(buf)
		if err != nil {
			t.Fatalf("after %q: %v", seen, err)
		}
		seen += string(buf[:n])
	}
}
