package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fenec/node"
	"fenec/router"

	"github.com/rs/zerolog"
)

// These tests run nodes and a router in this process, with a network between them that delivers a request of the router
// late.

// place is a node's directory, the node that serves it now, and the way to it.
type place struct {
	name    string
	dir     string
	net     *lateNet
	way     *httptest.Server // what the router is told
	addr    atomic.Pointer[string]
	service service
	served  chan error
}

// lateNet is the network of a cluster: it holds one of the requests that change what a node holds back.
type lateNet struct {
	mu     sync.Mutex
	at     int    // the how manyth of them, from 1; 0 for none
	seen   int    // of them
	which  string // the one that is held back
	sent   int    // how often that one was
	inbox  []func()
	silent bool // the router is left without an answer, rather than with a connection that breaks
}

// service is a node or a router.
type service interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
}

func (l *lateNet) hold(at int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at, l.seen, l.which, l.sent = at, 0, "", 0
}

// end lets everything pass from now on and returns what was held back, empty for nothing.
func (l *lateNet) end() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = 0
	return l.which
}

// deliver has what was held back arrive.
func (l *lateNet) deliver() {
	l.mu.Lock()
	inbox := l.inbox
	l.inbox = nil
	l.mu.Unlock()
	for _, one := range inbox {
		one()
	}
}

// late reports whether the request is the one to be held back.
func (l *lateNet) late(node string, r *http.Request) bool {
	if r.Method == "GET" || !strings.HasPrefix(r.URL.Path, "/_admin/tenants/") {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	name := node + ": " + r.Method + " " + r.URL.Path + " at " + r.Header.Get("Fenec-Revision")
	switch {
	case l.at == 0:
		return false
	case l.which != "": // sent again, as its connection broke
		l.sent++
		return l.which == name && l.sent == 2
	}
	if l.seen++; l.seen != l.at {
		return false
	}
	l.which, l.sent = name, 1
	return true
}

func (p *place) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	forward := func(w http.ResponseWriter, r *http.Request) {
		(&httputil.ReverseProxy{
			Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: *p.addr.Load()}) },
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		}).ServeHTTP(w, r)
	}
	if !p.net.late(p.name, r) {
		forward(w, r)
		return
	}
	if body, err := io.ReadAll(r.Body); err == nil {
		again := r.Clone(context.WithoutCancel(r.Context()))
		p.net.mu.Lock()
		p.net.inbox = append(p.net.inbox, func() {
			again.Body = io.NopCloser(bytes.NewReader(body))
			forward(httptest.NewRecorder(), again)
		})
		silent := p.net.silent && r.Method != "PUT" // an image's answer the router awaits for minutes
		p.net.mu.Unlock()
		if silent {
			<-r.Context().Done() // the router gives up
		}
	}
	panic(http.ErrAbortHandler)
}

// serveHere serves a node or a router on loopback, and returns where.
func serveHere(t *testing.T, s service, served chan error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { served <- s.Serve(l) }()
	return l.Addr().String()
}

func stopHere(t *testing.T, s service, served chan error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("it does not stop: %v", err)
	}
	if err := receive(t, "it stops serving", served); err != nil {
		t.Errorf("it stops serving: %v", err)
	}
}

func (p *place) start(t *testing.T) {
	t.Helper()
	n, err := node.New(node.Config{Dir: p.dir, AdminToken: adminToken, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	p.service = n
	addr := serveHere(t, n, p.served)
	p.addr.Store(&addr)
}

// lateCluster is a router over two nodes with a late network between.
type lateCluster struct {
	t         *testing.T
	net       lateNet
	places    []*place
	directory string
	config    router.Config
	router    service
	served    chan error
	url       string
	rows      map[int]bool // that were answered and have to be there
	next      int
}

func newLateCluster(t *testing.T, upstream time.Duration) *lateCluster {
	t.Helper()
	c := &lateCluster{t: t, served: make(chan error, 1), rows: map[int]bool{}, directory: filepath.Join(t.TempDir(), "shard.fenec")}
	c.config = router.Config{Directory: c.directory, UpstreamTimeout: upstream, Log: zerolog.Nop()}
	c.startRouter()
	for _, name := range []string{"n1", "n2"} {
		p := &place{name: name, dir: t.TempDir(), net: &c.net, served: make(chan error, 1)}
		p.start(t)
		p.way = httptest.NewServer(p)
		c.places = append(c.places, p)
		must(t, 201, "PUT", c.url+"/_shard/nodes/"+name, fmt.Sprintf(`{"addr": %q, "token": %q}`, p.way.Listener.Addr(), adminToken))
	}
	t.Cleanup(func() {
		stopHere(t, c.router, c.served)
		for _, p := range c.places {
			p.way.Close()
			stopHere(t, p.service, p.served)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return c
}

func (c *lateCluster) startRouter() {
	c.t.Helper()
	rt, err := router.New(c.config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.router = rt
	c.url = "http://" + serveHere(c.t, rt, c.served)
}

func (c *lateCluster) restartRouter() {
	c.t.Helper()
	stopHere(c.t, c.router, c.served)
	c.startRouter()
	c.paid()
}

func (c *lateCluster) restartNodes() {
	c.t.Helper()
	for _, p := range c.places {
		stopHere(c.t, p.service, p.served)
		p.start(c.t)
	}
}

// paid waits until the router owes nothing. A node that is recorded once more has it look at once.
func (c *lateCluster) paid() {
	c.t.Helper()
	eventually(c.t, "the router owes nothing", func() bool {
		p := c.places[0]
		must(c.t, 200, "PUT", c.url+"/_shard/nodes/"+p.name, fmt.Sprintf(`{"addr": %q, "token": %q}`, p.way.Listener.Addr(), adminToken))
		return strings.Contains(must(c.t, 200, "GET", c.url+"/_metrics", ""), "fenec_router_repairs_pending 0\n")
	})
}

func (c *lateCluster) on() string {
	c.t.Helper()
	var row struct{ Node string }
	if err := json.Unmarshal([]byte(must(c.t, 200, "GET", c.url+"/_shard/tenants/acme", "")), &row); err != nil {
		c.t.Fatal(err)
	}
	return row.Node
}

// until repeats a request until it has one of the statuses.
func (c *lateCluster) until(method, path, body string, statuses ...int) {
	c.t.Helper()
	eventually(c.t, method+" "+path+" "+body+" is answered as it should be", func() bool {
		a, err := request(method, c.url+path, body)
		for _, s := range statuses {
			if err == nil && a.status == s {
				return true
			}
		}
		return false
	})
}

// write has acme take a row, now or soon: it is not frozen for good.
func (c *lateCluster) write() {
	c.t.Helper()
	c.next++
	c.until("POST", "/t/acme/writes", fmt.Sprintf(`{"n": %d}`, c.next), 201)
	c.rows[c.next] = true
}

func (c *lateCluster) create(on string) {
	c.t.Helper()
	c.until("PUT", "/_shard/tenants/acme", fmt.Sprintf(`{"node": %q}`, on), 201, 409)
	c.until("POST", "/t/acme/query", queryBody("create collection if not exists writes (n int)"), 200)
}

func (c *lateCluster) delete() {
	c.t.Helper()
	c.until("DELETE", "/_shard/tenants/acme", "", 204, 404)
	c.rows = map[int]bool{}
}

func (c *lateCluster) move(to string) {
	c.t.Helper()
	c.until("POST", "/_shard/tenants/acme/move", fmt.Sprintf(`{"to": %q}`, to), 200, 409)
}

// backup freezes the tenant where it is and thaws it, as an operator does.
func (c *lateCluster) backup() {
	c.t.Helper()
	for _, p := range c.places {
		if p.name == c.on() {
			at := "http://" + *p.addr.Load() + "/_admin/tenants/acme/"
			must(c.t, 200, "POST", at+"freeze", `{"token": "backup"}`)
			must(c.t, 200, "GET", at+"file", "")
			must(c.t, 200, "POST", at+"thaw", "")
		}
	}
}

// check wants one copy, on the node that the router names, that takes writes and has every row that was answered.
func (c *lateCluster) check() {
	c.t.Helper()
	c.paid()
	c.write()
	on := c.on()
	for _, p := range c.places {
		names := must(c.t, 200, "GET", "http://"+*p.addr.Load()+"/_admin/tenants", "")
		if strings.Contains(names, "acme") != (p.name == on) {
			c.t.Errorf("the tenant is on %s, and %s holds %s", on, p.name, names)
		}
	}
	got := numbers(c.t, c.url+"/t/acme")
	for n := range c.rows {
		if got[n] != 1 {
			c.t.Errorf("row %d was answered and is there %d times", n, got[n])
		}
	}
}

// lateStages is what happens while a request is on its way.
var lateStages = map[string]func(c *lateCluster){
	"write":          (*lateCluster).write,
	"restart router": (*lateCluster).restartRouter,
	"restart nodes":  (*lateCluster).restartNodes,
	"pay":            (*lateCluster).paid,
	"move on":        func(c *lateCluster) { c.move(other(c.on())) },
	"move back":      func(c *lateCluster) { c.move(other(c.on())) },
	"cancel":         func(c *lateCluster) { c.move(c.on()) },
	"backup":         (*lateCluster).backup,
	"delete":         (*lateCluster).delete,
	"create":         func(c *lateCluster) { c.create("n1") },
}

// Each request that changes what a node holds is held back in a move, a delete and a create, and arrives at each later
// point.
func TestARequestOfTheRouterThatArrivesLate(t *testing.T) {
	t.Parallel()
	moved := func(c *lateCluster) { _, _ = request("POST", c.url+"/_shard/tenants/acme/move", `{"to": "n2"}`) }
	for _, script := range []struct {
		name   string
		silent bool
		do     func(c *lateCluster)
		least  int
		stages []string
	}{
		{"a move", false, moved, 5, []string{"restart router", "write", "move on", "backup", "move back", "restart nodes", "write"}},
		{"a move without an answer", true, moved, 5, []string{"cancel", "write", "move on", "move back"}},
		{"a delete", false, func(c *lateCluster) {
			if a, err := request("DELETE", c.url+"/_shard/tenants/acme", ""); err == nil && a.status == 204 {
				c.rows = map[int]bool{}
			}
		}, 2, []string{"delete", "create", "write", "move on", "move back"}},
		{"a create", false, func(c *lateCluster) {
			c.delete()
			_, _ = request("PUT", c.url+"/_shard/tenants/acme", `{"node": "n2"}`)
		}, 3, []string{"pay", "create", "write", "delete", "create", "write", "move on"}},
	} {
		for after := 0; after <= len(script.stages); after++ {
			at := 1
			for met := true; met && !t.Failed(); at++ {
				t.Run(fmt.Sprintf("%s, request %d after %d of %v", script.name, at, after, script.stages), func(t *testing.T) {
					c := newLateCluster(t, lateUpstream(script.silent))
					c.create("n1")
					c.write()
					c.net.silent = script.silent
					c.net.hold(at)
					script.do(c)
					which := c.net.end()
					met = which != ""
					t.Logf("held back: %s", which)
					if after == 0 {
						c.net.deliver()
					}
					for i, stage := range script.stages {
						lateStages[stage](c)
						if after == i+1 {
							c.net.deliver()
						}
					}
					if script.name == "a create" || script.name == "a delete" {
						c.create("n1")
					}
					c.check()
				})
			}
			if at-2 < script.least && !t.Failed() {
				t.Errorf("%s makes %d requests", script.name, at-2)
			}
		}
	}
}

// lateUpstream is how long the router waits for a node. Where it has to sit a wait out it is short: what
// takes longer once is done again.
func lateUpstream(silent bool) time.Duration {
	if silent {
		return 500 * time.Millisecond
	}
	return patience
}
