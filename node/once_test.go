package node

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// sameAnswer checks that got is a replay of first.
func sameAnswer(t *testing.T, name string, first, got reply) {
	t.Helper()
	if got.status != first.status || got.body != first.body {
		t.Errorf("%s, sent again: got %d %s, expected %d %s", name, got.status, got.body, first.status, first.body)
	}
	for _, header := range []string{"Fenec-Seq", "Fenec-History", "Content-Type"} {
		if got.header.Get(header) != first.header.Get(header) || first.header.Get(header) == "" {
			t.Errorf("%s, sent again: got %s %q, expected %q", name, header, got.header.Get(header), first.header.Get(header))
		}
	}
	if first.header.Get("Idempotent-Replayed") != "" || got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s: got Idempotent-Replayed %q and then %q, expected none and then true", name, first.header.Get("Idempotent-Replayed"), got.header.Get("Idempotent-Replayed"))
	}
}

func TestAWriteUnderAnIdempotencyKeyRunsOnce(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 3)
	writes := []struct{ name, method, path, body string }{
		{"an insert", "POST", "/c", `{"n": 10}`},
		{"an insert of many", "POST", "/c", `[{"n": 11}, {"n": 11}]`},
		{"an update", "PATCH", "/c?n=lt.5", `{"s": "small"}`},
		{"an update of all", "PATCH", "/c/all", `{"s": "all"}`},
		{"a delete that finds nothing", "DELETE", "/c?n=77", ""},
		{"a put", "POST", "/query", `{"query": "put c {n: $1}", "params": [12]}`},
		{"a set that returns", "POST", "/query", `{"query": "set c {n: n + 1} where n < 5 returning id, n"}`},
		{"a create", "POST", "/query", `{"query": "create collection d (x int)"}`},
		{"a batch", "POST", "/batch", "{\"query\": \"put c {n: 13}\"}\n{\"query\": \"get c count\"}\n{\"query\": \"del c where n = 11\"}\n"},
	}
	firsts := make([]reply, len(writes))
	for i, w := range writes {
		key := fmt.Sprintf("key %d", i)
		firsts[i] = r.do(w.method, "/t/x"+w.path, w.body, "Idempotency-Key", key)
		if firsts[i].status/100 != 2 {
			t.Fatalf("%s: got %d %s, expected success", w.name, firsts[i].status, firsts[i].body)
		}
		r.query("x", "put c {n: 1000}") // advances the sequence number
		sameAnswer(t, w.name, firsts[i], r.do(w.method, "/t/x"+w.path, w.body, "idempotency-key", key))
		r.want(422, w.method, "/t/x"+w.path, w.body+" ", "Idempotency-Key", key)
		r.want(422, w.method, "/t/x/"+w.path, w.body, "Idempotency-Key", key)
		r.want(422, "POST", "/t/x/c", `{"n": 14}`, "Idempotency-Key", key)
	}
	all := r.want(200, "GET", "/t/x/c", "").body
	again := func(where string) {
		t.Helper()
		for i, w := range writes {
			sameAnswer(t, w.name+" "+where, firsts[i], r.do(w.method, "/t/x"+w.path, w.body, "Idempotency-Key", fmt.Sprintf("key %d", i)))
		}
		if got := r.want(200, "GET", "/t/x/c", "").body; got != all {
			t.Errorf("%s: got the documents\n%s\nexpected\n%s", where, got, all)
		}
	}
	r.query("x", "compact")
	again("after a compact")
	r.wantAdmin(200, "POST", "tenants/x/freeze", "")
	again("while writes are frozen")
	r.wantAdmin(200, "POST", "tenants/x/thaw", "")
	r.closeIdle("x")
	again("after it was closed")
	if got := r.want(200, "GET", "/t/x/", "").body; !strings.HasSuffix(got, `"collections":["c","d"]}`) {
		t.Errorf("got the root %s, expected the collections c and d", got)
	}
	for _, path := range []string{"/collections", "/_schema", "/_schema?as=fenecql"} {
		if got := r.want(200, "GET", "/t/x"+path, "").body; strings.Contains(got, "idempotency") {
			t.Errorf("%s: got %s, expected no collection of keys", path, got)
		}
	}
	r.want(404, "GET", "/t/x/_idempotency", "")
	r.want(404, "POST", "/t/x/query", `{"query": "get _idempotency"}`)
}

func TestReadsAndFailedWritesStoreNoIdempotencyKey(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 1)
	key := []string{"Idempotency-Key", "k"}
	r.want(200, "GET", "/t/x/c", "", key...)
	r.want(200, "POST", "/t/x/query", `{"query": "get c"}`, key...)
	r.want(200, "POST", "/t/x/batch", `{"query": "get c count"}`, key...)
	r.want(400, "POST", "/t/x/c", `{"n": "x"}`, key...)
	r.want(409, "POST", "/t/x/c", `{"id": 1}`, key...)
	r.want(404, "PATCH", "/t/x/d?n=1", `{"n": 2}`, key...)
	r.want(412, "POST", "/t/x/query", `{"query": "del c where n = 1 require 2"}`, key...)
	r.want(409, "POST", "/t/x/batch", "{\"query\": \"put c {n: 2}\"}\n{\"query\": \"insert into c {id: 1}\"}", key...)
	r.want(201, "POST", "/t/x/c", `{"n": 2}`, key...)
	r.want(200, "POST", "/t/x/query", `{"query": "get c"}`, key...)
	mismatch := r.want(422, "POST", "/t/x/batch", `{"query": "put c {n: 2}"}`, key...)
	if strings.Contains(mismatch.body, "completed") {
		t.Errorf("got %s for the key of another request, expected no position of a statement", mismatch.body)
	}
	for _, bad := range []string{"", strings.Repeat("k", 256), "é"} {
		r.want(400, "POST", "/t/x/c", `{"n": 2}`, "Idempotency-Key", bad)
		r.want(200, "GET", "/t/x/c", "", "Idempotency-Key", bad)
	}
	if got := r.count("x"); got != `{"count":2}` {
		t.Errorf("got %s, expected 2 documents", got)
	}
}

func TestParallelRequestsWithOneKeyRunOnce(t *testing.T) {
	const requests = 50
	r := start(t, Config{})
	r.fill("x", 0)
	for round := range 5 {
		var group sync.WaitGroup
		var first atomic.Pointer[reply]
		answers := make([]reply, requests)
		for i := range requests {
			group.Go(func() {
				got, err := r.send("POST", "/t/x/c", fmt.Sprintf(`{"n": %d}`, round), "Idempotency-Key", fmt.Sprint("round ", round))
				if err != nil {
					t.Error(err)
					return
				}
				answers[i] = got
				if got.header.Get("Idempotent-Replayed") == "" && !first.CompareAndSwap(nil, &answers[i]) {
					t.Errorf("round %d: got a second response that is no replay, expected one", round)
				}
			})
		}
		group.Wait()
		if first.Load() == nil {
			t.Fatalf("round %d: got only replays, expected one other response", round)
		}
		for i := range answers {
			if &answers[i] != first.Load() {
				sameAnswer(t, "a request", *first.Load(), answers[i])
			}
		}
		if got, want := r.count("x"), fmt.Sprintf(`{"count":%d}`, round+1); got != want {
			t.Errorf("round %d: got %s, expected %s", round, got, want)
		}
	}
}

func TestExpiredIdempotencyKeysAreDeleted(t *testing.T) {
	clock := newClock()
	r := start(t, Config{Clock: clock.Now, IdempotencyTTL: time.Minute})
	r.fill("x", 0)
	for i := range 3 {
		r.want(201, "POST", "/t/x/c", `{"n": 1}`, "Idempotency-Key", fmt.Sprint(i))
	}
	seq := func() string { return r.want(200, "DELETE", "/t/x/c?n=5", "").header.Get("Fenec-Seq") }
	if got := seq(); got != "8" { // two collections, three documents, three keys
		t.Errorf("got the sequence number %s, expected 8", got)
	}
	clock.Advance(time.Minute)
	eventually(t, "the keys are deleted", func() bool { return seq() == "11" })
	r.want(201, "POST", "/t/x/c", `{"n": 1}`, "Idempotency-Key", "0")
	if got := r.count("x"); got != `{"count":4}` {
		t.Errorf("got %s, expected 4 documents", got)
	}
}

// A node that refuses writes for lack of memory still replays the responses of earlier writes.
func TestANodePastItsMemoryReplaysEarlierWrites(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 1)
	writes := []struct{ path, body string }{
		{"/c", `{"n": 2}`},
		{"/query", `{"query": "put c {n: 3}"}`},
		{"/batch", `{"query": "put c {n: 4}"}`},
	}
	firsts := make([]reply, len(writes))
	for i, w := range writes {
		firsts[i] = r.do("POST", "/t/x"+w.path, w.body, "Idempotency-Key", fmt.Sprint(i))
	}
	r.stop()
	r = start(t, Config{Dir: r.config.Dir, MaxMemory: 1})
	for i, w := range writes {
		sameAnswer(t, w.path, firsts[i], r.do("POST", "/t/x"+w.path, w.body, "Idempotency-Key", fmt.Sprint(i)))
		r.want(422, "POST", "/t/x"+w.path, w.body+" ", "Idempotency-Key", fmt.Sprint(i))
		r.want(507, "POST", "/t/x"+w.path, w.body, "Idempotency-Key", "new")
		r.want(507, "POST", "/t/x"+w.path, w.body)
		r.want(403, "POST", "/t/x"+w.path, w.body, "Fenec-Read", "replica")
	}
}
