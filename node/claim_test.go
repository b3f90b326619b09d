package node

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"fenec/engine/wal"
)

const claimJob = `set jobs {state: "taken"} where state = "ready" and run_at <= now() order by priority desc, run_at limit 1 returning name`

// jobs creates a tenant with a collection of jobs.
func (r *running) jobs(tenant string) {
	r.t.Helper()
	r.wantAdmin(201, "PUT", "tenants/"+tenant, "")
	r.query(tenant, `create collection jobs (name text, state text @hash, run_at timestamp @sorted, priority int)`)
}

func statement(text string) string { return fmt.Sprintf(`{"query": %q}`, text) }

// claim sends a claim and returns once it is held, queued after the claims held before it.
func (r *running) claim(path, body string, headers ...string) <-chan reply {
	r.t.Helper()
	want := r.claims.Load() + 1
	answer := r.held("POST", path, body, append(headers, "Fenec-Wait", "30000")...)
	r.rest(want)
	return answer
}

// rest waits until the node holds that many claims and runs none of them.
func (r *running) rest(claims int64) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("%d claims are held", claims), func() bool {
		return r.claims.Load() == claims && r.waiting.Load() == claims
	})
}

// wantAnswer checks the answer of a held request and returns it.
func (r *running) wantAnswer(what string, from <-chan reply, status int, body string) reply {
	r.t.Helper()
	got := r.answered(from)
	if got.status != status || got.body != body {
		r.t.Errorf("%s: got %d %s, want %d %s", what, got.status, got.body, status, body)
	}
	return got
}

// put writes a job that is ready.
func (r *running) put(tenant, name string, more ...string) {
	r.t.Helper()
	r.query(tenant, fmt.Sprintf(`put jobs {name: %q, state: "ready", run_at: now()%s}`, name, strings.Join(more, "")))
}

func TestAClaimIsHeldUntilItWrites(t *testing.T) {
	for name, policy := range map[string]wal.Policy{"always": {Always: true}, "an interval": {Every: 5 * time.Millisecond}, "off": {}} {
		t.Run(name, func(t *testing.T) {
			r := start(t, Config{Sync: policy})
			r.jobs("x")
			claim := r.claim("/t/x/query", statement(claimJob))
			r.query("x", `put jobs {name: "later", state: "ready", run_at: now() + 100000}`)
			r.query("x", `put jobs {name: "done", state: "done", run_at: now()}`)
			r.rest(1)
			r.put("x", "a")
			got := r.wantAnswer("the claim", claim, 200, `[{"name":"a"}]`)
			if got.header.Get("Fenec-Seq") != "5" || got.header.Get("Fenec-History") == "" {
				t.Errorf("claim: got headers %v, want position 5 and a history", got.header)
			}
			r.put("x", "b")
			if got := r.want(200, "POST", "/t/x/query", statement(claimJob), "Fenec-Wait", "30000"); got.body != `[{"name":"b"}]` {
				t.Errorf("claim of a ready job: got %s, want job b", got.body)
			}
			r.rest(0)
		})
	}
}

func TestAClaimThatMatchesNothingEndsWithAnEmptyAnswer(t *testing.T) {
	r := start(t, Config{})
	r.jobs("x")
	for _, tc := range []struct {
		method, path, body, want string
		status                   int
	}{
		{"POST", "/t/x/query", statement(claimJob), `[]`, 200},
		{"POST", "/t/x/query", statement(`del jobs where state = "ready"`), `{"affected":0}`, 200},
		{"POST", "/t/x/query", statement(`set jobs {state: "x"} where state = "ready" require 1`), `{"error":"1 row required, 0 found line 1 column 53"}`, 412},
		{"PATCH", "/t/x/jobs?state=ready", `{"state": "taken"}`, `{"updated":0}`, 200},
		{"DELETE", "/t/x/jobs/all", ``, `{"deleted":0}`, 200},
		{"POST", "/t/x/batch", statement(`get jobs count`) + "\n" + statement(claimJob), `{"ok":2,"results":[{"rows":[{"count":0}]},{"rows":[]}]}`, 200},
		{"POST", "/t/x/batch", statement(claimJob) + "\n" + statement(`del jobs require 2`), `{"error":"2 rows required, 0 found line 1 column 18","completed":0,"at":1}`, 412},
	} {
		for _, wait := range []string{"0", "1", "20ms"} {
			if got := r.do(tc.method, tc.path, tc.body, "Fenec-Wait", wait); got.status != tc.status || got.body != tc.want {
				t.Errorf("%s %s %s for %s: got %d %s, want %d %s", tc.method, tc.path, tc.body, wait, got.status, got.body, tc.status, tc.want)
			}
		}
	}
}

func TestStatementsThatCannotWaitAreRefused(t *testing.T) {
	r := start(t, Config{})
	r.jobs("x")
	r.query("x", "create collection c (n int, at timestamp)")
	const set = `set jobs {state: "x"} where `
	for _, tc := range []struct {
		method, path, body, say string
		status                  int
	}{
		{"POST", "/t/x/query", statement(`put jobs {name: "a"}`), "only a set or a del waits", 400},
		{"POST", "/t/x/jobs", `{"name": "a"}`, "only a set or a del waits", 400},
		{"POST", "/t/x/query", statement(`create collection d (n int)`), "only a set or a del waits", 400},
		{"POST", "/t/x/query", statement(`compact`), "only a set or a del waits", 400},
		{"POST", "/t/x/batch", statement(claimJob) + "\n" + statement(`put jobs {name: "a"}`), `only a set or a del waits until there is something to write, and so does a batch of them and of reads","completed":0,"at":1`, 400},
		{"POST", "/t/x/query", statement(set + `now() > 5`), "plus or minus a number line 1 column 29", 400},
		{"POST", "/t/x/query", statement(set + `run_at + 5 <= now()`), "reads the time only where", 400},
		{"POST", "/t/x/query", statement(set + `run_at <= now() - priority`), "reads the time only where", 400},
		{"POST", "/t/x/query", statement(set + `id in (get c select n where at <= now())`), "no time in an inner get", 400},
		{"POST", "/t/x/query", statement(set + `priority <= now()`), "priority is none", 400},
		{"PATCH", "/t/x/jobs?where=" + "now()%3Drun_at%2B1", `{"state": "x"}`, "reads the time only where", 400},
		{"POST", "/t/x/query", statement(`set nothing {a: 1}`), "there is no collection nothing", 404},
		{"POST", "/t/x/query", statement(`set jobs {nothing: 1} where state = "x"`), "nothing", 404},
		{"POST", "/t/x/query", statement(`set jobs {state: 1} where state = $1`), "parameter", 400},
		{"POST", "/t/x/query", `{"query": "set jobs {state: \"x\"} where run_at <= now() - $1", "params": ["x"]}`, "", 400},
	} {
		if got := r.do(tc.method, tc.path, tc.body, "Fenec-Wait", "1000"); got.status != tc.status || !strings.Contains(got.body, tc.say) {
			t.Errorf("%s %s %s: got %d %s, want %d and %q", tc.method, tc.path, tc.body, got.status, got.body, tc.status, tc.say)
		}
	}
	for _, wait := range []string{"", "x", "-1", "1.5", "1 s"} {
		r.want(400, "POST", "/t/x/query", statement(claimJob), "Fenec-Wait", wait)
	}
	r.want(403, "POST", "/t/x/query", statement(claimJob), "Fenec-Wait", "1000", "Fenec-Read", "replica")
	r.want(200, "POST", "/t/x/query", statement(`get jobs`), "Fenec-Wait", "1000") // a read has nothing to wait for
	r.rest(0)
	if got := r.query("x", "get jobs count"); got != `[{"count":0}]` {
		t.Errorf("jobs after refused claims: got %s, want none", got)
	}
}

func TestEachKindOfClaimIsWokenByAWrite(t *testing.T) {
	r := start(t, Config{})
	r.jobs("x")
	r.query("x", "create collection open (queue text)")
	r.query("x", `put jobs {name: "one", state: "held"}`)
	claims := map[string]<-chan reply{
		`{"updated":1}`: r.held("PATCH", "/t/x/jobs?state=ready", `{"state": "patched"}`, "Fenec-Wait", "30s"),
	}
	r.rest(1)
	r.put("x", "a")
	for want, claim := range claims {
		r.wantAnswer("a PATCH", claim, 200, want)
	}
	claim := r.held("DELETE", "/t/x/jobs?state=ready", "", "Fenec-Wait", "30s")
	r.rest(1)
	r.put("x", "b")
	r.wantAnswer("a DELETE", claim, 200, `{"deleted":1}`)

	claim = r.claim("/t/x/batch", statement(claimJob)+"\n"+statement(`del jobs where name = "never"`)+"\n"+statement(`get jobs where state = "taken" select name`))
	r.put("x", "c")
	r.wantAnswer("a batch", claim, 200, `{"ok":3,"results":[{"rows":[{"name":"c"}]},{"affected":0},{"rows":[{"name":"c"}]}]}`)

	claim = r.claim("/t/x/query", statement(`set jobs {state: "pair"} where state = "ready" limit 2 require 2`))
	r.put("x", "d")
	r.rest(1)
	r.put("x", "e")
	r.wantAnswer("a claim of two", claim, 200, `{"affected":2}`)

	r.put("x", "f")
	r.put("x", "g")
	claim = r.claim("/t/x/query", statement(`set jobs {state: "alone"} where state = "ready" require 1`))
	r.query("x", `del jobs where name = "f"`)
	r.wantAnswer("a claim of exactly one, after a delete", claim, 200, `{"affected":1}`)

	claim = r.claim("/t/x/query", statement(`set jobs {state: "opened"} where name in (get open select queue)`))
	r.query("x", `put open {queue: "one"}`)
	r.wantAnswer("a claim that reads another collection", claim, 200, `{"affected":1}`)

	claim = r.claim("/t/x/query", statement(`set jobs {name: "free"} where priority is null and state = "opened" and name = "zero"`))
	r.query("x", `set jobs {name: "zero"} where name = "one"`)
	r.wantAnswer("a claim on a row that a set changes", claim, 200, `{"affected":1}`)
	claim = r.claim("/t/x/query", statement(claimJob))
	r.query("x", "drop collection jobs")
	if got := r.answered(claim); got.status != 404 {
		t.Errorf("claim on a dropped collection: got %d %s, want 404", got.status, got.body)
	}
}

func TestClaimsAreServedInOrder(t *testing.T) {
	r := start(t, Config{})
	r.jobs("x")
	var line []<-chan reply
	for i := range 8 {
		// The claims write different values and wait for the same rows.
		line = append(line, r.claim("/t/x/query", statement(strings.Replace(claimJob, "taken", fmt.Sprint("by ", i), 1))))
	}
	for i := range 4 {
		r.put("x", fmt.Sprint(i))
		r.wantAnswer(fmt.Sprint("number ", i), line[i], 200, fmt.Sprintf(`[{"name":"%d"}]`, i))
		r.rest(int64(len(line) - 1 - i))
	}
	r.query("x", `put jobs [{name: "4", state: "ready", run_at: now(), priority: 4}, {name: "5", state: "ready", run_at: now(), priority: 3}, {name: "6", state: "ready", run_at: now(), priority: 2}, {name: "7", state: "ready", run_at: now(), priority: 1}]`)
	for i := 4; i < 8; i++ {
		r.wantAnswer(fmt.Sprint("number ", i), line[i], 200, fmt.Sprintf(`[{"name":"%d"}]`, i))
	}
}

func TestAClaimOfADisconnectedClientPassesItsTurnOn(t *testing.T) {
	r := start(t, Config{})
	r.jobs("x")
	for i := range 60 {
		ctx, leave := context.WithCancel(context.Background())
		req, err := http.NewRequestWithContext(ctx, "POST", r.url+"/t/x/query", strings.NewReader(statement(claimJob)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Fenec-Wait", "30000")
		gone := make(chan bool, 1)
		go func() {
			resp, err := r.client.Do(req)
			if err == nil {
				resp.Body.Close()
			}
			gone <- err == nil
		}()
		r.rest(1)
		second := r.claim("/t/x/query", statement(claimJob))
		if i%2 == 0 {
			leave()
			r.put("x", "a")
		} else {
			put := make(chan struct{})
			go func() { defer close(put); r.put("x", "a") }()
			leave()
			<-put
		}
		<-gone
		// Either the first claim took the job before its client disconnected, or the second one did.
		eventually(t, "the job is taken", func() bool { return r.query("x", `get jobs where state = "ready" count`) == `[{"count":0}]` })
		r.put("x", "b")
		if got := r.answered(second); got.status != 200 || got.body == "[]" {
			t.Fatalf("second claim: got %d %s, want 200 and a job", got.status, got.body)
		}
		r.query("x", "del jobs")
		r.rest(0)
	}
}

func TestARowThatBecomesDueWakesAClaim(t *testing.T) {
	clock := newClock()
	r := start(t, Config{Clock: clock.Now})
	r.jobs("x")
	queues := r.tenants.Find([]byte("x")).Claims
	advance := func(d time.Duration) {
		clock.Advance(d)
		queues.WakeDue()
	}
	r.put("x", "old", " + 60000")
	claim := r.claim("/t/x/query", statement(claimJob))
	r.put("x", "soon", " + 20000")
	r.put("x", "sooner", " + 10000")
	advance(10*time.Second - time.Millisecond)
	r.rest(1)
	advance(time.Millisecond)
	r.wantAnswer("the first claim", claim, 200, `[{"name":"sooner"}]`)
	claim = r.claim("/t/x/query", statement(claimJob))
	next := r.claim("/t/x/query", statement(claimJob))
	advance(10 * time.Second)
	r.wantAnswer("the next one", claim, 200, `[{"name":"soon"}]`)
	r.rest(1)
	r.query("x", `set jobs {run_at: now() + 1000} where name = "old"`)
	advance(time.Second)
	r.wantAnswer("the last one", next, 200, `[{"name":"old"}]`)

	// A lease expires. Its field has no index, and the condition is inside an or.
	r.query("x", "create collection leases (state text, until timestamp)")
	r.query("x", `put leases {state: "leased", until: now() + 5000}`)
	claim = r.claim("/t/x/query", statement(`set leases {until: now() + 5000} where state = "ready" or (state = "leased" and until < now() - 1000) returning state`))
	advance(6 * time.Second)
	r.rest(1)
	advance(time.Millisecond)
	r.wantAnswer("the lease", claim, 200, `[{"state":"leased"}]`)

	// An expired row satisfies a requirement.
	r.query("x", "create collection seats (n int, until timestamp @ttl(1s))")
	r.query("x", `put seats [{n: 1, until: now() + 1000}, {n: 2, until: now() + 2000}]`)
	claim = r.claim("/t/x/query", statement(`set seats {n: 3} require 1`))
	advance(2*time.Second - time.Millisecond)
	r.rest(1)
	advance(time.Millisecond)
	r.wantAnswer("the seat", claim, 200, `{"affected":1}`)
}

func TestClaimsWaitThroughAFreeze(t *testing.T) {
	clock := newClock()
	r := start(t, Config{Clock: clock.Now})
	r.jobs("x")
	claim := r.claim("/t/x/query", statement(claimJob))
	r.wantAdmin(200, "POST", "tenants/x/freeze", "")
	late := r.claim("/t/x/query", statement(claimJob))
	if got := r.want(200, "POST", "/t/x/query", statement(claimJob), "Fenec-Wait", "10"); got.body != "[]" {
		t.Errorf("claim that times out during a freeze: got %s, want []", got.body)
	}
	r.want(503, "POST", "/t/x/query", statement(`put jobs {name: "a"}`))
	r.wantAdmin(200, "POST", "tenants/x/thaw", "")
	r.rest(2)
	r.put("x", "a")
	r.wantAnswer("the first claim", claim, 200, `[{"name":"a"}]`)
	r.rest(1)
	r.put("x", "b", " + 30")
	r.wantAdmin(200, "POST", "tenants/x/freeze", "")
	clock.Advance(30 * time.Millisecond)
	r.tenants.Find([]byte("x")).Claims.WakeDue()
	r.want(503, "POST", "/t/x/query", statement(claimJob), "Fenec-Wait", "10")
	r.rest(1)
	r.wantAdmin(200, "POST", "tenants/x/thaw", "")
	r.wantAnswer("the second claim", late, 200, `[{"name":"b"}]`)
}

func TestClaimsEndOnDeleteAndShutdown(t *testing.T) {
	r := start(t, Config{})
	r.jobs("x")
	r.jobs("y")
	claim := r.claim("/t/x/query", statement(claimJob))
	batch := r.claim("/t/x/batch", statement(claimJob))
	r.wantAdmin(204, "DELETE", "tenants/x", "")
	for what, held := range map[string]<-chan reply{"a claim": claim, "a batch": batch} {
		if got := r.answered(held); got.status != 503 || got.header.Get("Retry-After") != "1" {
			t.Errorf("%s of a deleted tenant: got %d %s %v, want 503 and Retry-After", what, got.status, got.body, got.header)
		}
	}
	r.rest(0)
	claim = r.claim("/t/y/query", statement(claimJob))
	two := r.claim("/t/y/query", statement(`del jobs require 1`))
	r.stop()
	r.wantAnswer("a claim on shutdown", claim, 200, "[]")
	r.wantAnswer("a claim with require on shutdown", two, 412, `{"error":"1 row required, 0 found line 1 column 18"}`)
}

func TestAClaimUnderAKeyRunsOnce(t *testing.T) {
	r := start(t, Config{})
	r.jobs("x")
	claim := r.claim("/t/x/query", statement(claimJob), "Idempotency-Key", "k")
	r.put("x", "a")
	r.wantAnswer("the claim", claim, 200, `[{"name":"a"}]`)
	r.put("x", "b")
	again := r.want(200, "POST", "/t/x/query", statement(claimJob), "Idempotency-Key", "k", "Fenec-Wait", "30000")
	if again.body != `[{"name":"a"}]` || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("replay: got %s %v, want job a", again.body, again.header)
	}
	if got := r.want(200, "POST", "/t/x/query", statement(claimJob)); got.body != `[{"name":"b"}]` {
		t.Errorf("second job: got %s, want b", got.body)
	}
	line := r.claim("/t/x/query", statement(claimJob))
	again = r.want(200, "POST", "/t/x/query", statement(claimJob), "Idempotency-Key", "k", "Fenec-Wait", "30000") // a replay does not queue
	if again.body != `[{"name":"a"}]` {
		t.Errorf("replay while a claim waits: got %s, want job a", again.body)
	}
	first := r.claim("/t/x/batch", statement(claimJob), "Idempotency-Key", "two")
	second := r.claim("/t/x/batch", statement(claimJob), "Idempotency-Key", "two")
	for range 2 {
		r.put("x", "c")
	}
	r.wantAnswer("the waiting claim", line, 200, `[{"name":"c"}]`)
	r.wantAnswer("a batch under a key", first, 200, `{"ok":1,"results":[{"rows":[{"name":"c"}]}]}`)
	r.wantAnswer("the same batch again", second, 200, `{"ok":1,"results":[{"rows":[{"name":"c"}]}]}`)
	r.want(200, "POST", "/t/x/query", statement(claimJob), "Idempotency-Key", "none", "Fenec-Wait", "5")
	r.put("x", "d")
	if got := r.want(200, "POST", "/t/x/query", statement(claimJob), "Idempotency-Key", "none", "Fenec-Wait", "5"); got.body != "[]" {
		t.Errorf("replay of an empty answer: got %s, want []", got.body)
	}
}

func TestTheNumberOfHeldClaimsIsLimited(t *testing.T) {
	r := start(t, Config{})
	r.jobs("x")
	r.maxClaims = 2
	one, two := r.claim("/t/x/query", statement(claimJob)), r.claim("/t/x/query", statement(claimJob))
	if got := r.want(503, "POST", "/t/x/query", statement(claimJob), "Fenec-Wait", "1000"); got.header.Get("Retry-After") != "1" {
		t.Errorf("above the limit: got %v %s, want Retry-After", got.header, got.body)
	}
	if got := r.want(200, "GET", "/_metrics", "", "Authorization", "Bearer "+adminToken); !strings.Contains(got.body, "fenec_claims_held 2\n") || !strings.Contains(got.body, "fenec_claims_held_max 2\n") {
		t.Errorf("got metrics %s, want 2 claims of at most 2", got.body)
	}
	r.put("x", "a")
	r.put("x", "b")
	r.answered(one)
	r.answered(two)
	r.rest(0)
}

// TestAClaimUnderATakenOrInvalidKeyIsRefused sends claims under the key of another request and under an invalid one.
func TestAClaimUnderATakenOrInvalidKeyIsRefused(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 1)
	for path, line := range map[string]string{"query": `{"query": "set c {n: %d}"}`, "batch": `{"query": "set c {n: %d}"}`} {
		key := "key of " + path
		r.want(200, "POST", "/t/x/"+path, fmt.Sprintf(line, 1), "Idempotency-Key", key, "Fenec-Wait", "1")
		r.want(422, "POST", "/t/x/"+path, fmt.Sprintf(line, 2), "Idempotency-Key", key, "Fenec-Wait", "1")
		r.want(400, "POST", "/t/x/"+path, fmt.Sprintf(line, 2), "Idempotency-Key", "\xff", "Fenec-Wait", "1")
	}
}
