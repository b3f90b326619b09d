package router

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// script is a node that answers requests byte by byte under a test's control, and stores what it was sent. Its /_admin/
// answers are those of an empty node.
type script struct {
	t        testing.TB
	listener net.Listener
	answer   func(c *scripted) // one request; it may close the connection
	mu       sync.Mutex
	seen     []string        // the requests, heads and bodies
	made     map[string]bool // the tenants it was asked to make
	conns    map[net.Conn]struct{}
	opened   int
	work     sync.WaitGroup
}

// scripted is one request to a script.
type scripted struct {
	net.Conn
	n     int    // its number among the requests of its node, from 1
	onto  int    // its number among those of its connection, from 1
	bytes string // head and body
	req   *http.Request
}

func newScript(t testing.TB, answer func(c *scripted)) *script {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, listener: l, answer: answer, made: map[string]bool{}, conns: map[net.Conn]struct{}{}}
	s.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = struct{}{}
			s.opened++
			s.mu.Unlock()
			s.work.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(s.close)
	return s
}

func (s *script) close() {
	s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
}

func (s *script) addr() string { return s.listener.Addr().String() }

func (s *script) serve(c net.Conn) {
	defer func() {
		c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	var raw bytes.Buffer
	in := bufio.NewReader(io.TeeReader(c, &raw))
	for onto := 1; ; onto++ {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		text := raw.String()[:raw.Len()-in.Buffered()]
		raw.Next(len(text))
		if strings.HasPrefix(req.URL.Path, "/_admin/") {
			io.WriteString(c, s.admin(req))
			continue
		}
		s.mu.Lock()
		s.seen = append(s.seen, text)
		one := &scripted{Conn: c, n: len(s.seen), onto: onto, bytes: text, req: req}
		s.mu.Unlock()
		s.answer(one)
	}
}

func (s *script) admin(req *http.Request) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	const revision = "Fenec-Revision: 1\r\n"
	tenant, frozen := strings.CutSuffix(req.URL.Path, "/frozen")
	switch {
	case req.URL.Path == "/_admin/stats":
		return answerText("200 OK", "", `{"tenants":0,"open":0,"disk_bytes":0,"memory_bytes":0}`)
	case frozen && s.made[tenant]:
		return answerText("200 OK", revision, `{"frozen":false,"held":false,"seq":0}`)
	case frozen:
		return answerText("404 Not Found", revision, "")
	case req.Method == "PUT":
		s.made[tenant] = true
		return answerText("201 Created", "", "")
	case req.Method == "DELETE":
		delete(s.made, tenant)
		return "HTTP/1.1 204 No Content\r\n\r\n"
	}
	return answerText("404 Not Found", "", "")
}

// requests is what the node was sent so far.
func (s *script) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

func (s *script) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// say sends text as the answer, or a part of it.
func (c *scripted) say(text string) { io.WriteString(c.Conn, text) }

// ok is an answer with a body.
func ok(body string) string { return answerText("200 OK", "", body) }

func answerText(status, headers, body string) string {
	return "HTTP/1.1 " + status + "\r\n" + headers + "Content-Length: " + itoa(len(body)) + "\r\n\r\n" + body
}

// raw sends bytes to an address and returns all that comes back until the other side closes or has been quiet for long
// enough that a test fails.
func raw(t testing.TB, addr, text string) string {
	t.Helper()
	c := dial(t, addr)
	io.WriteString(c, text)
	return readAll(t, c)
}

func dial(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func readAll(t testing.TB, c net.Conn) string {
	t.Helper()
	all, err := io.ReadAll(c)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("after %q: %v", all, err)
	}
	return string(all)
}

// exchangeOn sends a request on an open connection, and reads one answer with a length.
func exchangeOn(t testing.TB, c net.Conn, in *bufio.Reader, text string) (*http.Response, string) {
	t.Helper()
	io.WriteString(c, text)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatalf("no answer to %q: %v", text, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("a short answer to %q: %v", text, err)
	}
	return resp, string(body)
}

// routed is a router with one tenant, acme, on a node that follows the script.
func routed(t testing.TB, c Config, answer func(c *scripted)) (*running, *script) {
	t.Helper()
	s := newScript(t, answer)
	rt := start(t, c)
	rt.must("PUT", "/_shard/nodes/n1", `{"addr":"`+s.addr()+`","token":"secret"}`, 201)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	return rt, s
}
