package router

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func answering(text string) func(*scripted) {
	return func(c *scripted) { c.say(text) }
}

func TestARequestIsForwardedByteForByte(t *testing.T) {
	cases := []struct{ name, sent, got string }{
		{
			"headers keep their order, case and bytes",
			"GET /t/acme/c?a=%20b HTTP/1.1\r\nhOsT:x\r\nX-A:  1 \r\nx-a:\t2\r\nAccept: */*\r\n",
			"GET /t/acme/c?a=%20b HTTP/1.1\r\nhOsT:x\r\nX-A:  1 \r\nx-a:\t2\r\nAccept: */*\r\n",
		},
		{
			"an absolute target is reduced",
			"GET http://elsewhere/t/acme/c HTTP/1.1\r\nHost: x\r\n", "GET /t/acme/c HTTP/1.1\r\nHost: x\r\n",
		},
		{
			"empty segments stay for the node to skip",
			"GET /t//acme//c HTTP/1.1\r\nHost: x\r\n", "GET /t//acme//c HTTP/1.1\r\nHost: x\r\n",
		},
		{"a tenant alone is its root", "GET /t/acme HTTP/1.1\r\nHost: x\r\n", "GET /t/acme HTTP/1.1\r\nHost: x\r\n"},
		{"an escape is the node's to refuse", "GET /t/acme/%00%2f HTTP/1.1\r\nHost: x\r\n", "GET /t/acme/%00%2f HTTP/1.1\r\nHost: x\r\n"},
		{
			"hop-by-hop headers stay behind",
			"GET /t/acme/c HTTP/1.1\r\nA: 1\r\nConnection: keep-alive, X-Hop\r\nKeep-Alive: 5\r\nB: 2\r\nX-HOP: gone\r\nTE: gzip\r\n" +
				"Trailer: X\r\nUpgrade: h2c\r\nProxy-Authorization: p\r\nproxy-anything: q\r\nHost: x\r\nC: 3\r\n",
			"GET /t/acme/c HTTP/1.1\r\nA: 1\r\nB: 2\r\nHost: x\r\nC: 3\r\n",
		},
		{
			"no client speaks for the router",
			"GET /t/acme/c HTTP/1.1\r\nHost: x\r\nFenec-Router: 10.0.0.1 00\r\nfenec-router-x: 1\r\nX-Forwarded-For: 10.0.0.2\r\n",
			"GET /t/acme/c HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 10.0.0.2\r\n",
		},
		{
			"HTTP/1.0 without a host gets the node's",
			"GET /t/acme/c HTTP/1.0\r\nA: 1\r\n", "GET /t/acme/c HTTP/1.1\r\nA: 1\r\nHost: NODE\r\n",
		},
	}
	rt, node := routed(t, Config{}, answering(ok("yes")))
	mark := "Fenec-Router: 127.0.0.1 " + hmacHex("secret", "127.0.0.1") + "\r\n"
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			named := func(text string) string { return strings.Replace(text, "\r\n", "\r\nx-request-id: 7\r\n", 1) }
			got := raw(t, rt.addr, named(c.sent)+"Connection: close\r\n\r\n")
			if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(got, "\r\n\r\nyes") {
				t.Errorf("answered %q", got)
			}
			want := strings.ReplaceAll(named(c.got), "NODE", node.addr()) + mark + "\r\n"
			if seen := node.requests(); len(seen) != i+1 || seen[i] != want {
				t.Errorf("the node was sent\n%q, want\n%q", seen[len(seen)-1], want)
			}
		})
	}
}

func TestABodyIsForwardedWithItsLength(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 100<<10/16)
	cases := []struct{ name, sent, line, body string }{
		{"one with a length", "Content-Length: 5\r\n\r\nhello", "Content-Length: 5", "hello"},
		{"an empty one", "Content-Length: 0\r\n\r\n", "Content-Length: 0", ""},
		{"one in chunks", "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nT: 1\r\n\r\n", "Content-Length: 5", "hello"},
		{"an empty one in chunks", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "Content-Length: 0", ""},
		{"one too long to be copied", "Content-Length: " + itoa(len(big)) + "\r\n\r\n" + big, "Content-Length: " + itoa(len(big)), big},
	}
	rt, node := routed(t, Config{}, answering(ok("yes")))
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := raw(t, rt.addr, "POST /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+c.sent)
			if !strings.HasSuffix(got, "\r\n\r\nyes") {
				t.Errorf("answered %q", got)
			}
			seen := node.requests()
			if len(seen) != i+1 {
				t.Fatalf("the node saw %d requests", len(seen))
			}
			head, body, _ := strings.Cut(seen[i], "\r\n\r\n")
			if body != c.body || !strings.Contains(head, "\r\n"+c.line+"\r\n") || strings.Contains(head, "chunked") {
				t.Errorf("the node was sent %.300q", seen[i])
			}
		})
	}
}

func TestARequestMayArriveInAnyPieces(t *testing.T) {
	rt, node := routed(t, Config{}, answering(ok("yes")))
	text := "POST /t/acme/c HTTP/1.1\r\nHost: x\r\nX-Request-Id: 7\r\nContent-Length: 5\r\n\r\nhello"
	conn := dial(t, rt.addr)
	in := bufio.NewReader(conn)
	var first string
	for cut := 1; cut < len(text); cut++ {
		io.WriteString(conn, text[:cut])
		resp, body := exchangeOn(t, conn, in, text[cut:])
		if resp.StatusCode != 200 || body != "yes" {
			t.Fatalf("cut at %d: answered %d %q", cut, resp.StatusCode, body)
		}
		seen := node.requests()
		if first == "" {
			first = seen[0]
		}
		if seen[len(seen)-1] != first {
			t.Fatalf("cut at %d the node was sent %q, want %q", cut, seen[len(seen)-1], first)
		}
	}
	if n := node.connections(); n > 2 {
		t.Errorf("it took %d connections to the node", n)
	}
}

func TestAnAnswerMayArriveInAnyPieces(t *testing.T) {
	text := answerText("200 OK", "X-A: 1\r\nx-b:2\r\n", "hello")
	cut := make(chan int, 1)
	rt, _ := routed(t, Config{}, func(c *scripted) {
		at := <-cut
		c.say(text[:at])
		time.Sleep(200 * time.Microsecond) // so that the pieces are likely to arrive as two
		c.say(text[at:])
	})
	conn := dial(t, rt.addr)
	for at := range len(text) {
		cut <- at
		io.WriteString(conn, "GET /t/acme/c HTTP/1.1\r\nHost: x\r\n\r\n")
		got := make([]byte, len(text))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
			t.Fatalf("cut at %d: got %q, %v", at, got, err)
		}
	}
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	rt, _ := routed(t, Config{}, func(c *scripted) { c.say(ok(c.req.URL.RawQuery)) })
	var text, want strings.Builder
	for i := range 50 {
		text.WriteString("GET /t/acme/c?" + itoa(i) + " HTTP/1.1\r\nHost: x\r\n\r\n")
		want.WriteString(ok(itoa(i)))
	}
	conn := dial(t, rt.addr)
	io.WriteString(conn, text.String())
	got := make([]byte, want.Len())
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want.String() {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAnAnswerIsReturnedWithoutItsHops(t *testing.T) {
	cases := []struct{ name, method, answer, got string }{
		{"whole", "GET", answerText("201 Created", "X-A:1\r\nFenec-Seq: 7\r\n", "body"), answerText("201 Created", "X-A:1\r\nFenec-Seq: 7\r\n", "body")},
		{
			"without what is about the connection", "GET",
			"HTTP/1.1 200 OK\r\nA: 1\r\nConnection: keep-alive, x-b\r\nX-B: 2\r\nKeep-Alive: 9\r\nContent-Length: 2\r\nC: 3\r\n\r\nok",
			"HTTP/1.1 200 OK\r\nA: 1\r\nContent-Length: 2\r\nC: 3\r\n\r\nok",
		},
		{
			"with the length of a HEAD and no body", "HEAD",
			"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n",
		},
		{"with no body for 204", "GET", "HTTP/1.1 204 No Content\r\nA: 1\r\n\r\n", "HTTP/1.1 204 No Content\r\nA: 1\r\n\r\n"},
		{"with no body for 304", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"},
		{"without interim answers", "GET", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok("yes"), ok("yes")},
		{"with a status of no name", "GET", "HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rt, node := routed(t, Config{}, answering(c.answer))
			conn := dial(t, rt.addr)
			for range 3 { // the connections on both sides are reused and in step
				io.WriteString(conn, c.method+" /t/acme/c HTTP/1.1\r\nHost: x\r\n\r\n")
				got := make([]byte, len(c.got))
				if _, err := io.ReadFull(conn, got); err != nil || string(got) != c.got {
					t.Fatalf("got %q, %v, want %q", got, err, c.got)
				}
			}
			if n := node.connections(); n > 2 {
				t.Errorf("it took %d connections to the node", n)
			}
		})
	}
}

func TestALargeAnswerIsReturnedWhole(t *testing.T) {
	for _, size := range []int{4 << 10, 33 << 10, 64 << 10, 5 << 20} {
		body := strings.Repeat("x", size-1) + "!"
		rt, _ := routed(t, Config{}, answering(ok(body)))
		conn := dial(t, rt.addr)
		in := bufio.NewReader(conn)
		for range 3 {
			if _, got := exchangeOn(t, conn, in, "GET /t/acme/c HTTP/1.1\r\nHost: x\r\n\r\n"); got != body {
				t.Errorf("of %d bytes came %d", size, len(got))
			}
		}
	}
}

func TestTheRouterAnswersExpectItself(t *testing.T) {
	rt, node := routed(t, Config{}, answering(ok("yes")))
	conn := dial(t, rt.addr)
	io.WriteString(conn, "POST /t/acme/c HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n\r\n")
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	if n := len(node.requests()); n != 0 {
		t.Errorf("the node was sent %d requests before the body came", n)
	}
	io.WriteString(conn, "hello")
	rest, err := io.ReadAll(in)
	if err != nil || !strings.HasSuffix(string(rest), "\r\n\r\nyes") {
		t.Errorf("got %q, %v", rest, err)
	}
	if seen := node.requests(); len(seen) != 1 || strings.Contains(seen[0], "Expect") {
		t.Errorf("the node was sent %q", seen)
	}
	t.Run("and does not where it will not take the body", func(t *testing.T) {
		got := raw(t, rt.addr, "POST /t/nobody/c HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 404 ") {
			t.Errorf("got %q", got)
		}
	})
}

func TestARefusedRequestNeverReachesANode(t *testing.T) {
	rt, node := routed(t, Config{}, answering(ok("yes")))
	cases := []struct {
		name, request string
		status        string
	}{
		{"an unknown tenant", "GET /t/nobody/c HTTP/1.1\r\nHost: x\r\n\r\n", "404"},
		{"a tenant's name with a dot", "GET /t/a.b/c HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"a tenant's name with an escape", "GET /t/%61cme/c HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"a tenant's name in upper case", "GET /t/ACME/c HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"a path that goes up", "GET /t/acme/../x HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"a connection that names the host", "GET /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: Host\r\n\r\n", "400"},
		{"a connection that names the length", "POST /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: a, content-length\r\nContent-Length: 0\r\n\r\n", "400"},
		{"a connection that names the token", "GET /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: AUTHORIZATION\r\nAuthorization: x\r\n\r\n", "400"},
		{"a connection that names too much", "GET /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: " + strings.Repeat("x,", 65) + "\r\n\r\n", "400"},
		{"two lengths", "POST /t/acme/c HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", "400"},
		{"a length beside chunks", "POST /t/acme/c HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
		{"a bad chunk", "POST /t/acme/c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
		{"a body past the limit", "POST /t/acme/c HTTP/1.1\r\nHost: x\r\nContent-Length: 67108865\r\n\r\n", "413"},
		{"a head past the limit", "GET /t/acme/c HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("x", 65<<10) + "\r\n\r\n", "431"},
		{"no route", "GET /elsewhere HTTP/1.1\r\nHost: x\r\n\r\n", "404"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			conn := dial(t, rt.addr)
			go io.WriteString(conn, c.request)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			if itoa(resp.StatusCode) != c.status || !strings.HasPrefix(string(body), `{"error":"`) {
				t.Errorf("answered %d %s", resp.StatusCode, body)
			}
		})
	}
	if seen := node.requests(); len(seen) != 0 {
		t.Errorf("the node was sent %q", seen)
	}
}

func TestAClientThatHalfClosesGetsItsAnswer(t *testing.T) {
	release := make(chan struct{})
	rt, node := routed(t, Config{}, func(c *scripted) {
		<-release
		c.say(ok("yes"))
	})
	conn := dial(t, rt.addr)
	io.WriteString(conn, "GET /t/acme/c HTTP/1.1\r\nHost: x\r\n\r\n")
	conn.CloseWrite()
	eventually(t, "the node has the request", func() bool { return len(node.requests()) == 1 })
	close(release)
	if got := readAll(t, conn); got != ok("yes") {
		t.Errorf("got %q", got)
	}
}

func TestADisconnectedClientEndsItsRequestAtTheNode(t *testing.T) {
	ended := make(chan struct{})
	rt, _ := routed(t, Config{}, func(c *scripted) {
		if c.req.Method == "GET" {
			io.Copy(io.Discard, c.Conn) // until the router hangs up
			close(ended)
		}
	})
	conn := dial(t, rt.addr)
	io.WriteString(conn, "GET /t/acme/c HTTP/1.1\r\nHost: x\r\n\r\n")
	conn.SetLinger(0)
	conn.Close()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the node was kept at it")
	}
}

func TestAnHTTP10ClientIsAnsweredAndClosed(t *testing.T) {
	rt, _ := routed(t, Config{}, answering(ok("yes")))
	got := raw(t, rt.addr, "GET /t/acme/c HTTP/1.0\r\n\r\n")
	if got != "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nyes" {
		t.Errorf("got %q", got)
	}
}

// Each part of a stream reaches the client as soon as the node writes it.
func TestAnAnswerWithoutALengthIsCopiedAsItArrives(t *testing.T) {
	next := make(chan string)
	rt, node := routed(t, Config{}, func(c *scripted) {
		c.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n")
		for piece := range next {
			c.say(piece)
			if strings.HasPrefix(piece, "0") {
				return
			}
		}
	})
	conn := dial(t, rt.addr)
	io.WriteString(conn, "GET /t/acme/c/changes HTTP/1.1\r\nHost: x\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.Header.Get("Connection") != "" || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %v, %v", resp, err)
	}
	for _, piece := range []string{"data: 1\n\n", "data: 2\n\n", strings.Repeat("y", 100<<10)} {
		sent := piece
		next <- strings.ToUpper(hexa(len(sent))) + ";ext=1\r\n" + sent + "\r\n"
		got := make([]byte, len(piece))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != piece {
			t.Fatalf("got %.40q, %v", got, err)
		}
	}
	next <- "0\r\nTrailer: x\r\n\r\n"
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
		t.Errorf("after the end came %q, %v", rest, err)
	}
	close(next)
	resp, body := exchangeOn(t, conn, in, "GET /t/nobody/ HTTP/1.1\r\nHost: x\r\n\r\n")
	if resp.StatusCode != 404 {
		t.Errorf("the connection is out of step: %d %s", resp.StatusCode, body)
	}
	if n := node.connections(); n > 2 {
		t.Errorf("it took %d connections to the node", n)
	}
}

func TestAStreamEndsWithEitherSide(t *testing.T) {
	stream := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"
	t.Run("the node closes in the middle, so the client sees no end", func(t *testing.T) {
		rt, _ := routed(t, Config{}, func(c *scripted) {
			c.say(stream)
			c.Close()
		})
		got := raw(t, rt.addr, "GET /t/acme/c HTTP/1.1\r\nHost: x\r\n\r\n")
		if !strings.HasSuffix(got, "\r\n\r\n1\r\na\r\n") {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a body that ends with the connection does so at the client", func(t *testing.T) {
		rt, _ := routed(t, Config{}, func(c *scripted) {
			c.say("HTTP/1.1 200 OK\r\n\r\nall of it")
			c.Close()
		})
		got := raw(t, rt.addr, "GET /t/acme/c HTTP/1.0\r\n\r\n")
		if got != "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it" {
			t.Errorf("got %q", got)
		}
		got = raw(t, rt.addr, "GET /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if got != "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n9\r\nall of it\r\n0\r\n\r\n" {
			t.Errorf("got %q", got)
		}
	})
	leaving := map[string]func(*net.TCPConn){
		"closing":                  func(c *net.TCPConn) { c.Close() },
		"closing its sending half": func(c *net.TCPConn) { c.CloseWrite() },
		"resetting the connection": func(c *net.TCPConn) { c.SetLinger(0); c.Close() },
	}
	for how, leave := range leaving {
		t.Run("a client that leaves by "+how+" ends it at the node", func(t *testing.T) {
			ended := make(chan struct{})
			rt, _ := routed(t, Config{}, func(c *scripted) {
				c.say(stream)
				io.Copy(io.Discard, c.Conn)
				close(ended)
			})
			conn := dial(t, rt.addr)
			io.WriteString(conn, "GET /t/acme/c HTTP/1.1\r\nHost: x\r\n\r\n")
			if _, err := io.ReadFull(conn, make([]byte, len(stream))); err != nil {
				t.Fatal(err)
			}
			leave(conn)
			select {
			case <-ended:
			case <-time.After(patience):
				t.Error("the node was kept at it")
			}
		})
	}
}
