package node

import (
	"strings"
	"testing"
	"time"
)

func TestRequireChecksTheRowCountOfAGet(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	batch := func(lines ...string) string {
		out := ""
		for _, text := range lines {
			out += statement(text) + "\n"
		}
		return out
	}
	r.play([]step{
		{"a collection", "POST", "/query", statement("create collection c (n int)"), 200, `{"message":...`},
		{"documents", "POST", "/c", `[{"n": 1}, {"n": 1}, {"n": 2}]`, 201, `{"inserted":3}`},
		{"alone, met", "POST", "/query", statement("get c where n = 2 require 1"), 200, `[{"id":3,"n":2}]`},
		{"alone, not met", "POST", "/query", statement("get c where n = 1 require 1"), 412, `{"error":"1 row required, 2 found line 1 column 27"}`},
		{"a count", "POST", "/query", `{"query": "select id from c where n = $1 require $2", "params": [1, 2]}`, 200, `[{"id":1},{"id":2}]`},
		{
			"a batch that writes, met", "POST", "/batch", batch("get c where n = 1 count require 2", "put c {n: 5}"), 200,
			`{"ok":2,"results":[{"rows":[{"count":2}]},{"affected":1}]}`,
		},
		{
			"a batch that writes, not met after the write", "POST", "/batch", batch("put c {n: 5}", "get c where n = 5 require 1"), 412,
			`{"error":"1 row required, 2 found line 1 column 27","completed":0,"at":1}`,
		},
		{"which wrote nothing", "GET", "/c?n=5&count", "", 200, `{"count":1}`},
		{
			"a batch that writes, not met before the write", "POST", "/batch", batch("get c where n = 9 require 1", "del c"), 412,
			`{"error":"1 row required, 0 found line 1 column 27","completed":0,"at":0}`,
		},
		{
			"a batch that reads", "POST", "/batch", batch("get c count", "get c select max(n) require 1", "get c require 9"), 412,
			`{"error":"9 rows required, 4 found line 1 column 15","completed":0,"at":2}`,
		},
		{"the documents of the met batch", "GET", "/c?select=n", "", 200, `[{"n":1},{"n":1},{"n":2},{"n":5}]`},
	})
}

func TestAFailedRequireStoresNoIdempotencyKey(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 0)
	body := statement("get c require 1") + "\n" + statement("put c {n: 2}")
	r.want(412, "POST", "/t/x/batch", body, "Idempotency-Key", "k")
	r.query("x", "put c {n: 1}")
	for range 2 {
		if got := r.want(200, "POST", "/t/x/batch", body, "Idempotency-Key", "k"); got.header.Get("Fenec-Seq") != "5" {
			t.Errorf("got %v %s for the batch under its key, expected change 5", got.header, got.body)
		}
	}
}

// A batch that can wait is held until each of its gets returns the required number of rows.
func TestABatchIsHeldUntilTheRequireOfItsGetIsMet(t *testing.T) {
	clock := newClock()
	r := start(t, Config{Clock: clock.Now})
	r.jobs("x")
	r.query("x", "create collection gates (open bool, since timestamp, till timestamp @ttl(1s))")
	r.query("x", "create collection doors (gate int @hash)")
	const taken = `{"ok":2,"results":[{"rows":[{"count":1}]},{"rows":[{"name":"a"}]}]}`
	for _, tc := range []struct {
		says, get string
		opens     func()
	}{
		{"a row that is put", "get gates where open = true count require 1", func() { r.query("x", "put gates {open: true}") }},
		{"one of two rows that is deleted", "get gates where open is null count require 1", func() {
			r.query("x", "put gates [{}, {}]")
			r.rest(1)
			r.query("x", "del gates where open is null limit 1")
		}},
		{"a time that is reached", "get gates where since <= now() count require 1", func() {
			r.query("x", "put gates {since: now() + 60_000}")
			r.rest(1)
			clock.Advance(time.Minute)
			r.tenants.Find([]byte("x")).Claims.WakeDue()
		}},
		{"a row that expires", "get gates where till is not null count require 1", func() {
			r.query("x", "put gates [{till: now() + 1000}, {till: now() + 600_000}]")
			r.rest(1)
			clock.Advance(2 * time.Second)
			r.tenants.Find([]byte("x")).Claims.WakeDue()
		}},
		{"a row that gets a child", "get gates count require 1 lookup doors on gate required", func() {
			r.query("x", "put gates {id: 77}")
			r.rest(1)
			r.query("x", "put doors {gate: 77}")
		}},
		{"a row of another collection", "get doors where gate in (get gates select id where open = true) count require 1", func() {
			r.query("x", "del doors")
			r.query("x", "put doors {gate: 78}")
			r.rest(1)
			r.query("x", "put gates {id: 78, open: true}")
		}},
	} {
		t.Run(tc.says, func(t *testing.T) {
			r.query("x", "del jobs")
			r.query("x", "del gates")
			r.put("x", "a")
			claim := r.claim("/t/x/batch", statement(tc.get)+"\n"+statement(claimJob))
			tc.opens()
			r.wantAnswer("the batch", claim, 200, taken)
			r.rest(0)
		})
	}
	for get, say := range map[string]string{
		"get gates select open, max(since) group open having max(since) < now() require 1": "reads no time in having",
		"get gates require 1 lookup doors on gate where now() > gate":                      "reads no time in a lookup",
		"get gates where till + 1 > now() require 1":                                       "reads the time only where",
	} {
		if got := r.want(400, "POST", "/t/x/batch", statement(claimJob)+"\n"+statement(get), "Fenec-Wait", "1000"); !strings.Contains(got.body, say) {
			t.Errorf("%s: got %s, expected it to contain %q", get, got.body, say)
		}
	}
}
