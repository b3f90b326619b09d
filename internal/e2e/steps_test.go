package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// gate stands in front of a node and sees each request of the router.
type gate struct {
	server *httptest.Server
	target atomic.Pointer[url.URL]
	trap   *trap
	// install, where set, is given each image for the node instead of it.
	install atomic.Pointer[func(w http.ResponseWriter, r *http.Request, node http.Handler)]
}

// trap goes off once, at one of the requests by which the router drives a move.
type trap struct {
	mu     sync.Mutex
	at     int  // the how manyth request, from 0; none where negative
	after  bool // once the node has run it, and before the router has its answer
	seen   int
	spring func(name string) // name is the node that was asked
	what   string            // the request it went off at
}

// gates makes one in front of each node, with one trap for both.
func gates(t *testing.T) (map[string]*gate, *trap) {
	t.Helper()
	tr := &trap{at: -1}
	all := make(map[string]*gate)
	for _, name := range []string{"n1", "n2"} {
		g := &gate{trap: tr}
		g.server = httptest.NewServer(g.handler(name))
		t.Cleanup(g.server.Close)
		all[name] = g
	}
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return all, tr
}

func (g *gate) addr() string { return strings.TrimPrefix(g.server.URL, "http://") }

// lead has the gate lead to a node.
func (g *gate) lead(node *process) { g.target.Store(&url.URL{Scheme: "http", Host: node.addr}) }

func (g *gate) handler(name string) http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(g.target.Load()) },
		FlushInterval: -1,
		// What the node does not answer the router is not answered either.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if install := g.install.Load(); install != nil && r.Method == "PUT" && strings.HasSuffix(r.URL.Path, "/file") {
			(*install)(w, r, forward)
			return
		}
		spring, after := g.trap.step(r)
		if spring == nil {
			forward.ServeHTTP(w, r)
			return
		}
		if after {
			forward.ServeHTTP(httptest.NewRecorder(), r)
		}
		spring(name)
		panic(http.ErrAbortHandler)
	})
}

// step counts a request, and answers what to do where the trap goes off.
func (tr *trap) step(r *http.Request) (spring func(string), after bool) {
	if !strings.HasPrefix(r.URL.Path, "/_admin/tenants/acme") {
		return nil, false
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.seen++
	if tr.seen-1 != tr.at {
		return nil, false
	}
	tr.at = -1
	tr.what = r.Method + " " + r.URL.Path
	return tr.spring, tr.after
}

// set has it go off at a request; the count begins anew.
func (tr *trap) set(at int, after bool, spring func(string)) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.at, tr.after, tr.seen, tr.spring, tr.what = at, after, 0, spring, ""
}

// sprung says where it went off, and disarms it where it did not.
func (tr *trap) sprung() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.at = -1
	return tr.what
}

// eachStep runs a move once for each request that the router makes in it, before
// and after the node has run the request: attempt sets the trap, moves, and
// answers where it went off, empty for a move that has no more steps.
func eachStep(t *testing.T, attempt func(step int, after bool) string) {
	t.Helper()
	for _, after := range []bool{false, true} {
		for step := 0; ; step++ {
			at := attempt(step, after)
			if t.Failed() {
				t.Fatalf("step %d (%s), after it ran: %v", step, at, after)
			}
			if at == "" {
				if step < 5 {
					t.Errorf("a move has %d steps, want more for this to mean something", step)
				}
				break
			}
			t.Logf("step %d, after it ran %v: %s", step, after, at)
		}
	}
}

func TestTheRouterKilledAtEachStepOfAMove(t *testing.T) {
	t.Parallel()
	gs, tr := gates(t)
	c := startClusterBehind(t, gs)
	w := startWriters(2, c.tenant)
	on := "n1"
	eachStep(t, func(step int, after bool) string {
		to := other(on)
		tr.set(step, after, func(string) { c.router.Load().kill() })
		a := c.move(to)
		at := tr.sprung()
		if at == "" {
			if a.status != 200 {
				t.Errorf("a move nobody interrupted answered %d %s", a.status, a.body)
			}
			on = to
			return ""
		}
		// Never do both copies take writes. One that is answered counts as any other.
		if n1, n2 := w.write(c.nodes["n1"].url()+"/t/acme"), w.write(c.nodes["n2"].url()+"/t/acme"); n1 && n2 {
			t.Error("both nodes take writes for the tenant")
		}
		c.router.Store(startRouter(t, c.directory))
		w.more(t, 2)
		if p := c.placement(); strings.Contains(p, `"moving"`) {
			// By turns it is made again and called off.
			if step%2 == 0 {
				to = on
			}
			// The router, started again, may have ended it meanwhile.
			if a := c.move(to); a.status != 200 && (a.status != 409 || !strings.Contains(c.placement(), fmt.Sprintf("%q", to))) {
				t.Errorf("after %s the move to %s answered %d %s", p, to, a.status, a.body)
			}
			on = to
		} else if strings.Contains(p, fmt.Sprintf("%q", to)) {
			on = to
		}
		w.more(t, 2)
		c.settled(on)
		return at
	})
	w.stop()
	w.check(t, c.tenant())
}

func TestANodeKilledAtEachStepOfAMove(t *testing.T) {
	for _, victim := range []string{"the one that is asked", "the other one"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			gs, tr := gates(t)
			c := startClusterBehind(t, gs)
			w := startWriters(2, c.tenant)
			on := "n1"
			eachStep(t, func(step int, after bool) string {
				to := other(on)
				killed := make(chan string, 1)
				tr.set(step, after, func(name string) {
					if victim != "the one that is asked" {
						name = other(name)
					}
					c.nodes[name].kill()
					killed <- name
				})
				a := c.move(to)
				at := tr.sprung()
				if at != "" {
					c.startNode(receive(t, "the node is killed", killed))
				}
				w.more(t, 2)
				if a.status != 200 {
					if at == "" {
						t.Errorf("a move nobody interrupted answered %d %s", a.status, a.body)
					}
					eventually(t, fmt.Sprintf("after %s, answered %d %s, the move succeeds again", at, a.status, a.body), func() bool {
						a = c.move(to)
						return a.status == 200 || a.status == 409 && strings.Contains(c.placement(), fmt.Sprintf("%q", to))
					})
				}
				on = to
				w.more(t, 2)
				c.settled(on)
				return at
			})
			w.stop()
			w.check(t, c.tenant())
		})
	}
}

// TestAnInstallThatLandsAfterItsRouterIsGone has the image of a move whose router
// was killed arrive in the midst of the same move of the router after it, once
// that has cleared the target.
func TestAnInstallThatLandsAfterItsRouterIsGone(t *testing.T) {
	t.Parallel()
	gs, _ := gates(t)
	c := startClusterBehind(t, gs)
	w := startWriters(2, c.tenant)
	var mu sync.Mutex // each image comes on a connection of its own
	var late *http.Request
	install := func(rw http.ResponseWriter, r *http.Request, node http.Handler) {
		mu.Lock()
		defer mu.Unlock()
		if late == nil {
			image, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			late = httptest.NewRequest("PUT", r.URL.Path, bytes.NewReader(image))
			late.Header = r.Header.Clone()
			c.router.Load().kill()
			panic(http.ErrAbortHandler)
		}
		if late.Method != "" {
			answer := httptest.NewRecorder()
			node.ServeHTTP(answer, late)
			if answer.Code != 201 {
				t.Errorf("the late image was answered %d %s", answer.Code, answer.Body)
			}
			late.Method = ""
		}
		node.ServeHTTP(rw, r)
	}
	gs["n2"].install.Store(&install)
	c.move("n2")
	c.router.Store(startRouter(t, c.directory))
	w.more(t, 5)
	if a := c.move("n2"); a.status != 200 {
		t.Errorf("the move answered %d %s", a.status, a.body)
	}
	w.more(t, 5)
	w.stop()
	c.settled("n2")
	w.check(t, c.tenant())
}
