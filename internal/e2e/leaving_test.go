package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fenec/node"
	"fenec/router"
)

// entrance is a way to a node: straight or through a router, over TLS or not.
type entrance struct {
	t    *testing.T
	addr string
	tls  *tls.Config // nil for none
	node *watched
}

// watched is a node in this process whose tenant acme has jobs, and a connection to it that is kept.
type watched struct {
	t    *testing.T
	addr string
	kept net.Conn
	in   *bufio.Reader
}

// entrances are the ways there are, each to a node of its own.
func entrances(t *testing.T) map[string]*entrance {
	t.Helper()
	cert, key, client := certificate(t)
	trusting := client.Transport.(*http.Transport).TLSClientConfig
	straight := func(c node.Config, trusting *tls.Config) *entrance {
		w := startWatched(t, c, trusting)
		w.ask("PUT", "/_admin/tenants/acme", "")
		return &entrance{t, w.addr, trusting, w}
	}
	through := func(c router.Config, trusting *tls.Config) *entrance {
		c.Directory = filepath.Join(t.TempDir(), "shard.fenec")
		r, err := router.New(c)
		if err != nil {
			t.Fatal(err)
		}
		w := startWatched(t, node.Config{}, nil)
		e := &entrance{t, serveIn(t, r), trusting, w}
		e.ask("PUT", "/_shard/nodes/n1", `{"addr":"`+w.addr+`","token":"`+adminToken+`"}`)
		e.ask("PUT", "/_shard/tenants/acme", "")
		return e
	}
	all := map[string]*entrance{
		"straight":                straight(node.Config{}, nil),
		"straight, TLS":           straight(node.Config{TLSCert: cert, TLSKey: key}, trusting),
		"through the router":      through(router.Config{}, nil),
		"through the router, TLS": through(router.Config{TLSCert: cert, TLSKey: key}, trusting),
	}
	for _, e := range all {
		e.node.query("create collection jobs (name text, state text)")
		e.node.query("create collection books (title text)")
	}
	return all
}

func startWatched(t *testing.T, c node.Config, trusting *tls.Config) *watched {
	t.Helper()
	c.Dir, c.AdminToken, c.IdleTimeout = t.TempDir(), adminToken, time.Hour
	n, err := node.New(c)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{t: t, addr: serveIn(t, n)}
	w.kept = (&entrance{t: t, addr: w.addr, tls: trusting}).dial()
	w.in = bufio.NewReader(w.kept)
	return w
}

// ask makes a request on the kept connection, on the calling goroutine alone.
func (w *watched) ask(method, path, body string) string {
	w.t.Helper()
	io.WriteString(w.kept, requestText(method, path, body))
	resp, err := http.ReadResponse(w.in, &http.Request{Method: method})
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		w.t.Fatalf("%s %s is answered %d %s %v", method, path, resp.StatusCode, text, err)
	}
	return string(text)
}

func (w *watched) query(statement string) string {
	w.t.Helper()
	return w.ask("POST", "/t/acme/query", queryBody(statement))
}

// gauge is a number among the node's metrics.
func (w *watched) gauge(name string) int {
	w.t.Helper()
	for line := range strings.Lines(w.ask("GET", "/_metrics", "")) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			n, err := strconv.Atoi(value)
			if err != nil {
				w.t.Fatal(err)
			}
			return n
		}
	}
	w.t.Fatalf("there is no metric %s", name)
	return 0
}

func (w *watched) until(name string, want int) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); w.gauge(name) != want; runtime.Gosched() {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s is %d, want %d", name, w.gauge(name), want)
		}
	}
}

func requestText(method, path, body string, headers ...string) string {
	text := method + " " + path + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + adminToken + "\r\n"
	for _, header := range headers {
		text += header + "\r\n"
	}
	return text + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

func (e *entrance) dial() net.Conn {
	e.t.Helper()
	c, err := net.Dial("tcp", e.addr)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(2 * patience))
	if e.tls == nil {
		return c
	}
	config := e.tls.Clone()
	config.ServerName = "127.0.0.1"
	t := tls.Client(c, config)
	if err := t.HandshakeContext(context.Background()); err != nil {
		e.t.Fatal(err)
	}
	return t
}

// ask makes a request on a connection of its own.
func (e *entrance) ask(method, path, body string) {
	e.t.Helper()
	c := e.dial()
	defer c.Close()
	io.WriteString(c, requestText(method, path, body, "Connection: close"))
	if got := e.hear(c); got.status >= 300 {
		e.t.Fatalf("%s %s is answered %d %s", method, path, got.status, got.body)
	}
}

func (e *entrance) hear(c net.Conn) heard {
	e.t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		e.t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return heard{resp.StatusCode, resp.Header, string(body)}
}

// tcpOf is what is below a connection.
func tcpOf(c net.Conn) *net.TCPConn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return c.(*net.TCPConn)
}

// leavings are the ways to leave.
var leavings = map[string]func(c net.Conn){
	"closing": func(c net.Conn) { c.Close() },
	"closing without a goodbye": func(c net.Conn) {
		tcpOf(c).Close()
	},
	"resetting": func(c net.Conn) {
		tcpOf(c).SetLinger(0)
		tcpOf(c).Close()
	},
	"closing behind a request more": func(c net.Conn) {
		io.WriteString(c, requestText("GET", "/t/acme/jobs", ""))
		c.Close()
	},
	"closing behind many requests": func(c net.Conn) {
		io.WriteString(c, strings.Repeat(requestText("GET", "/t/acme/jobs", ""), 1000))
		c.Close()
	},
}

const (
	claimText = `set jobs {state: "taken"} where state = "ready" limit 1 returning name`
	putText   = `put jobs {name: "a", state: "ready"}`
	readyText = `get jobs where state = "ready" select name`
)

func claimRequest(headers ...string) string {
	return requestText("POST", "/t/acme/query", queryBody(claimText), append(headers, "Fenec-Wait: 30s")...)
}

// inOrder has what the test's goroutine sends arrive in the order it is sent, whichever connection it goes over: the
// thread stays on one processor, where the loopback handles packets one after the other.
func inOrder(t *testing.T) (restore func()) {
	t.Helper()
	runtime.LockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := range 1024 {
		if all.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	return func() {
		unix.SchedSetaffinity(0, &all) // it was so before
		runtime.UnlockOSThread()
	}
}

// A client that leaves right before a job comes does not take it, though nothing of the node has run in between.
func TestAJobGoesToNobodyWhoHasLeft(t *testing.T) {
	const rounds = 40
	for way, e := range entrances(t) {
		if strings.HasPrefix(way, "through") {
			continue // there the router has to see it first
		}
		for how, leave := range leavings {
			t.Run(way+", "+how, func(t *testing.T) {
				defer inOrder(t)()
				for range rounds {
					c := e.dial()
					io.WriteString(c, claimRequest())
					e.node.until("fenec_claims_held", 1)
					e.node.until("fenec_requests_waiting", 1)
					leave(c)
					e.node.query(putText)
					e.node.until("fenec_claims_held", 0)
					if got := e.node.query(readyText); got != `[{"name":"a"}]` {
						t.Fatalf("a client that has left took the job: %s", got)
					}
					e.node.query("del jobs")
				}
			})
		}
	}
}

// The same, where the job is there before the claim is.
func TestAClaimThatComesWithItsClientsEndTakesNothing(t *testing.T) {
	for way, e := range entrances(t) {
		if strings.HasPrefix(way, "through") {
			continue
		}
		for what, request := range map[string]string{
			"a claim":               claimRequest(),
			"a claim under a key":   claimRequest("Idempotency-Key: k"),
			"a claim by REST":       requestText("PATCH", "/t/acme/jobs?state=ready", `{"state":"taken"}`, "Fenec-Wait: 30s"),
			"a deletion":            requestText("DELETE", "/t/acme/jobs?state=ready", "", "Fenec-Wait: 30s"),
			"a batch":               requestText("POST", "/t/acme/batch", queryBody(claimText), "Fenec-Wait: 30s"),
			"a claim that requires": requestText("POST", "/t/acme/query", queryBody(`del jobs require 1`), "Fenec-Wait: 30s"),
		} {
			t.Run(way+", "+what, func(t *testing.T) {
				e.node.query(putText)
				before := e.node.gauge("fenec_connections")
				for range 10 {
					c := e.dial()
					raw, err := tcpOf(c).SyscallConn()
					if err != nil {
						t.Fatal(err)
					}
					raw.Control(func(fd uintptr) { // what is written goes out with the end behind it
						err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, 1)
					})
					if err != nil {
						t.Fatal(err)
					}
					io.WriteString(c, request)
					c.Close()
				}
				e.node.until("fenec_connections", before)
				if got := e.node.query(readyText); got != `[{"name":"a"}]` {
					t.Fatalf("a client that has left took the job: %s", got)
				}
				e.node.query("del jobs")
			})
		}
	}
}

func TestTheTurnOfAClaimPassesOnAsItsClientLeaves(t *testing.T) {
	for way, e := range entrances(t) {
		for how, leave := range leavings {
			t.Run(way+", "+how, func(t *testing.T) {
				first, second := e.dial(), e.dial()
				io.WriteString(first, claimRequest())
				e.node.until("fenec_requests_waiting", 1)
				io.WriteString(second, claimRequest())
				e.node.until("fenec_requests_waiting", 2)
				leave(first)
				if strings.HasPrefix(way, "through") {
					e.node.until("fenec_claims_held", 1)
				}
				e.node.query(putText)
				if got := e.hear(second); got.body != `[{"name":"a"}]` {
					t.Errorf("the second in line is answered %d %s", got.status, got.body)
				}
				e.node.query("del jobs")
				e.node.until("fenec_claims_held", 0)
			})
		}
	}
}

// A client that closes only its sending half gets its answer, the job with it.
func TestAClientThatHalfClosesGetsItsJob(t *testing.T) {
	halfClose := func(c net.Conn) {
		if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	for way, e := range entrances(t) {
		for what, half := range map[string]func(c net.Conn){
			"its half":                   halfClose,
			"the half of its connection": func(c net.Conn) { tcpOf(c).CloseWrite() },
		} {
			t.Run(way+", "+what, func(t *testing.T) {
				c := e.dial()
				io.WriteString(c, claimRequest())
				e.node.until("fenec_requests_waiting", 1)
				half(c)
				e.node.query(putText)
				if got := e.hear(c); got.status != 200 || got.body != `[{"name":"a"}]` {
					t.Errorf("a claim that waits is answered %d %s", got.status, got.body)
				}
				e.node.query(putText)
				c = e.dial()
				io.WriteString(c, claimRequest())
				half(c)
				if got := e.hear(c); got.status != 200 || got.body != `[{"name":"a"}]` {
					t.Errorf("a claim that finds a job is answered %d %s", got.status, got.body)
				}
				e.node.query("del jobs")
			})
		}
	}
}

// What waits for a client that has left ends with it, at once: the fastest of some is far below what any clock of ours
// would make of it.
func TestWhatWaitsEndsAsItsClientLeaves(t *testing.T) {
	const rounds, soon = 5, 100 * time.Millisecond
	for way, e := range entrances(t) {
		for what, waits := range map[string]struct{ request, gauge string }{
			"a claim":      {claimRequest(), "fenec_requests_waiting"},
			"a position":   {requestText("GET", "/t/acme/jobs", "", "Fenec-After: 1000000", "Fenec-Wait: 30s"), "fenec_requests_waiting"},
			"changes":      {requestText("GET", "/t/acme/_changes?wait=30000", ""), "fenec_requests_waiting"},
			"a live query": {requestText("GET", "/t/acme/jobs/changes", ""), "fenec_streams"},
		} {
			for how, leave := range leavings {
				t.Run(way+", "+what+", "+how, func(t *testing.T) {
					fastest := patience
					for range rounds {
						c := e.dial()
						io.WriteString(c, waits.request)
						e.node.until(waits.gauge, 1)
						began := time.Now()
						leave(c)
						e.node.until(waits.gauge, 0)
						fastest = min(fastest, time.Since(began))
					}
					if fastest > soon {
						t.Errorf("the fastest of %d takes %s", rounds, fastest)
					}
				})
			}
		}
	}
}

func TestALiveQueryOverTLSEndsWithItsClientsGoodbye(t *testing.T) {
	for way, e := range entrances(t) {
		if e.tls == nil {
			continue
		}
		t.Run(way, func(t *testing.T) {
			c := e.dial()
			io.WriteString(c, requestText("GET", "/t/acme/jobs/changes", ""))
			e.node.until("fenec_streams", 1)
			if err := c.(*tls.Conn).CloseWrite(); err != nil { // its socket stays open
				t.Fatal(err)
			}
			e.node.until("fenec_streams", 0)
		})
	}
}

func TestAScanEndsAsItsClientLeaves(t *testing.T) {
	work := 200
	if underRace {
		work = 10
	}
	conditions := make([]string, work)
	for i := range conditions {
		conditions[i] = fmt.Sprintf(`title ~ "no such title %d"`, i)
	}
	rows := make([]string, 40_000)
	for i := range rows {
		rows[i] = `{"title":"a title of some length that none of the conditions is found in"}`
	}
	statement := "get books where " + strings.Join(conditions, " or ") + " count"
	scan := requestText("POST", "/t/acme/query", queryBody(statement))
	for way, e := range entrances(t) {
		e.node.ask("POST", "/t/acme/books", "["+strings.Join(rows, ",")+"]")
		began := time.Now()
		e.node.query(statement)
		whole := time.Since(began)
		t.Run(way, func(t *testing.T) {
			e.node.ask("DELETE", "/t/acme/_stats/statements", "")
			c := e.dial()
			io.WriteString(c, scan)
			began = time.Now()
			<-time.After(whole / 8) // in the middle of it
			c.Close()
			for !strings.Contains(e.node.ask("GET", "/t/acme/_stats/statements", ""), `"calls":1,`) {
				if time.Since(began) > patience {
					t.Fatal("it never ends")
				}
			}
			if took := time.Since(began); took > whole*3/4 {
				t.Errorf("it went on for %s of the %s that it takes", took, whole)
			}
		})
	}
}
