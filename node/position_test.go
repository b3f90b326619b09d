package node

import (
	"os"
	"strings"
	"testing"

	"fenec/engine"
	"fenec/engine/wal"
	"fenec/internal/vfs"
)

func TestAReadWaitsForItsPosition(t *testing.T) {
	r := start(t, Config{Sync: wal.Policy{Always: true}})
	r.fill("x", 0)
	r.query("x", "create collection v (e vector<2>)")
	r.query("x", "put v {e: [1, 0.5]}") // change 3
	history := r.want(201, "POST", "/t/x/c", `{"n": 3}`).header.Get("Fenec-History")
	reads := []struct{ method, path, body string }{
		{"GET", "/t/x/c?count", ""},
		{"GET", "/t/x/", ""},
		{"GET", "/t/x/collections", ""},
		{"GET", "/t/x/_schema", ""},
		{"GET", "/t/x/_schema?as=fenecql", ""},
		{"GET", "/t/x/_stats/statements", ""},
		{"GET", "/t/x/_changes?since=0", ""},
		{"GET", "/t/x/_changes/consumers", ""},
		{"POST", "/t/x/query", `{"query": "get c count"}`},
		{"POST", "/t/x/query", `{"query": "explain get c"}`},
		{"POST", "/t/x/v/near", `{"vector": [1, 0]}`},
		{"POST", "/t/x/batch", `{"query": "get c count"}` + "\n" + `{"query": "collections"}`},
	}
	for _, read := range reads {
		for _, headers := range [][]string{{"Fenec-After", "4"}, {"Fenec-After", "4", "Fenec-History", history}, {"Fenec-After", "0"}} {
			r.want(200, read.method, read.path, read.body, headers...)
		}
		got := r.want(504, read.method, read.path, read.body, "Fenec-After", "5", "Fenec-Wait", "1")
		if got.header.Get("Fenec-Seq") != "4" || got.header.Get("Fenec-History") != history || !strings.Contains(got.body, "is at change 4 of history "+history) {
			t.Errorf("%s %s lacks the tenant's position: %v %s", read.method, read.path, got.header, got.body)
		}
		marked := r.want(200, read.method, read.path, read.body, "Fenec-Read", "replica")
		if marked.header.Get("Fenec-Seq") != "4" || marked.header.Get("Fenec-History") != history {
			t.Errorf("%s %s with Fenec-Read: replica lacks the tenant's position: %v", read.method, read.path, marked.header)
		}
		plain := r.want(200, read.method, read.path, read.body)
		if marked.header.Get("Content-Type") != plain.header.Get("Content-Type") || marked.body != plain.body && !strings.Contains(read.path, "stats") {
			t.Errorf("%s %s with Fenec-Read: replica: got %v %s, expected the response without it", read.method, read.path, marked.header, marked.body)
		}
	}
	one := r.held("GET", "/t/x/c?count", "", "Fenec-After", "5", "Fenec-History", history)
	two := r.held("POST", "/t/x/batch", `{"query": "get c count"}`, "Fenec-After", "6", "fenec-wait", "20s")
	r.insert("x", 4, 2)
	if got := r.answered(one); got.status != 200 || got.body != `{"count":3}` {
		t.Errorf("got %d %s for a read that waited, expected 3 documents", got.status, got.body)
	}
	if got := r.answered(two); got.status != 200 || !strings.Contains(got.body, `"count":3`) {
		t.Errorf("got %d %s for a batch that waited, expected 3 documents", got.status, got.body)
	}
}

func TestPositionHeadersAreValidated(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 2)
	const unheard = "7-000102030405060708090a0b0c0d0e0f"
	for _, tc := range []struct {
		status  int
		headers []string
	}{
		{400, []string{"Fenec-After", "-1"}},
		{400, []string{"Fenec-After", "x"}},
		{400, []string{"Fenec-After", ""}},
		{400, []string{"Fenec-After", "+1"}},
		{400, []string{"Fenec-After", "1", "Fenec-Wait", "x"}},
		{400, []string{"Fenec-After", "1", "Fenec-Wait", "-1"}},
		{400, []string{"Fenec-After", "1", "Fenec-Wait", ""}},
		{400, []string{"Fenec-After", "1", "Fenec-History", "x"}},
		{400, []string{"Fenec-After", "1", "Fenec-History", "0-000102030405060708090a0b0c0d0e0f"}},
		{400, []string{"Fenec-After", "1", "Fenec-History", "+1-000102030405060708090a0b0c0d0e0f"}},
		{400, []string{"Fenec-After", "1", "Fenec-History", unheard + "0"}},
		{400, []string{"Fenec-Read", "primary"}},
		{400, []string{"Fenec-Read", ""}},
		{504, []string{"Fenec-After", "1", "Fenec-History", unheard}}, // at once: of another lineage
		{504, []string{"Fenec-After", "0", "Fenec-History", unheard}},
		{200, []string{"Fenec-After", "1", "Fenec-Wait", "99999999999999999999"}},
		{200, []string{"Fenec-Wait", "30000"}}, // a read that waits for nothing
		{200, []string{"Fenec-Wait", "1m"}},
	} {
		if got := r.want(tc.status, "GET", "/t/x/c", "", tc.headers...); tc.status == 504 && !strings.Contains(got.body, "branch") {
			t.Errorf("%q: got %s, expected a refusal that names the branch", tc.headers, got.body)
		}
		if tc.status != 504 {
			r.want(tc.status, "POST", "/t/x/query", `{"query": "get c"}`, tc.headers...)
		}
	}
	req := "GET /t/x/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\nFenec-After: 1\r\nFenec-After: 1\r\n\r\n"
	_, in := r.raw(req)
	if got, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(got, "HTTP/1.1 400 ") {
		t.Errorf("got %s, %v for a header given twice, expected status 400", got, err)
	}
}

func TestARequestMarkedAsAReadWritesNothing(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 2)
	before := r.want(200, "GET", "/t/x/c", "").body
	for _, w := range []struct{ method, path, body string }{
		{"POST", "/c", `{"n": 1}`},
		{"PATCH", "/c?n=1", `{"n": 2}`},
		{"DELETE", "/c/all", ""},
		{"POST", "/query", `{"query": "put c {n: 1}"}`},
		{"POST", "/query", `{"query": "compact"}`},
		{"POST", "/query", `{"query": "create collection d (n int)"}`},
		{"POST", "/batch", `{"query": "get c"}` + "\n" + `{"query": "del c"}`},
		{"POST", "/_changes/consumers/k", ""},
		{"DELETE", "/_changes/consumers/k", ""},
		{"DELETE", "/_stats/statements", ""},
	} {
		r.want(403, w.method, "/t/x"+w.path, w.body, "Fenec-Read", "replica")
		r.want(400, w.method, "/t/x"+w.path, w.body, "Fenec-Read", "yes")
	}
	if got := r.want(403, "POST", "/t/x/batch", `{"query": "get c"}`+"\n"+`{"query": "del c"}`, "Fenec-Read", "replica"); !strings.HasSuffix(got.body, `"completed":0,"at":1}`) ||
		!strings.Contains(got.body, "the request is marked Fenec-Read: replica and would write") {
		t.Errorf("got %s for a batch, expected the index of the statement that writes", got.body)
	}
	if got := r.want(200, "GET", "/t/x/c", "").body; got != before {
		t.Errorf("got the documents %s, expected %s", got, before)
	}
	r.want(200, "POST", "/t/x/query", `{"query": "put c {n: 1}"}`, "Fenec-After", "99", "Fenec-Wait", "30000")       // a put does not wait
	r.want(200, "POST", "/t/x/query", `{"query": "del c where n = 77"}`, "Fenec-After", "99", "Fenec-Wait", "30000") // nor does a delete
}

// A file that was saved without a damaged record is a new branch. A read after a lost change is refused.
func TestAPositionOnAnAbandonedBranchIsRefused(t *testing.T) {
	dir := t.TempDir()
	r := start(t, Config{Dir: dir, Sync: wal.Policy{Always: true}})
	r.fill("x", 1) // changes 1 and 2
	before := r.query("x", "put c {s: 'is lost'}")
	history := r.want(201, "POST", "/t/x/c", `{"s": "after it"}`).header.Get("Fenec-History")
	r.stop()
	text, err := os.ReadFile(dir + "/x.fenec")
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(text), "is lost")
	if at < 0 {
		t.Fatalf("%q is not in the file", before)
	}
	text[at] ^= 1
	if err := os.WriteFile(dir+"/x.fenec", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Check(vfs.OS, dir+"/x.fenec", dir+"/y.fenec"); err != nil {
		t.Fatal(err)
	}
	r = start(t, Config{Dir: dir, Sync: wal.Policy{Always: true}})
	r.want(200, "GET", "/t/y/c", "", "Fenec-After", "2", "Fenec-History", history)
	got := r.want(504, "GET", "/t/y/c", "", "Fenec-After", "3", "Fenec-History", history)
	if !strings.Contains(got.body, "is of a branch that this copy is not on") {
		t.Errorf("got %s, expected a refusal that names the branch", got.body)
	}
	now := got.header.Get("Fenec-History")
	if got.header.Get("Fenec-Seq") != "4" || !strings.HasPrefix(now, "2-"+history[2:18]) || now[2:] == history[2:] {
		t.Errorf("got the position %v of a file saved from %s, expected change 4 of a branch of it", got.header, history)
	}
	r.want(200, "GET", "/t/y/c", "", "Fenec-After", "4", "Fenec-History", now)
	r.want(409, "GET", "/t/y/_changes?since=4", "", "Fenec-History", history)
	r.want(200, "GET", "/t/y/_changes?since=4", "", "Fenec-History", now)
	later := "3" + now[1:len(now)-1] + "0"
	r.want(504, "GET", "/t/y/c", "", "Fenec-After", "1", "Fenec-History", later, "Fenec-Wait", "1") // this history may still arrive
	r.query("y", "compact")
	r.closeIdle("y")
	r.want(504, "GET", "/t/y/c", "", "Fenec-After", "3", "Fenec-History", history)
	r.want(200, "GET", "/t/y/c", "", "Fenec-After", "2", "Fenec-History", history)
}
