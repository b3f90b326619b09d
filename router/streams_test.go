package router

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// streaming is a node whose every GET of changes is a stream, until its client leaves.
func streaming(c *scripted) {
	if !strings.HasSuffix(c.req.URL.Path, "/changes") {
		c.say(ok("yes"))
		return
	}
	c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
	io.Copy(io.Discard, c.Conn)
}

// listen opens a stream through the router.
func (r *running) listen() (net.Conn, *http.Response) {
	r.t.Helper()
	c := dial(r.t, r.addr)
	io.WriteString(c, "GET /t/acme/c/changes HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return c, resp
}

func TestStreamsAreCountedApartFromConnections(t *testing.T) {
	rt, _ := routed(t, Config{MaxConnections: 3, MaxStreams: 2}, streaming)
	var open []net.Conn
	for range 2 {
		c, resp := rt.listen()
		if resp.StatusCode != 200 {
			t.Fatalf("a stream is answered %d", resp.StatusCode)
		}
		open = append(open, c)
	}
	for range 3 { // the connection of the refusal is kept
		_, resp := rt.listen()
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || !strings.Contains(string(body), "live queries") {
			t.Errorf("past the ceiling: %d %v %s", resp.StatusCode, resp.Header, body)
		}
		if !resp.Close {
			break
		}
	}
	if got := raw(t, rt.addr, "GET /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !strings.HasSuffix(got, "yes") {
		t.Errorf("beside the streams a request is answered %q", got)
	}
	metrics := rt.must("GET", "/_metrics", "", 200)
	for _, want := range []string{"fenec_router_streams 2\n", "fenec_router_streams_max 2\n", "fenec_router_connections_max 3\n"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %q", want)
		}
	}
	open[0].Close()
	eventually(t, "a stream has ended", func() bool { return rt.streams.Load() == 1 })
	if _, resp := rt.listen(); resp.StatusCode != 200 {
		t.Errorf("once there is room a stream is answered %d", resp.StatusCode)
	}
}

func TestAStreamThatTheRouterRefusesEndsAtTheNode(t *testing.T) {
	ended := make(chan struct{}, 2)
	rt, _ := routed(t, Config{MaxStreams: 1}, func(c *scripted) {
		streaming(c)
		ended <- struct{}{}
	})
	rt.listen()
	if _, resp := rt.listen(); resp.StatusCode != 503 {
		t.Fatalf("the second is answered %d", resp.StatusCode)
	}
	<-ended
	if n := rt.transport.open.Load(); n > 2 { // the stream's, and the one the tenant was made over
		t.Errorf("%d connections to nodes are open", n)
	}
}

// Idle connections to one node are closed for requests to another.
func TestIdleConnectionsToNodesMakeRoom(t *testing.T) {
	const nodes = 12
	rt := start(t, Config{MaxConnections: 4, MaxStreams: 4})
	for i := range nodes {
		s := newScript(t, answering(ok("yes")))
		rt.must("PUT", fmt.Sprintf("/_shard/nodes/n%d", i), `{"addr":"`+s.addr()+`","token":"secret"}`, 201)
		rt.must("PUT", fmt.Sprintf("/_shard/tenants/t%d", i), fmt.Sprintf(`{"node":"n%d"}`, i), 201)
	}
	for i := range 3 * nodes {
		if got := raw(t, rt.addr, fmt.Sprintf("GET /t/t%d/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", i%nodes)); !strings.HasSuffix(got, "yes") {
			t.Fatalf("request %d is answered %q", i, got)
		}
		if n := rt.transport.open.Load(); n > rt.budget.upstream {
			t.Fatalf("%d connections to nodes are open, and %d should be", n, rt.budget.upstream)
		}
	}
}

func TestConnectionsToNodesAreCounted(t *testing.T) {
	rt, node := routed(t, Config{}, func(c *scripted) {
		switch c.req.URL.RawQuery {
		case "close":
			c.Close()
		case "half":
			c.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
			c.Close()
		case "stream":
			c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
		default:
			c.say(ok(strings.Repeat("x", 100<<10)))
		}
	})
	for range 3 {
		for _, query := range []string{"", "close", "half", "stream"} {
			for _, method := range []string{"GET", "POST"} {
				raw(t, rt.addr, method+" /t/acme/c?"+query+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			}
		}
	}
	pool := &rt.node("n1").link.Load().pool
	kept := func() int64 {
		pool.mu.Lock()
		defer pool.mu.Unlock()
		return int64(len(pool.kept))
	}
	eventually(t, "only what is kept is counted", func() bool { return rt.transport.open.Load() == kept() })
	node.close()
	raw(t, rt.addr, "GET /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if n := rt.transport.open.Load(); n != kept() {
		t.Errorf("%d connections are counted once a node cannot be reached", n)
	}
}

func TestTheDescriptorsAreDivided(t *testing.T) {
	for _, c := range []Config{{}, {MaxConnections: 10}, {MaxConnections: 5000, MaxStreams: 5000}} {
		for _, descriptors := range []int{64, 96, 128, 256, 1024, 4096, 1 << 20} {
			c := c.withDefaults()
			c.Descriptors = descriptors
			b := newBudget(c)
			if b.connections > c.MaxConnections || int(b.streams) > c.MaxStreams {
				t.Errorf("of %d there are %+v, which is more than was asked for", descriptors, b)
			}
			if b.upstream < int64(b.connections)+b.streams {
				t.Errorf("of %d there are %+v, and some request has no connection", descriptors, b)
			}
			if all := 2*int(b.upstream) + b.refusals + reservedDescriptors; all > descriptors {
				t.Errorf("of %d there are %+v, %d in all", descriptors, b, all)
			}
		}
	}
	if b := newBudget(Config{Descriptors: 1 << 20}.withDefaults()); b.connections != 1024 || b.streams != 1024 {
		t.Errorf("where there are many, it is %+v", b)
	}
}
