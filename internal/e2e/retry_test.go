package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// losing is a server in front of a node: of each key's first request the node runs the write and nobody has its answer.
func losing(t *testing.T, node *process) (addr string) {
	t.Helper()
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: node.addr})
	var seen sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("Idempotency-Key"); key != "" {
			if _, again := seen.LoadOrStore(key, true); !again {
				forward.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			}
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return strings.TrimPrefix(server.URL, "http://")
}

// keyed sends a write under a key and answers its body, and whether it was a replay.
func keyed(t *testing.T, method, url, key, body string) (answer string, replayed bool) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s under the key %s: %d %s, %v", method, url, key, resp.StatusCode, text, err)
	}
	return fmt.Sprint(resp.StatusCode, string(text), resp.Header["Fenec-Seq"], resp.Header["Fenec-History"]), resp.Header.Get("Idempotent-Replayed") == "true"
}

func TestAWriteWithAKeyRunsOnceThoughItsAnswerWasLost(t *testing.T) {
	t.Parallel()
	router := startRouter(t, filepath.Join(t.TempDir(), "shard.fenec"))
	record(t, router, "n1", losing(t, startNode(t, t.TempDir())))
	record(t, router, "n2", startNode(t, t.TempDir()).addr)
	must(t, 201, "PUT", router.url()+"/_shard/tenants/acme", `{"node": "n1"}`)
	tenant := router.url() + "/t/acme"
	query(t, tenant, "create collection c (n int)")
	writes := []struct{ method, path, body string }{
		{"POST", "/c", `{"n": 1}`},
		{"POST", "/c", `[{"n": 2}, {"n": 3}]`},
		{"PATCH", "/c/all", `{"n": 7}`},
		{"POST", "/query", queryBody("set c {n: n + 1} returning id, n")},
		{"POST", "/batch", queryBody("put c {n: 9}") + "\n" + queryBody("del c where id = 1")},
		{"DELETE", "/c?id=2", ""},
	}
	firsts := make([]string, len(writes))
	for i, w := range writes {
		answer, replayed := keyed(t, w.method, tenant+w.path, fmt.Sprint("key ", i), w.body)
		if firsts[i] = answer; !replayed {
			t.Errorf("%s %s: the router did not send it again", w.method, w.path)
		}
	}
	all := must(t, 200, "GET", tenant+"/c", "")
	if want := `[{"id":3,"n":8},{"id":4,"n":9}]`; all != want {
		t.Errorf("the documents are %s, want %s", all, want)
	}
	must(t, 200, "POST", router.url()+"/_shard/tenants/acme/move", `{"to": "n2"}`)
	for i, w := range writes {
		answer, replayed := keyed(t, w.method, tenant+w.path, fmt.Sprint("key ", i), w.body)
		if answer != firsts[i] || !replayed {
			t.Errorf("%s %s after a move: %s, want %s", w.method, w.path, answer, firsts[i])
		}
	}
	if got := must(t, 200, "GET", tenant+"/c", ""); got != all {
		t.Errorf("after a move the documents are %s, want %s", got, all)
	}
}
