package router

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// mesh is how fake nodes reach each other: by address, without a network.
var mesh sync.Map

var lineages atomic.Int64

func newLineage() string { return fmt.Sprintf("%016x", lineages.Add(1)) }

// follows is what makes a fake tenant's copy a replica.
type follow struct {
	from     string // the URL of the node that it follows
	caughtUp bool   // since it was told to follow
	diverged bool   // it may hold values that the primary lacks
}

func (n *fakeNode) url() string { return "http://" + n.addr() }

// kill has the node answer nothing any more, and what it is doing has no answer either. It counts as gone from then on: its
// copies are not compared with others, as somebody who fails it over promises.
func (n *fakeNode) kill() {
	n.down.Store(true)
	n.gone.Store(true)
}

// revive has a killed node answer again, with what it held.
func (n *fakeNode) revive() {
	n.restart()
	n.down.Store(false)
}

// nodeAt returns the node at a URL, nil if it does not answer.
func nodeAt(url string) *fakeNode {
	found, ok := mesh.Load(strings.TrimPrefix(url, "http://"))
	if !ok || found.(*fakeNode).down.Load() {
		return nil
	}
	return found.(*fakeNode)
}

// feed sends what a tenant of the node holds to the copies that follow it.
func (n *fakeNode) feed(name string) {
	from := n.copyOf(name)
	if from == nil || from.replica != nil || n.down.Load() {
		return
	}
	mesh.Range(func(_, other any) bool {
		if o := other.(*fakeNode); o != n && !o.down.Load() && !o.deaf.Load() {
			o.take(name, n.url(), from)
		}
		return true
	})
}

// take brings the node's copy of a tenant to what the copy that it follows holds.
func (n *fakeNode) take(name, url string, from *fakeTenant) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.tenants[name]
	if t == nil || t.replica == nil || t.replica.from != url || from.term < t.term {
		return
	}
	switch {
	case t.lineage != from.lineage && len(t.Values) > 0:
		return
	case t.replica.diverged:
		for i, v := range t.Values {
			if i >= len(from.Values) || from.Values[i] != v {
				t.tails++
			}
		}
		t.Values = nil
	}
	if len(from.Values) > len(t.Values) {
		t.Values = append([]string(nil), from.Values...)
	}
	t.term, t.lineage = from.term, from.lineage
	t.replica.caughtUp, t.replica.diverged = true, false
}

// order is the body of a follow, and what the node finds at its address.
type order struct {
	From, Lineage string
	Force         bool
	there         *fakeTenant
}

func readOrder(r *http.Request, name string) (o order) {
	json.NewDecoder(r.Body).Decode(&o)
	if from := nodeAt(o.From); from != nil {
		o.there = from.copyOf(name)
	}
	return o
}

// obey is POST .../follow. It reports whether it changed the copy t, nil for none.
func (n *fakeNode) obey(w http.ResponseWriter, name string, t *fakeTenant, o order) bool {
	refuse := func(why string) bool {
		refuseWith(w, 409, why)
		return false
	}
	switch {
	case o.From == n.url():
		return refuse("that is this node")
	case o.there != nil && o.there.replica != nil && o.there.replica.from == n.url():
		return refuse("that node follows this one")
	case o.there != nil && o.Lineage != "" && o.there.lineage != o.Lineage:
		return refuse("the node has another lineage")
	case t != nil && len(t.Values) > 0 && t.lineage != o.Lineage:
		return refuse("this copy has another lineage")
	case t != nil && o.there != nil && len(t.Values) > 0 && o.there.term < t.term:
		return refuse("the node is of an older term")
	}
	if t == nil {
		t = &fakeTenant{}
		n.tenants[name] = t
	}
	was := t.replica
	t.frozen, t.held, t.token = false, false, ""
	t.replica = &follow{from: o.From, diverged: was == nil || was.diverged}
	if len(t.Values) == 0 {
		t.lineage = newLineage() // until it has reached its primary
	}
	json.NewEncoder(w).Encode(map[string]any{"following": true, "from": o.From, "connected": o.there != nil})
	return true
}

// promoteCopy is POST .../promote.
func (t *fakeTenant) promoteCopy(w http.ResponseWriter) {
	done := t.replica != nil
	if done && !t.replica.caughtUp {
		refuseWith(w, 409, "the copy has never caught up")
		return
	}
	if done {
		t.replica = nil
		t.term++
	}
	json.NewEncoder(w).Encode(map[string]any{"promoted": done, "seq": len(t.Values), "history": t.history(), "lineage": t.lineage})
}

func (t *fakeTenant) history() string { return fmt.Sprintf("%d-%s", t.term, t.lineage) }

// sayPosition is GET .../position.
func (t *fakeTenant) sayPosition(w http.ResponseWriter) {
	p := map[string]any{
		"role": "primary", "seq": len(t.Values), "durable": len(t.Values), "history": t.history(), "lineage": t.lineage,
		"frozen": t.frozen || t.held, "writable": t.writable(),
	}
	if t.replica != nil {
		p["role"], p["from"], p["caught_up"], p["behind"] = "replica", t.replica.from, t.replica.caughtUp, nil
		p["connected"] = nodeAt(t.replica.from) != nil
	}
	json.NewEncoder(w).Encode(p)
}

// pull has the node's copy of a tenant catch up, if it follows another that answers.
func (n *fakeNode) pull(name string) {
	if t := n.copyOf(name); t != nil && t.replica != nil {
		if from := nodeAt(t.replica.from); from != nil {
			from.feed(name)
		}
	}
}

// serveData answers a request to a tenant.
func (n *fakeNode) serveData(w http.ResponseWriter, r *http.Request) {
	parts := strings.SplitN(r.URL.Path, "/", 4) // "", t, name, rest
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if n.keep(w, r, parts[2], string(body)) {
		n.feed(parts[2])
		if n.down.Load() {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, "kept")
	}
}

// keep answers a request to a tenant unless it is a write, which it stores and reports.
func (n *fakeNode) keep(w http.ResponseWriter, r *http.Request, name, value string) (wrote bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.tenants[name]
	switch {
	case t == nil:
		w.Header().Set("Fenec-Tenant", "absent")
		refuseWith(w, 404, "no tenant "+name)
	case r.Method == "GET":
		json.NewEncoder(w).Encode(t.Values)
	case r.Header.Get("Fenec-Read") == "replica":
		refuseWith(w, 403, "a write cannot be marked as a read of a replica")
	case t.replica != nil:
		w.Header().Set("Fenec-Tenant", "replica")
		refuseWith(w, 403, "this copy follows another node")
	case !t.writable():
		w.Header().Set("Retry-After", "1")
		refuseWith(w, 503, "writes are paused")
	default:
		t.Values = append(t.Values, value)
		return true
	}
	return false
}

// sayOpen is GET /_admin/open: everything is open.
func (n *fakeNode) sayOpen(w http.ResponseWriter) {
	list := []map[string]any{}
	for name := range n.names() {
		c := n.copyOf(name)
		one := map[string]any{"name": name, "role": "primary", "seq": len(c.Values)}
		if c.replica != nil {
			one["role"] = "replica"
			if from := nodeAt(c.replica.from); from != nil {
				one["behind"] = len(from.copyOf(name).Values) - len(c.Values)
			}
		}
		list = append(list, one)
	}
	json.NewEncoder(w).Encode(list)
}
