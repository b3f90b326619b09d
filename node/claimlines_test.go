package node

import (
	"fmt"
	"testing"
	"time"
)

// TestClaimsOverOneFilterDoNotBlockEachOther holds a claim that one job does not satisfy, and after it a claim
// that it does satisfy.
func TestClaimsOverOneFilterDoNotBlockEachOther(t *testing.T) {
	const set = `set jobs {state: "taken"} where state = "ready" `
	type request struct{ method, path, body string }
	query := func(text, params string) request {
		return request{"POST", "/query", fmt.Sprintf(`{"query": %q, "params": [%s]}`, text, params)}
	}
	for i, tc := range []struct {
		says          string
		first, second request
		want          string
	}{
		{"of two, and of one", query(set+"require 2", ""), query(set+"require 1", ""), `{"affected":1}`},
		{"of two, and at most one", query(set+"limit 2 require 2", ""), query(set+"limit 1", ""), `{"affected":1}`},
		{"of a parameter, and of another", query(set+"limit $1 require $2", "3, 3"), query(set+"limit $1 require $2", "3, 1"), `{"affected":1}`},
		{"of none, and of all", query(set+"limit 0", ""), request{"PATCH", "/jobs?state=ready", `{"state": "taken"}`}, `{"updated":1}`},
		{"of two, and those of a DELETE", query(`del jobs where state = "ready" require 2`, ""), request{"DELETE", "/jobs?state=ready", ""}, `{"deleted":1}`},
		{
			"in a batch with an unmet requirement, and in one without",
			request{"POST", "/batch", statement(set+"limit 1") + "\n" + statement(`set seats {n: 1} require 1`)},
			request{"POST", "/batch", statement(set+"limit 1") + "\n" + statement(`get seats count`)},
			`{"ok":2,"results":[{"affected":1},{"rows":[{"count":0}]}]}`,
		},
	} {
		t.Run(tc.says, func(t *testing.T) {
			r := start(t, Config{})
			tenant := fmt.Sprint("x", i)
			r.jobs(tenant)
			r.query(tenant, "create collection seats (n int)")
			hold := func(q request, held int64) <-chan reply {
				answer := r.held(q.method, "/t/"+tenant+q.path, q.body, "Fenec-Wait", "30000")
				r.rest(held)
				return answer
			}
			first := hold(tc.first, 1)
			second := hold(tc.second, 2)
			r.put(tenant, "a")
			r.wantAnswer("the second", second, 200, tc.want)
			r.rest(1)
			r.wantAdmin(204, "DELETE", "tenants/"+tenant, "")
			r.answered(first)
		})
	}
}

func TestAClaimTakesAReadyRowWhileAnotherClaimWaits(t *testing.T) {
	r := start(t, Config{})
	r.jobs("x")
	const pair = `set jobs {state: "pair"} where state = "ready" require 2`
	waits := r.claim("/t/x/query", statement(pair))
	r.put("x", "a")
	r.rest(1)
	got := r.want(200, "POST", "/t/x/query", statement(`set jobs {state: "one"} where state = "ready" require 1`), "Fenec-Wait", "30000")
	if got.body != `{"affected":1}` {
		t.Errorf("claim of a ready row: got %s, want 1 affected", got.body)
	}
	r.put("x", "b")
	r.put("x", "c")
	r.wantAnswer("a claim of two", waits, 200, `{"affected":2}`)
}

func TestScheduledJobsWakeAClaimOnceEnoughAreDue(t *testing.T) {
	clock := newClock()
	r := start(t, Config{Clock: clock.Now})
	r.jobs("x")
	claim := r.claim("/t/x/query", statement(`set jobs {state: "taken"} where state = "ready" and run_at <= now() require 2`))
	r.put("x", "a", " + 1000")
	r.put("x", "b", " + 2000")
	for range 2 {
		r.rest(1)
		clock.Advance(time.Second)
		r.tenants.Find([]byte("x")).Claims.WakeDue()
	}
	r.wantAnswer("the claim", claim, 200, `{"affected":2}`)
}
