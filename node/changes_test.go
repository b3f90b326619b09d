package node

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"
)

var whenLanded = regexp.MustCompile(`"at":\d+`)

// changes reads a page and returns its lines, without the times, and the cursor after it.
func (r *running) changes(tenant, query string) (lines []string, next string) {
	r.t.Helper()
	got := r.want(200, "GET", "/t/"+tenant+"/_changes?"+query, "")
	if kind := got.header.Get("Content-Type"); kind != "application/x-ndjson" {
		r.t.Errorf("got content type %q, want application/x-ndjson", kind)
	}
	if got.body != "" {
		lines = strings.Split(strings.TrimSuffix(whenLanded.ReplaceAllString(got.body, `"at":0`), "\n"), "\n")
	}
	return lines, got.header.Get("Fenec-Next")
}

// wantChanges checks the lines and the next cursor of a page of tenant x.
func (r *running) wantChanges(query, next string, want ...string) {
	r.t.Helper()
	lines, got := r.changes("x", query)
	if strings.Join(lines, "\n") != strings.Join(want, "\n") || got != next {
		r.t.Errorf("%s: got\n%s\nand cursor %s, want\n%s\nand cursor %s", query, strings.Join(lines, "\n"), got, strings.Join(want, "\n"), next)
	}
}

func TestEveryChangeIsALine(t *testing.T) {
	r := start(t, Config{Sync: wal.Policy{Always: true}})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.wantChanges("since=0", "0")
	r.query("x", `create collection c (n int, t text, j json)`)
	r.query("x", `put c {n: 1, t: 'a "quoted" one', j: {k: [1, 2.5]}}`)
	r.want(201, "POST", "/t/x/c", `[{"n": 2}, {"n": 3}]`, "Idempotency-Key", "k")
	r.query("x", `set c {n: 4} where id = 2`)
	r.query("x", `del c where id = 3`)
	r.query("x", `create index on c (n) @sorted`)
	r.query("x", `alter collection c rename field t to text`)
	r.query("x", `put c {text: 'b'}`)
	r.query("x", `drop collection c`)
	r.query("x", `create collection v (e vector<2, f16>, s sparse<9>)`)
	r.query("x", `put v {e: [1, 0.5], s: '{3:2}/9'}`)
	all := []string{
		`{"seq":1,"at":0,"collection":"c","op":"create"}`,
		`{"seq":2,"at":0,"collection":"c","op":"put","id":1,"doc":{"id":1,"n":1,"t":"a \"quoted\" one","j":{"k":[1,2.5]}}}`,
		`{"seq":3,"at":0,"collection":"c","op":"put","id":2,"doc":{"id":2,"n":2,"t":null,"j":null}}`,
		`{"seq":4,"at":0,"collection":"c","op":"put","id":3,"doc":{"id":3,"n":3,"t":null,"j":null}}`,
		`{"seq":7,"at":0,"collection":"c","op":"put","id":2,"doc":{"id":2,"n":4,"t":null,"j":null}}`,
		`{"seq":8,"at":0,"collection":"c","op":"del","id":3}`,
		`{"seq":9,"at":0,"collection":"c","op":"alter"}`,
		`{"seq":10,"at":0,"collection":"c","op":"alter"}`,
		`{"seq":11,"at":0,"collection":"c","op":"put","id":4,"doc":{"id":4,"n":null,"text":"b","j":null}}`,
		`{"seq":12,"at":0,"collection":"c","op":"drop"}`,
		`{"seq":13,"at":0,"collection":"v","op":"create"}`,
		`{"seq":14,"at":0,"collection":"v","op":"put","id":1,"doc":{"id":1,"e":[1,0.5],"s":"{3:2}/9"}}`,
	}
	r.wantChanges("since=0", "14", all...)
	r.wantChanges("since=2", "14", all[2:]...)
	r.wantChanges("since=3", "14", all[3:]...) // within a block
	r.wantChanges("since=4", "14", all[4:]...) // the rest of the block is the idempotency key's
	r.wantChanges("since=14", "14")
	r.wantChanges("", "14")
	r.wantChanges("since=0&limit=2", "2", all[:2]...)
	r.wantChanges("since=0&limit=3", "2", all[:2]...) // the block of two does not fit
	r.wantChanges("since=0&limit=4", "6", all[:4]...)
	r.wantChanges("since=2&limit=1", "3", all[2]) // a block larger than the limit is split
	r.wantChanges("since=3&limit=1", "6", all[3])
	r.closeIdle("x")
	r.wantChanges("since=0", "14", all...)
	got := r.want(200, "GET", "/t/x/_changes?since=1", "")
	if got.header.Get("Fenec-Seq") != "14" || got.header.Get("Fenec-History") == "" {
		t.Errorf("got headers %v, want the tenant's position", got.header)
	}
	var at int64
	if _, err := fmt.Sscanf(got.body, `{"seq":2,"at":%d,`, &at); err != nil || time.Since(time.UnixMilli(at)).Abs() > time.Minute {
		t.Errorf("time of the first change: got %d, %v, want the current time", at, err)
	}
	head := r.want(200, "HEAD", "/t/x/_changes?since=1", "")
	if head.body != "" || head.header.Get("Content-Length") != strconv.Itoa(len(got.body)) || head.header.Get("Fenec-Next") != "14" {
		t.Errorf("HEAD: got headers %v, want those of the GET", head.header)
	}
}

func TestInvalidRequestsForChangesAreRefused(t *testing.T) {
	r := start(t, Config{Sync: wal.Policy{Always: true}})
	r.fill("x", 3)
	other := r.want(201, "POST", "/t/x/c", `{}`).header.Get("Fenec-History")
	r.fill("y", 9)
	r.url += "/t/x"
	r.play([]step{
		{"a negative cursor", "GET", "/_changes?since=-1", "", 400, `{"error":"since: expected the number of a change, 0 or above, got \"-1\""}`},
		{"not a number", "GET", "/_changes?since=abc", "", 400, `{"error":...`},
		{"a fraction", "GET", "/_changes?since=1.5", "", 400, `{"error":...`},
		{"a sign", "GET", "/_changes?since=%2B1", "", 400, `{"error":...`},
		{"an empty cursor", "GET", "/_changes?since=", "", 400, `{"error":...`},
		{"a cursor past 64 bits", "GET", "/_changes?since=99999999999999999999", "", 400, `{"error":...`},
		{"a cursor after the last change", "GET", "/_changes?since=6", "", 409, `{"error":"change 6 has not happened here: the last one is 5"}`},
		{"the highest cursor", "GET", "/_changes?since=9223372036854775807", "", 409, `{"error":...`},
		{"a limit of 0", "GET", "/_changes?limit=0", "", 400, `{"error":"limit: expected a number from 1 to 10000, got \"0\""}`},
		{"a limit above the highest", "GET", "/_changes?limit=10001", "", 400, `{"error":...`},
		{"the highest limit", "GET", "/_changes?limit=10000", "", 200, ``},
		{"an invalid wait", "GET", "/_changes?wait=soon", "", 400, `{"error":"wait: expected milliseconds or a duration such as 5s, got \"soon\""}`},
		{"a negative wait", "GET", "/_changes?wait=-5", "", 400, `{"error":...`},
		{"a wait above the highest is reduced to it", "GET", "/_changes?since=0&wait=99999999999999999999999&limit=1", "", 200, `{"seq":1,...`},
		{"a key given twice", "GET", "/_changes?since=1&since=1", "", 400, `{"error":"since is given twice"}`},
		{"an unknown key", "GET", "/_changes?sinse=1", "", 400, `{"error":"\"sinse\" is no key of /_changes, which has since, limit, wait and consumer"}`},
		{"a cursor and a consumer", "GET", "/_changes?since=1&consumer=k", "", 400, `{"error":...`},
		{"an unknown consumer", "GET", "/_changes?consumer=k", "", 404, `{"error":"there is no consumer \"k\""}`},
		{"a bad escape", "GET", "/_changes?since=%zz", "", 400, `{"error":...`},
		{"a path below", "GET", "/_changes/nothing", "", 404, `{"error":...`},
		{"a path below a consumer", "POST", "/_changes/consumers/k/x", "", 404, `{"error":...`},
		{"a consumer's body that is not an object", "POST", "/_changes/consumers/k", `7`, 400, `{"error":"expected an object {\"since\": n}, n the number of a change, or no body"}`},
		{"a consumer's body with an unknown key", "POST", "/_changes/consumers/k", `{"at": 1}`, 400, `{"error":...`},
		{"a consumer's body with the key twice", "POST", "/_changes/consumers/k", `{"since": 1, "since": 1}`, 400, `{"error":...`},
		{"a consumer with a negative cursor", "POST", "/_changes/consumers/k", `{"since": -1}`, 400, `{"error":...`},
		{"a consumer with a text for a cursor", "POST", "/_changes/consumers/k", `{"since": "1"}`, 400, `{"error":...`},
		{"a consumer with null for a cursor", "POST", "/_changes/consumers/k", `{"since": null}`, 400, `{"error":...`},
		{"a consumer with a cursor after the last change", "POST", "/_changes/consumers/k", `{"since": 6}`, 409, `{"error":...`},
		{"a consumer with a long name", "POST", "/_changes/consumers/" + strings.Repeat("k", 129), "", 400, `{"error":...`},
		{"a consumer with a name outside ASCII", "POST", "/_changes/consumers/%C3%A4", "", 400, `{"error":...`},
		{"a delete of an unknown consumer", "DELETE", "/_changes/consumers/k", "", 404, `{"error":...`},
		{"no consumer was created", "GET", "/_changes/consumers", "", 200, `[]`},
	})
	r.url = strings.TrimSuffix(r.url, "/t/x")
	r.want(409, "GET", "/t/y/_changes?since=5", "", "Fenec-History", other)
	r.want(409, "POST", "/t/y/_changes/consumers/k", `{"since": 5}`, "Fenec-History", other)
	r.want(200, "GET", "/t/x/_changes?since=5", "", "Fenec-History", other)
	r.want(404, "GET", "/t/z/_changes", "")
}

func TestACursorBeforeTheKeptChangesIsRefused(t *testing.T) {
	r := start(t, Config{Replication: 1, Sync: wal.Policy{Always: true}})
	r.fill("x", 3)
	r.query("x", "compact")
	r.insert("x", 4, 2)
	got := r.want(410, "GET", "/t/x/_changes?since=3", "")
	if want := `{"error":"the changes asked for are no longer kept: those after change 4 are","since":4}`; got.body != want {
		t.Errorf("got %s, want %s", got.body, want)
	}
	if got.header.Get("Fenec-Seq") != "6" {
		t.Errorf("got headers %v, want position 6", got.header)
	}
	r.want(410, "POST", "/t/x/_changes/consumers/k", `{"since": 3}`)
	if lines, next := r.changes("x", "since=4"); len(lines) != 2 || next != "6" {
		t.Errorf("got the changes %q up to %s, want 2 up to 6", lines, next)
	}
}

// held sends a request and returns once the node holds it. The channel receives the answer.
func (r *running) held(method, path, body string, headers ...string) <-chan reply {
	r.t.Helper()
	before := r.waiting.Load()
	answer := make(chan reply, 1)
	go func() {
		got, err := r.send(method, path, body, headers...)
		if err != nil {
			got.body = err.Error()
		}
		answer <- got
	}()
	eventually(r.t, method+" "+path+" is held", func() bool { return r.waiting.Load() > before })
	return answer
}

// answered waits for the answer of a held request and returns it.
func (r *running) answered(from <-chan reply) reply {
	r.t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(20 * time.Second):
		r.t.Fatal("a held request was not answered")
		return reply{}
	}
}

func TestAPageWaitsForAChange(t *testing.T) {
	for name, policy := range map[string]wal.Policy{"always": {Always: true}, "an interval": {Every: 5 * time.Millisecond}, "off": {}} {
		t.Run(name, func(t *testing.T) {
			r := start(t, Config{Sync: policy})
			r.fill("x", 0)
			eventually(t, "the first change is on disk", func() bool { _, next := r.changes("x", ""); return next == "1" })
			page := r.held("GET", "/t/x/_changes?since=1&wait=30s", "")
			r.want(200, "POST", "/t/x/_changes/consumers/k", "") // a change of the server's own collections does not count
			r.want(200, "DELETE", "/t/x/c?id=7", "")             // nor does a write that matches nothing
			eventually(t, "the page still waits", func() bool { return r.waiting.Load() == 1 })
			r.insert("x", 1, 1)
			if got := r.answered(page); got.status != 200 || strings.Count(got.body, "\n") != 1 || got.header.Get("Fenec-Next") != "4" {
				t.Errorf("page: got %d %q %v, want 200, one line and cursor 4", got.status, got.body, got.header)
			}
		})
	}
}

func TestAWaitEndsOnTimeoutDeleteDisconnectAndShutdown(t *testing.T) {
	r := start(t, Config{Sync: wal.Policy{Always: true}})
	r.fill("x", 2)
	r.fill("y", 2)
	if got := r.want(200, "GET", "/t/x/_changes?since=3&wait=30ms", ""); got.body != "" || got.header.Get("Fenec-Next") != "3" {
		t.Errorf("on timeout: got %q and cursor %v, want no line and cursor 3", got.body, got.header)
	}
	page := r.held("GET", "/t/x/_changes?wait=30s", "")
	after := r.held("GET", "/t/x/c", "", "Fenec-After", "99", "Fenec-Wait", "30s")
	r.wantAdmin(204, "DELETE", "tenants/x", "")
	for what, held := range map[string]<-chan reply{"a page": page, "a read": after} {
		if got := r.answered(held); got.status != 503 || got.header.Get("Retry-After") != "1" {
			t.Errorf("%s of a deleted tenant: got %d %s %v, want 503 and Retry-After", what, got.status, got.body, got.header)
		}
	}
	ctx, leave := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", r.url+"/t/y/_changes?wait=30s", nil)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() {
		_, err := r.client.Do(req)
		gone <- err
	}()
	eventually(t, "the page is held", func() bool { return r.waiting.Load() == 1 })
	leave()
	<-gone
	eventually(t, "the disconnect is noticed", func() bool { return r.waiting.Load() == 0 })
	page = r.held("GET", "/t/y/_changes?wait=30s", "")
	after = r.held("GET", "/t/y/c", "", "Fenec-After", "99", "Fenec-Wait", "30s")
	r.stop()
	if got := r.answered(page); got.status != 200 || got.body != "" || got.header.Get("Fenec-Next") != "3" {
		t.Errorf("page on shutdown: got %d %q %v, want 200, no line and cursor 3", got.status, got.body, got.header)
	}
	if got := r.answered(after); got.status != 503 {
		t.Errorf("waiting read on shutdown: got %d %s, want 503", got.status, got.body)
	}
}

func TestConsumersKeepTheirCursors(t *testing.T) {
	fs := crashfs.New(1)
	r := start(t, Config{Dir: "/data", FS: fs, Sync: wal.Policy{Always: true}})
	r.fill("x", 4)
	r.url += "/t/x"
	r.play([]step{
		{"no consumers", "GET", "/_changes/consumers", "", 200, `[]`},
		{"a consumer from the current position", "POST", "/_changes/consumers/now", "", 200, `{"name":"now","since":5}`},
		{"a consumer from the beginning", "POST", "/_changes/consumers/all%20of%2Fit", `{"since": 0}`, 200, `{"name":"all of/it","since":0}`},
		{"both consumers", "GET", "/_changes/consumers", "", 200, `[{"name":"all of/it","since":0,"behind":5},{"name":"now","since":5,"behind":0}]`},
		{"reading leaves the cursor", "GET", "/_changes?consumer=all+of/it&limit=1", "", 200, `{"seq":1,...`},
		{"a second read begins at the same cursor", "GET", "/_changes?consumer=all+of/it&limit=1", "", 200, `{"seq":1,...`},
		{"a commit", "POST", "/_changes/consumers/all%20of%2Fit", `{"since": 4}`, 200, `{"name":"all of/it","since":4}`},
		{"a read after the commit", "GET", "/_changes?consumer=all+of/it&limit=1", "", 200, `{"seq":5,...`},
		{"a commit of an earlier cursor", "POST", "/_changes/consumers/all%20of%2Fit", `{"since":2}`, 200, `{"name":"all of/it","since":2}`},
		{"creating it again keeps its cursor", "POST", "/_changes/consumers/all%20of%2Fit", "", 200, `{"name":"all of/it","since":2}`},
		{"creating it again with an object keeps its cursor", "POST", "/_changes/consumers/all%20of%2Fit", "{}", 200, `{"name":"all of/it","since":2}`},
		{"deleting", "DELETE", "/_changes/consumers/now", "", 204, ``},
		{"deleting twice", "DELETE", "/_changes/consumers/now", "", 404, `{"error":...`},
		{"one consumer is left", "GET", "/_changes/consumers", "", 200, `[{"name":"all of/it","since":2,"behind":3}]`},
		{"statements cannot read consumers", "POST", "/query", `{"query": "get _consumers"}`, 404, `{"error":...`},
		{"the list of collections omits them", "GET", "/", "", 200, `{"fenec":"test","collections":["c"]}`},
	})
	r.url = strings.TrimSuffix(r.url, "/t/x")
	first := r.want(200, "POST", "/t/x/_changes/consumers/k", `{"since": 1}`, "Idempotency-Key", "once")
	r.want(200, "POST", "/t/x/_changes/consumers/k", `{"since": 3}`)
	sameAnswer(t, "a commit", first, r.want(200, "POST", "/t/x/_changes/consumers/k", `{"since": 1}`, "Idempotency-Key", "once"))
	if first.header.Get("Fenec-Seq") == "" {
		t.Errorf("commit: got headers %v, want a position", first.header)
	}
	list := r.want(200, "GET", "/t/x/_changes/consumers", "").body
	if !strings.Contains(list, `{"name":"k","since":3,"behind":2}`) {
		t.Errorf("a replay moved the cursor: got %s", list)
	}
	r = start(t, Config{Dir: "/data", FS: fs.Crash(), Sync: wal.Policy{Always: true}})
	if got := r.want(200, "GET", "/t/x/_changes/consumers", "").body; got != list {
		t.Errorf("consumers after a power failure: got %s, want %s", got, list)
	}
	r.wantAdmin(200, "POST", "tenants/x/freeze", "")
	r.want(503, "POST", "/t/x/_changes/consumers/k", `{"since": 1}`)
	r.want(200, "GET", "/t/x/_changes?consumer=k", "")
}

func TestTheNumberOfConsumersIsLimited(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 0)
	for i := range 1000 {
		r.want(200, "POST", fmt.Sprintf("/t/x/_changes/consumers/k%d", i), "")
	}
	r.want(409, "POST", "/t/x/_changes/consumers/more", "")
	r.want(200, "POST", "/t/x/_changes/consumers/k7", `{"since": 0}`)
	r.want(204, "DELETE", "/t/x/_changes/consumers/k7", "")
	r.want(200, "POST", "/t/x/_changes/consumers/more", "")
}

// TestChangesReturnedByAPageSurviveACrash has the power fail after a page was returned, under each sync policy.
func TestChangesReturnedByAPageSurviveACrash(t *testing.T) {
	for name, policy := range map[string]wal.Policy{"always": {Always: true}, "an interval": {Every: time.Millisecond}, "off": {}} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(8) {
				fs := crashfs.New(seed)
				r := start(t, Config{Dir: "/data", FS: fs, Sync: policy})
				r.fill("x", 3)
				handed := 0
				for i := range 4 {
					r.insert("x", i, 2)
					lines, next := r.changes("x", "since=0")
					handed = len(lines)
					if strconv.Itoa(handed) != next {
						t.Fatalf("got %d changes up to %s, want them to agree", handed, next)
					}
				}
				r.insert("x", 9, 5)
				if policy == (wal.Policy{}) && handed != 12 {
					t.Fatalf("page with sync off: got %d changes, want 12", handed)
				}
				r = start(t, Config{Dir: "/data", FS: fs.CrashKeeping(func(int) int { return 0 }), Sync: policy})
				if lines, _ := r.changes("x", "since=0"); len(lines) < handed {
					t.Fatalf("got %d changes after the crash, want at least the %d returned before", len(lines), handed)
				}
			}
		})
	}
}

// TestACursorIsValidForAnInstalledImage reads the changes of an installed image after a cursor of the original.
func TestACursorIsValidForAnInstalledImage(t *testing.T) {
	r := start(t, Config{Sync: wal.Policy{Always: true}})
	r.fill("x", 5)
	want, next := r.changes("x", "since=2")
	image := r.wantAdmin(200, "GET", "tenants/x/file", "").body
	r.wantAdmin(201, "PUT", "tenants/y/file", image)
	if got, at := r.changes("y", "since=2"); strings.Join(got, "\n") != strings.Join(want, "\n") || at != next {
		t.Errorf("copy: got %q up to %s, want %q up to %s", got, at, want, next)
	}
}

func TestAPageOfChangesIsLimitedInBytes(t *testing.T) {
	r := start(t, Config{Sync: wal.Policy{Always: true}})
	r.fill("x", 0)
	text := strings.Repeat("x", 3<<20)
	r.want(201, "POST", "/t/x/c", `[{"s": "`+strings.Join([]string{text, text, text, text}, `"}, {"s": "`)+`"}]`)
	r.insert("x", 1, 3)
	if lines, next := r.changes("x", "since=1"); len(lines) != 3 || next != "4" {
		t.Errorf("block larger than a page: got %d lines up to %s, want 3 up to 4", len(lines), next)
	}
	if lines, next := r.changes("x", "since=4"); len(lines) != 4 || next != "8" {
		t.Errorf("rest of the block: got %d lines up to %s, want 4 up to 8", len(lines), next)
	}
}
