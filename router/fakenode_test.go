package router

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"fenec/internal/simnet"
)

// fakeNode is a node as the router knows one: tenants, each a list of values that requests append to and read, with the
// /_admin/ routes of a node. It can fail or cut off any request, and watches that no tenant it holds is written to
// while it must not be.
type fakeNode struct {
	t      testing.TB
	name   string
	server *httptest.Server
	at     string                                     // its address, if that is not the listener's
	cut    func(n *fakeNode, r *http.Request) verdict // nil lets everything pass
	down   atomic.Bool                                // it answers nothing
	gone   atomic.Bool                                // it was killed
	deaf   atomic.Bool                                // its copies get nothing from those that they follow

	mu      sync.Mutex
	run     int            // how often it was started
	changes map[string]int // admin changes of each name in this run
	tenants map[string]*fakeTenant
	disk    int64 // bytes that it reports in addition to its tenants
	calls   []string
	held    []*http.Request // those that come late
}

// fakeTenant is one tenant's copy.
type fakeTenant struct {
	Values []string
	frozen bool
	held   bool
	token  string

	lineage string
	term    int
	replica *follow // nil for a primary
	tails   int     // values that a failover left behind
}

func (t *fakeTenant) writable() bool { return !t.frozen && !t.held && t.replica == nil }

// verdict is what becomes of a request.
type verdict uint8

const (
	pass      verdict = iota
	before            // the connection ends before anything is done
	after             // it is done, and the connection ends without an answer
	refuse503         // nothing is done, and it is answered 503
	late              // the connection ends before anything is done, and it is done when the test delivers it
)

func newFakeNode(t testing.TB, name string) *fakeNode {
	t.Helper()
	n := &fakeNode{t: t, name: name, tenants: map[string]*fakeTenant{}, changes: map[string]int{}}
	n.server = httptest.NewServer(http.HandlerFunc(n.serve))
	n.join()
	return n
}

// join has other nodes reach the node until the test ends.
func (n *fakeNode) join() {
	addr := n.addr()
	mesh.Store(addr, n)
	n.t.Cleanup(func() {
		mesh.Delete(addr)
		n.server.Close()
	})
}

// newFakeNodeOn is newFakeNode on a network in memory.
func newFakeNodeOn(t testing.TB, network *simnet.Network, name string) *fakeNode {
	t.Helper()
	l, err := network.Host(name).Listen(80)
	if err != nil {
		t.Fatal(err)
	}
	n := &fakeNode{t: t, name: name, at: name + ":80", tenants: map[string]*fakeTenant{}, changes: map[string]int{}}
	n.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(n.serve)}}
	n.server.Start()
	n.join()
	return n
}

// cutting has a function decide what becomes of each request from now on; nil lets everything pass.
func (n *fakeNode) cutting(cut func(n *fakeNode, r *http.Request) verdict) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = cut
}

func (n *fakeNode) addr() string {
	if n.at != "" {
		return n.at
	}
	return n.server.Listener.Addr().String()
}

func (n *fakeNode) serve(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	cut, v := n.cut, pass
	n.mu.Unlock()
	if n.down.Load() {
		panic(http.ErrAbortHandler)
	}
	if cut != nil {
		v = cut(n, r)
	}
	switch v {
	case before:
		panic(http.ErrAbortHandler)
	case after:
		n.handle(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case refuse503:
		refuseWith(w, 503, "not now")
		return
	case late:
		body, err := io.ReadAll(r.Body)
		if err == nil {
			again := r.Clone(context.WithoutCancel(r.Context()))
			again.Body = io.NopCloser(bytes.NewReader(body))
			n.mu.Lock()
			n.held = append(n.held, again)
			n.mu.Unlock()
		}
		panic(http.ErrAbortHandler)
	}
	n.handle(w, r)
}

// deliver has the requests that were held back arrive.
func (n *fakeNode) deliver() {
	n.mu.Lock()
	held := n.held
	n.held = nil
	n.mu.Unlock()
	for _, r := range held {
		n.handle(httptest.NewRecorder(), r)
	}
}

func refuseWith(w http.ResponseWriter, status int, message string) {
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"error": message})
}

func (n *fakeNode) handle(w http.ResponseWriter, r *http.Request) {
	if path, ok := strings.CutPrefix(r.URL.Path, "/_admin/"); ok {
		if r.Header.Get("Authorization") != "Bearer "+n.name+"-token" {
			refuseWith(w, 401, "the token is wrong")
			return
		}
		n.admin(w, r, path)
		return
	}
	n.serveData(w, r)
}

func (n *fakeNode) admin(w http.ResponseWriter, r *http.Request, path string) {
	n.mu.Lock()
	n.calls = append(n.calls, r.Method+" "+path)
	n.mu.Unlock()
	if path == "stats" {
		n.mu.Lock()
		defer n.mu.Unlock()
		size := n.disk
		for _, t := range n.tenants {
			size += int64(100 + 10*len(t.Values))
		}
		fmt.Fprintf(w, `{"tenants":%d,"open":0,"disk_bytes":%d,"memory_bytes":0}`, len(n.tenants), size)
		return
	}
	parts := strings.Split(path, "/") // tenants, name, what
	what := r.Method
	if len(parts) > 2 {
		what += " " + parts[2]
	}
	if path == "open" {
		n.sayOpen(w)
		return
	}
	if path == "tenants" {
		names := n.names()
		list := make([]string, 0, len(names))
		for name := range names {
			list = append(list, name)
		}
		json.NewEncoder(w).Encode(list)
		return
	}
	var image []byte
	var o order
	switch what {
	case "POST follow":
		o = readOrder(r, parts[1])
		defer n.pull(parts[1])
	case "GET position":
		n.pull(parts[1])
	case "PUT file":
		var err error
		if image, err = io.ReadAll(r.Body); err != nil {
			return // cut short: nothing is installed
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tenantAdmin(w, r, what, parts[1], image, o)
}

// revision is what a name is at: every admin change ends it, and a restart ends all.
func (n *fakeNode) revision(name string) string {
	return fmt.Sprintf("%s/%d/%d", n.name, n.run, n.changes[name])
}

// restart ends every revision, as a node that is started again does. What it holds stays.
func (n *fakeNode) restart() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.run++
	n.changes = map[string]int{}
}

func (n *fakeNode) tenantAdmin(w http.ResponseWriter, r *http.Request, what, name string, image []byte, o order) {
	t := n.tenants[name]
	if what == "GET frozen" {
		w.Header().Set("Fenec-Revision", n.revision(name))
	}
	if !strings.HasPrefix(what, "GET") {
		if asked := r.Header.Get("Fenec-Revision"); asked != "" && asked != n.revision(name) {
			refuseWith(w, 409, "the tenant is at revision "+n.revision(name)+", not at "+asked)
			return
		}
	}
	changes := !strings.HasPrefix(what, "GET")
	defer func() {
		if changes {
			n.changes[name]++
		}
	}()
	if seq := r.Header.Get("Fenec-Seq"); seq != "" && (t == nil || seq != itoa(len(t.Values))) {
		refuseWith(w, 409, "the tenant is at another change than "+seq)
		return
	}
	if t == nil && what != "PUT" && what != "PUT file" && what != "POST revision" && what != "POST follow" {
		refuseWith(w, 404, "no tenant "+name)
		return
	}
	var asked struct{ Token string }
	if strings.HasPrefix(what, "POST") && what != "POST follow" {
		json.NewDecoder(r.Body).Decode(&asked)
	}
	switch what {
	case "PUT", "PUT file":
		if t != nil {
			refuseWith(w, 409, "taken")
			return
		}
		t = &fakeTenant{held: image != nil, token: r.URL.Query().Get("token"), lineage: newLineage()}
		if image != nil && !t.install(image) {
			refuseWith(w, 400, "the image is damaged")
			return
		}
		n.tenants[name] = t
		w.WriteHeader(201)
		json.NewEncoder(w).Encode(map[string]string{"tenant": name, "lineage": t.lineage})
	case "DELETE":
		delete(n.tenants, name)
		w.WriteHeader(204)
	case "POST follow":
		changes = n.obey(w, name, t, o)
	case "POST promote":
		t.promoteCopy(w)
	case "GET position":
		t.sayPosition(w)
	case "GET forked":
		json.NewEncoder(w).Encode(make([]struct{}, t.tails))
	case "POST freeze", "POST thaw":
		if t.replica != nil {
			refuseWith(w, 409, "the copy follows another node")
			return
		}
		n.pause(w, what, t, asked.Token)
	case "POST revision":
	case "GET frozen":
		t.say(w)
	case "GET file":
		w.Write(t.image())
	default:
		refuseWith(w, 404, "no such route")
	}
}

// pause freezes or thaws a tenant.
func (n *fakeNode) pause(w http.ResponseWriter, what string, t *fakeTenant, token string) {
	switch what {
	case "POST freeze":
		if !t.writable() && t.token != token {
			refuseWith(w, 409, "frozen under another token")
			return
		}
		t.frozen, t.token = true, token
		t.say(w)
	case "POST thaw":
		if !t.writable() && token != "" && t.token != token {
			refuseWith(w, 409, "frozen under another token")
			return
		}
		t.frozen, t.held, t.token = false, false, ""
		t.say(w)
	}
}

func (t *fakeTenant) say(w http.ResponseWriter) {
	json.NewEncoder(w).Encode(map[string]any{"frozen": t.frozen || t.held, "token": t.token, "held": t.held, "seq": len(t.Values)})
}

// imaged is what an image contains.
type imaged struct {
	Values  []string
	Lineage string
	Term    int
}

// image is the tenant's values, lineage and term with a digest before them.
func (t *fakeTenant) image() []byte {
	body, _ := json.Marshal(imaged{t.Values, t.lineage, t.term})
	sum := sha256.Sum256(body)
	return append(sum[:], body...)
}

func (t *fakeTenant) install(image []byte) bool {
	var i imaged
	if len(image) < sha256.Size || [sha256.Size]byte(image) != sha256.Sum256(image[sha256.Size:]) ||
		json.Unmarshal(image[sha256.Size:], &i) != nil {
		return false
	}
	t.Values, t.lineage, t.term = i.Values, i.Lineage, i.Term
	return true
}

// give puts a tenant on the node without the router.
func (n *fakeNode) give(name string, t *fakeTenant) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tenants[name] = t
}

// copyOf returns a copy of the node's tenant, nil if it has none.
func (n *fakeNode) copyOf(name string) *fakeTenant {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.tenants[name]
	if t == nil {
		return nil
	}
	c := *t
	c.Values = append([]string(nil), t.Values...)
	if t.replica != nil {
		following := *t.replica
		c.replica = &following
	}
	return &c
}

// names is what the node holds.
func (n *fakeNode) names() map[string]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	names := map[string]bool{}
	for name := range n.tenants {
		names[name] = true
	}
	return names
}

// record records nodes at a router.
func (r *running) record(nodes ...*fakeNode) {
	r.t.Helper()
	for _, n := range nodes {
		status, body := r.call("PUT", "/_shard/nodes/"+n.name, `{"addr":"`+n.addr()+`","token":"`+n.name+`-token"}`)
		if status != 200 && status != 201 {
			r.t.Fatalf("node %s is not recorded: %d %s", n.name, status, body)
		}
	}
}

// cluster is a router over as many nodes, n1 and up.
func cluster(t testing.TB, c Config, nodes int) (*running, []*fakeNode) {
	t.Helper()
	var list []*fakeNode
	for i := range nodes {
		list = append(list, newFakeNode(t, fmt.Sprintf("n%d", i+1)))
	}
	rt := start(t, c)
	rt.record(list...)
	return rt, list
}

// unused returns an address without a listener.
func unused(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
