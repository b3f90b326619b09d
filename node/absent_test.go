package node

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func (r *running) users(tenant string) {
	r.t.Helper()
	r.wantAdmin(201, "PUT", "tenants/"+tenant, "")
	r.query(tenant, "create collection users (email text required @unique, n int, at timestamp @ttl(1m))")
}

func TestInsertIfAbsent(t *testing.T) {
	clock := newClock()
	r := start(t, Config{Clock: clock.Now})
	r.users("x")
	r.url += "/t/x"
	query := func(text, params string) string { return fmt.Sprintf(`{"query": %q, "params": [%s]}`, text, params) }
	r.play([]step{
		{"a new document", "POST", "/users?if=absent", `{"email": "a", "n": 1}`, 201, `{"inserted":1}`},
		{"a taken unique value", "POST", "/users?if=absent", `{"email": "a", "n": 2}`, 201, `{"inserted":0}`},
		{"a taken id", "POST", "/users?if=absent", `{"id": 1, "email": "b"}`, 201, `{"inserted":0}`},
		{"a taken unique value without if", "POST", "/users", `{"email": "a"}`, 409, `{"error":...`},
		{"a list", "POST", "/users?if=absent", `[{"email": "a"}, {"email": "b"}, {"email": "b"}, {"id": 7, "email": "c"}, {"id": 7, "email": "d"}]`, 201, `{"inserted":2}`},
		{"a document without a required field", "POST", "/users?if=absent", `{"id": 1}`, 400, `{"error":"field email of users is required"}`},
		{"by a statement", "POST", "/query", query("insert into users $1 if absent", `[{"email": "a"}, {"email": "e"}]`), 200, `{"affected":1}`},
		{
			"an existing document is changed", "POST", "/query", query("insert into users {email: $1, n: $2} if absent else set {n: coalesce(n, 0) + $2}", `"a", 5`), 200,
			`{"affected":1}`,
		},
		{
			"a new document is inserted", "POST", "/query", query("insert into users {email: $1, n: $2} if absent else set {n: coalesce(n, 0) + $2} returning id, n", `"f", 5`), 200,
			`[{"id":9,"n":5}]`,
		},
		{
			"statements of a batch see the writes before them", "POST", "/batch",
			query("insert into users {email: $1} if absent", `"g"`) + "\n" + query("insert into users {email: $1} if absent", `"g"`) + "\n" +
				query("insert into users {email: $1} if absent else set {n: 1} returning n", `"g"`), 200,
			`{"ok":3,"results":[{"affected":1},{"affected":0},{"rows":[{"n":1}]}]}`,
		},
		{
			"an insert that matches two documents", "POST", "/query", query("insert into users {id: 1, email: 'b'} if absent else set {n: 0}", ``), 409,
			`{"error":"the id of the row is that of the document with id 1 and its email that of the one with id 2: if absent else set changes one line 1 column 19"}`,
		},
		{"all documents", "GET", "/users?select=id,email,n", "", 200, `[{"id":1,"email":"a","n":6},{"id":2,"email":"b","n":null},{"id":7,"email":"c","n":null},{"id":8,"email":"e","n":null},{"id":9,"email":"f","n":5},{"id":10,"email":"g","n":1}]`},
	})
	r.want(201, "POST", "/users?if=absent", `{"email": "short", "at": 0}`)
	r.want(201, "POST", "/users?if=absent", `{"email": "due", "at": "`+clock.Now().Format(time.RFC3339)+`"}`)
	clock.Advance(time.Minute) // not swept yet
	r.play([]step{
		{"a document that was expired on insert", "POST", "/users?if=absent", `{"email": "short"}`, 201, `{"inserted":1}`},
		{"an expired document", "POST", "/users?if=absent", `{"email": "due", "n": 1}`, 201, `{"inserted":1}`},
		{"the new document", "GET", "/users?email=due&select=n", "", 200, `[{"n":1}]`},
	})
}

func TestAnInsertIfAbsentReachesStreamsChangesAndStatistics(t *testing.T) {
	r := start(t, Config{})
	r.users("x")
	w := r.watch("/t/x/users/changes?select=email,n")
	w.expect(`seed 1 []`)
	const upsert = `insert into users [{email: \"a\", n: 1}, {email: \"b\", n: 1}] if absent else set {n: n + 1}`
	r.want(200, "POST", "/t/x/query", `{"query": "`+upsert+`"}`)
	w.expect(`change 3 [{"id":1,"email":"a","n":1} {"id":2,"email":"b","n":1}] [] false`)
	first := r.want(201, "POST", "/t/x/users?if=absent", `[{"email": "a"}, {"email": "c"}]`, "Idempotency-Key", "k")
	w.expect(`change 6 [{"id":3,"email":"c","n":null}] [] false`)
	if again := r.want(201, "POST", "/t/x/users?if=absent", `[{"email": "a"}, {"email": "c"}]`, "Idempotency-Key", "k"); again.body != first.body || again.body != `{"inserted":1}` {
		t.Errorf("replay under its key: got %s, want the first answer %s", again.body, first.body)
	}
	r.want(422, "POST", "/t/x/users", `[{"email": "a"}, {"email": "c"}]`, "Idempotency-Key", "k")
	nothing := r.want(201, "POST", "/t/x/users?if=absent", `{"email": "a"}`, "Idempotency-Key", "none")
	r.query("x", `del users where email = "a"`)
	w.expect(`change 8 [] [1] false`)
	if again := r.want(201, "POST", "/t/x/users?if=absent", `{"email": "a"}`, "Idempotency-Key", "none"); again.body != nothing.body || again.body != `{"inserted":0}` {
		t.Errorf("replay under its key: got %s, want the first answer %s", again.body, nothing.body)
	}
	if got := r.want(201, "POST", "/t/x/users?if=absent", `{"email": "b"}`); got.header.Get("Fenec-Seq") != "8" {
		t.Errorf("insert that wrote nothing: got headers %v, want position 8", got.header)
	}
	r.want(200, "POST", "/t/x/query", `{"query": "`+upsert+`"}`)
	w.expect(`change 10 [{"id":2,"email":"b","n":2} {"id":4,"email":"a","n":1}] [] false`)
	r.wantChanges("since=8", "10",
		`{"seq":9,"at":0,"collection":"users","op":"put","id":4,"doc":{"id":4,"email":"a","n":1,"at":null}}`,
		`{"seq":10,"at":0,"collection":"users","op":"put","id":2,"doc":{"id":2,"email":"b","n":2,"at":null}}`)
	r.want(400, "POST", "/t/x/query", `{"query": "`+upsert+`"}`, "Fenec-Wait", "1000")
	r.want(400, "POST", "/t/x/users?if=absent", `{"email": "a"}`, "Fenec-Wait", "1000")
	stats := r.want(200, "GET", "/t/x/_stats/statements", "").body
	for _, shape := range []string{"insert into users ? if absent else set {n: n + ?}", "insert into users ? if absent"} {
		if !strings.Contains(stats, `"`+shape+`"`) {
			t.Errorf("got statistics %s, want %s in them", stats, shape)
		}
	}
}

// TestAnInsertIfAbsentWakesAClaim has an insert change a row so that it matches a waiting claim.
func TestAnInsertIfAbsentWakesAClaim(t *testing.T) {
	r := start(t, Config{})
	r.users("x")
	r.query("x", `insert into users {email: "a", n: 0}`)
	claim := r.claim("/t/x/query", statement(`set users {n: 0} where n >= 2 returning email`))
	for range 2 {
		r.query("x", `insert into users {email: "a"} if absent else set {n: n + 1}`)
	}
	r.wantAnswer("the claim", claim, 200, `[{"email":"a"}]`)
}

// TestConcurrentInsertsIfAbsentWriteEachRowOnce has many clients insert the same rows. Each row is inserted once, and its
// counter equals the number of clients that set it.
func TestConcurrentInsertsIfAbsentWriteEachRowOnce(t *testing.T) {
	const clients, rows = 8, 25
	r := start(t, Config{})
	r.users("x")
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for i := range rows {
				for _, text := range []string{`insert into users {email: \"u%d\", n: 0} if absent`, `insert into users {email: \"u%d\", n: 0} if absent else set {n: n + 1}`} {
					if got, err := r.send("POST", "/t/x/query", `{"query": "`+fmt.Sprintf(text, i)+`"}`); err != nil || got.status != 200 {
						t.Errorf("insert: got %d %s, %v, want 200", got.status, got.body, err)
					}
				}
			}
		})
	}
	all.Wait()
	want := fmt.Sprintf(`[{"count":%d,"count(distinct email)":%d,"sum(n)":%d,"min(n)":%d,"max(n)":%d}]`, rows, rows, clients*rows, clients, clients)
	if got := r.query("x", "get users select count(*), count(distinct email), sum(n), min(n), max(n)"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
