package router

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// The retry rule, seen from the node: how often it got a request whose answer was lost.
func TestARequestIsRetriedOnlyIfItMayBe(t *testing.T) {
	cases := []struct {
		name, request string
		sends         int // requests that the node gets if it never answers
	}{
		{"a GET goes again once", "GET /t/acme/c HTTP/1.1\r\nHost: x\r\n\r\n", 2},
		{"a HEAD goes again once", "HEAD /t/acme/c HTTP/1.1\r\nHost: x\r\n\r\n", 2},
		{"an OPTIONS goes again once", "OPTIONS /t/acme/c HTTP/1.1\r\nHost: x\r\n\r\n", 2},
		{"a POST does not", "POST /t/acme/c HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", 1},
		{"a PATCH does not", "PATCH /t/acme/c HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", 1},
		{"a DELETE does not", "DELETE /t/acme/c HTTP/1.1\r\nHost: x\r\n\r\n", 1},
		{"a POST with a key goes again once", "POST /t/acme/c HTTP/1.1\r\nHost: x\r\nidempotency-key: k\r\nContent-Length: 2\r\n\r\n{}", 2},
		{"a POST whose Connection names its key does not", "POST /t/acme/c HTTP/1.1\r\nConnection: Idempotency-Key\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n{}", 1},
		{"a POST whose Connection names its key among others does not", "POST /t/acme/c HTTP/1.1\r\nIdempotency-Key: k\r\nConnection: x ,\tiDEMPOTENCY-kEY\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", 1},
		{"a POST of two keys that Connection names does not", "POST /t/acme/c HTTP/1.1\r\nIdempotency-Key: k\r\nIdempotency-Key: l\r\nConnection: idempotency-key\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", 1},
		{"a POST whose Connection names another header goes again once", "POST /t/acme/c HTTP/1.1\r\nConnection: Idempotency\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n{}", 2},
		{"a GET whose Connection names a key goes again once", "GET /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: Idempotency-Key\r\nIdempotency-Key: k\r\n\r\n", 2},
		{"a POST with an empty key does not", "POST /t/acme/c HTTP/1.1\r\nHost: x\r\nIdempotency-Key:\r\nContent-Length: 2\r\n\r\n{}", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rt, node := routed(t, Config{}, func(c *scripted) { c.Close() })
			got := raw(t, rt.addr, strings.Replace(c.request, "Host: x\r\n", "Host: x\r\nConnection: close\r\n", 1))
			if !strings.HasPrefix(got, "HTTP/1.1 502 ") {
				t.Errorf("answered %q", got)
			}
			seen := node.requests()
			if len(seen) != c.sends {
				t.Errorf("the node saw it %d times, want %d", len(seen), c.sends)
			}
			for _, one := range seen {
				if c.sends > 1 && strings.Contains(c.request, "POST") && !strings.Contains(strings.ToLower(one), "idempotency-key: k") {
					t.Errorf("sent %d times, the POST went without its key: %q", c.sends, one)
				}
			}
		})
	}
}

// A node that dies between any two bytes of its answer.
func TestAnAnswerCutAnywhereIsNoAnswer(t *testing.T) {
	text := answerText("200 OK", "X-A: 1\r\n", "hello")
	cut := 0
	rt, node := routed(t, Config{}, func(c *scripted) {
		c.say(text[:cut])
		c.Close()
	})
	for cut = range len(text) {
		before := len(node.requests())
		got := raw(t, rt.addr, "POST /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
		if !strings.HasPrefix(got, "HTTP/1.1 502 ") || !strings.Contains(got, "may have been carried out") {
			t.Fatalf("cut at %d a POST is answered %q", cut, got)
		}
		if n := len(node.requests()) - before; n != 1 {
			t.Fatalf("cut at %d the node saw the POST %d times", cut, n)
		}
	}
	t.Run("a GET is sent again and answered whole", func(t *testing.T) {
		for cut := range len(text) {
			rt, node := routed(t, Config{}, func(c *scripted) {
				if c.n == 1 {
					c.say(text[:cut])
					c.Close()
					return
				}
				c.say(text)
			})
			conn := dial(t, rt.addr)
			io.WriteString(conn, "GET /t/acme/c HTTP/1.1\r\nHost: x\r\n\r\n")
			got := make([]byte, len(text))
			if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
				t.Fatalf("cut at %d: got %q, %v", cut, got, err)
			}
			if n := len(node.requests()); n != 2 {
				t.Fatalf("cut at %d the node saw the GET %d times", cut, n)
			}
		}
	})
}

func TestAnIdleConnectionThatTheNodeHasClosedIsDropped(t *testing.T) {
	closed := make(chan struct{}, 1)
	rt, node := routed(t, Config{}, func(c *scripted) {
		c.say(ok("yes"))
		c.Close() // without a word, as a node does for silence
		closed <- struct{}{}
	})
	for i := 1; i <= 20; i++ {
		// A POST may not go again: it must not meet the dead connection at all.
		got := raw(t, rt.addr, "POST /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
		if !strings.HasSuffix(got, "\r\n\r\nyes") {
			t.Fatalf("request %d is answered %q", i, got)
		}
		<-closed
		eventually(t, "the end has arrived", func() bool { return rt.keptQuiet("n1") == 0 })
	}
	if n := len(node.requests()); n != 20 {
		t.Errorf("the node saw %d requests", n)
	}
}

// keptQuiet returns how many idle connections to a node look alive.
func (r *running) keptQuiet(node string) (n int) {
	p := &r.node(node).link.Load().pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.kept {
		if w.Fresh() {
			n++
		}
	}
	return n
}

func TestAConnectionWithBytesAfterItsAnswerIsNotKept(t *testing.T) {
	rt, node := routed(t, Config{}, func(c *scripted) { c.say(ok("yes") + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen") })
	for range 5 {
		got := raw(t, rt.addr, "GET /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if !strings.HasSuffix(got, "\r\n\r\nyes") {
			t.Fatalf("answered %q", got)
		}
	}
	if n := node.connections(); n < 5 {
		t.Errorf("it took %d connections to the node, want one a request", n)
	}
}

func TestAnUnreachableNodeIsA502(t *testing.T) {
	rt, node := routed(t, Config{}, answering(ok("yes")))
	node.close()
	for _, method := range []string{"GET", "POST"} {
		status, body := rt.call(method, "/t/acme/c", "")
		if status != 502 || body != `{"error":"node n1 cannot be reached"}` {
			t.Errorf("%s is answered %d %s", method, status, body)
		}
	}
	if body := rt.must("GET", "/_metrics", "", 200); !strings.Contains(body, `fenec_router_upstream_errors_total{node="n1"} 2`) {
		t.Errorf("the errors are not counted:\n%s", body)
	}
}

func TestASilentNodeIsA504WithoutARetry(t *testing.T) {
	hold := make(chan struct{})
	rt, node := routed(t, Config{UpstreamTimeout: 50 * time.Millisecond}, func(c *scripted) {
		if c.req.Method == "POST" {
			c.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
		}
		<-hold
	})
	defer close(hold)
	began := time.Now()
	for i, method := range []string{"GET", "POST"} {
		if status, body := rt.call(method, "/t/acme/c", ""); status != 504 {
			t.Errorf("%s is answered %d %s", method, status, body)
		}
		if n := len(node.requests()); n != i+1 {
			t.Errorf("the node saw %d requests", n)
		}
	}
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("both were given up after %s", took)
	}
}

func TestARequestsOwnWaitIsAddedToTheTimeout(t *testing.T) {
	const timeout = 500 * time.Millisecond // which a busy machine registers a node in
	rt, _ := routed(t, Config{UpstreamTimeout: timeout}, func(c *scripted) {
		time.Sleep(timeout + timeout/4) // what is measured: an answer later than the timeout alone
		c.say(ok("yes"))
	})
	var asking sync.WaitGroup
	for _, how := range []string{
		"GET /t/acme/c HTTP/1.1\r\nHost: x\r\nFenec-Wait: 9000\r\nConnection: close\r\n\r\n",
		"GET /t/acme/c HTTP/1.1\r\nHost: x\r\nFenec-Wait: 9s\r\nConnection: close\r\n\r\n",
		"GET /t/acme/c HTTP/1.1\r\nHost: x\r\nFenec-After: 7\r\nConnection: close\r\n\r\n",
		"GET /t/acme/c HTTP/1.1\r\nHost: x\r\nFenec-Wait: 99999999999999999999\r\nConnection: close\r\n\r\n",
		"GET /t/acme/_changes?since=1&wait=9000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	} {
		asking.Go(func() {
			if got := raw(t, rt.addr, how); !strings.HasSuffix(got, "\r\n\r\nyes") {
				t.Errorf("%q is answered %q", how, got)
			}
		})
	}
	asking.Wait()
}

// What a node is not sent adds nothing to the time it has.
func TestAWaitThatConnectionNamesIsNotAddedToTheTimeout(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	rt, _ := routed(t, Config{UpstreamTimeout: 50 * time.Millisecond}, func(*scripted) { <-hold })
	for _, wait := range []string{"Fenec-Wait: 30000\r\nConnection: fenec-wait", "Connection: x, Fenec-After\r\nFenec-After: 7"} {
		got := raw(t, rt.addr, "GET /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+wait+"\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 504 ") || !strings.Contains(got, "within 50ms") {
			t.Errorf("%q is answered %q", wait, got)
		}
	}
}

func TestAStoppingRouterEndsTheWaitsOfRequestsThatAskToBeHeld(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	rt, _ := routed(t, Config{}, func(c *scripted) {
		close(asked)
		<-release
	})
	defer close(release)
	answer := make(chan string, 1)
	go func() {
		answer <- raw(t, rt.addr, "GET /t/acme/_changes?since=1&wait=30000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	}()
	<-asked
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := rt.Shutdown(ctx); err != nil {
		t.Errorf("the shutdown: %v", err)
	}
	if got := <-answer; !strings.HasPrefix(got, "HTTP/1.1 503 ") || !strings.Contains(got, "Retry-After: 1") {
		t.Errorf("answered %q", got)
	}
}

func TestAnInvalidAnswerIsA502WithoutARetry(t *testing.T) {
	for _, text := range []string{
		"SSH-2.0-x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 65<<10) + "\r\n\r\n",
	} {
		rt, node := routed(t, Config{}, answering(text))
		if status, body := rt.call("GET", "/t/acme/c", ""); status != 502 {
			t.Errorf("%.40q is answered %d %s", text, status, body)
		}
		if n := len(node.requests()); n != 1 {
			t.Errorf("%.40q: the node saw %d requests", text, n)
		}
	}
}

// A request that could not be sent whole was not run: it is sent again, whatever it is.
func TestARequestThatWasNotSentWholeIsRetried(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	node := newScript(t, answering(ok("yes")))
	rt := start(t, Config{})
	rt.must("PUT", "/_shard/nodes/n1", `{"addr":"`+node.addr()+`","token":"secret"}`, 201)
	rt.must("PUT", "/_shard/tenants/acme", "", 201)
	// The first connection takes a little of the request and resets; the ones after it reach the node.
	done := make(chan struct{})
	go func() {
		defer close(done)
		for first := true; ; first = false {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if first {
				io.ReadFull(c, make([]byte, 1000))
				c.(*net.TCPConn).SetLinger(0)
				c.Close()
				continue
			}
			to, err := net.Dial("tcp", node.addr())
			if err != nil {
				c.Close()
				return
			}
			go func() { io.Copy(to, c); to.(*net.TCPConn).CloseWrite() }()
			io.Copy(c, to)
			c.Close()
			to.Close()
		}
	}()
	fresh, err := newLink(l.Addr().String(), "secret", &rt.transport)
	if err != nil {
		t.Fatal(err)
	}
	rt.node("n1").link.Swap(fresh).pool.close()
	body := strings.Repeat("x", 32<<20) // more than sockets hold
	status, answer := rt.call("POST", "/t/acme/c", body)
	if status != 200 || answer != "yes" {
		t.Errorf("answered %d %s", status, answer)
	}
	if seen := node.requests(); len(seen) != 1 || !strings.HasSuffix(seen[0], body) {
		t.Errorf("the node saw %d requests", len(seen))
	}
	l.Close()
	rt.node("n1").link.Load().pool.close()
	<-done
}

func TestANodeMayAnswerBeforeItHasReadEverything(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	node := newScript(t, answering(ok("yes")))
	rt := start(t, Config{})
	rt.must("PUT", "/_shard/nodes/n1", `{"addr":"`+node.addr()+`","token":"secret"}`, 201)
	rt.must("PUT", "/_shard/tenants/acme", "", 201)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		io.ReadFull(c, make([]byte, 1000))
		io.WriteString(c, answerText("413 Content Too Large", "Connection: close\r\n", "no"))
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
		c.Close()
	}()
	fresh, err := newLink(l.Addr().String(), "secret", &rt.transport)
	if err != nil {
		t.Fatal(err)
	}
	rt.node("n1").link.Swap(fresh).pool.close()
	if status, answer := rt.call("POST", "/t/acme/c", strings.Repeat("x", 8<<20)); status != 413 || answer != "no" {
		t.Errorf("answered %d %s", status, answer)
	}
}
