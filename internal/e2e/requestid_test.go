package e2e

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"fenec/node"
	"fenec/router"
)

// kept is a log that a test reads.
type kept struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.Write(p)
}

// take returns the lines since it was last called, those that begin and end the test's servers left out.
func (k *kept) take(t testing.TB) []map[string]any {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	var lines []map[string]any
	for line := range strings.Lines(k.text.String()) {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%q is no line of a log: %v", line, err)
		}
		lines = append(lines, event)
	}
	k.text.Reset()
	return lines
}

func TestARequestHasOneIDAtRouterAndNode(t *testing.T) {
	var nodeLog, routerLog kept
	p := startPairWith(t, node.Config{Log: zerolog.New(&nodeLog), Slow: 1}, router.Config{Log: zerolog.New(&routerLog)})
	nodeLog.take(t)
	long := strings.Repeat("x", 128)
	for _, tc := range []struct{ name, lines, id string }{
		{"none", "", ""},
		{"one of the client's", "X-Request-Id: mine\r\n", "mine"},
		{"one in another case", "x-REQUEST-id:  mine \r\n", "mine"},
		{"the longest", "X-Request-Id: " + long + "\r\n", long},
		{"the first of two", "X-Request-Id: one\r\nX-Request-Id: two\r\n", "one"},
		{"one that is too long", "X-Request-Id: " + long + "x\r\n", ""},
		{"one with a blank", "X-Request-Id: a b\r\n", ""},
		{"an empty one", "X-Request-Id:\r\n", ""},
		{"one that cannot be used before one that can", "X-Request-Id: \"\r\nX-Request-Id: two\r\n", "two"},
		{"one that Connection names", "X-Request-Id: mine\r\nConnection: x-request-id\r\n", ""},
	} {
		for way, addr := range map[string]string{"straight": p.straight, "through the router": p.through} {
			for what, request := range map[string]string{
				"a statement": "POST /t/acme/query HTTP/1.1\r\nHost: a\r\n" + tc.lines + "Content-Length: 24\r\n\r\n" + `{"query":"get books   "}`,
				"a batch":     "POST /t/acme/batch HTTP/1.1\r\nHost: a\r\n" + tc.lines + "Content-Length: 24\r\n\r\n" + `{"query":"get books   "}`,
				"a read":      "GET /t/acme/books HTTP/1.1\r\nHost: a\r\n" + tc.lines + "\r\n",
				"a write":     "PATCH /t/acme/books?year=1 HTTP/1.1\r\nHost: a\r\n" + tc.lines + "Content-Length: 10\r\n\r\n" + `{"year":2}`,
				"a claim":     "DELETE /t/acme/books?title=none HTTP/1.1\r\nHost: a\r\nFenec-Wait: 1\r\n" + tc.lines + "Idempotency-Key: 1\r\n\r\n",
			} {
				t.Run(tc.name+", "+what+", "+way, func(t *testing.T) {
					got := p.send(addr, request)
					ids := got.header["X-Request-Id"]
					if got.status != 200 || len(ids) != 1 || ids[0] == "" || tc.id != "" && ids[0] != tc.id {
						t.Fatalf("answered %d with the ids %q, want %q", got.status, ids, tc.id)
					}
					lines := nodeLog.take(t)
					if len(lines) == 0 && what != "a claim" { // which finds its answer from the second time on
						t.Error("the node's log says nothing")
					}
					for _, line := range lines {
						if line["request"] != ids[0] {
							t.Errorf("the node's log has %v, want the request %s", line, ids[0])
						}
					}
				})
			}
		}
	}
}

func TestLinesAboutRequestsHaveTheirID(t *testing.T) {
	var nodeLog, routerLog kept
	p := startPairWith(t, node.Config{Log: zerolog.New(&nodeLog)}, router.Config{Log: zerolog.New(&routerLog), Token: "router"})
	for _, tc := range []struct{ name, addr, request, nodes, routers string }{
		{"an admin route without its token", p.straight, "GET /_admin/stats HTTP/1.1\r\n", "without the right token", ""},
		{"a tenant is made", p.through, "PUT /_shard/tenants/beta HTTP/1.1\r\n", "an admin request", "a tenant is created"},
		{"and deleted", p.through, "DELETE /_shard/tenants/beta HTTP/1.1\r\n", "an admin request", "a tenant is deleted"},
		{"a move that fails", p.through, "POST /_shard/tenants/acme/move HTTP/1.1\r\nContent-Length: 11\r\n", "", "a move failed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nodeLog.take(t)
			routerLog.take(t)
			text := strings.Replace(tc.request, "\r\n", "\r\nHost: a\r\nAuthorization: Bearer router\r\nX-Request-Id: this-one\r\n", 1) + "\r\n"
			if strings.Contains(text, "Content-Length") {
				text += `{"to":"n1"}`
			}
			p.send(tc.addr, text)
			for log, says := range map[*kept]string{&nodeLog: tc.nodes, &routerLog: tc.routers} {
				found := says == ""
				for _, line := range log.take(t) {
					message, _ := line["message"].(string)
					found = found || strings.Contains(message, says)
					if line["request"] == nil || log == &routerLog && line["request"] != "this-one" {
						t.Errorf("a line without the request's id: %v", line)
					}
				}
				if !found {
					t.Errorf("no line says %q", says)
				}
			}
		})
	}
}
