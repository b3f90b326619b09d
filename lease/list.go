package lease

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// tenant is one that the directory has.
type tenant struct {
	name string
	node *node // where the directory places it
	// holder is the node whose grants that were sent may let it write the tenant, or nil. It is one at most: a tenant enters
	// a node's list only if no other node is its holder.
	holder *node
	// frozen counts other nodes whose grants name it and whose copy is frozen on disk. It may be in its node's list beside
	// them, but it may be promoted only without them, since that ends a freeze.
	frozen int
	// withheld is whether it is to be in no list: its owner works on it.
	withheld bool
	notify   notice
	listed   bool // its holder has acknowledged the list it is in
}

// notice is what a withheld tenant waits for.
type notice int

const (
	nothing notice = iota
	free           // Free, once it has no holder
	promote        // Promote, likewise
)

func (k *Keeper) node(name string) *node {
	for _, n := range k.nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

func (k *Keeper) addNode(info NodeInfo) {
	n := k.nodeOrGhost(info.Name)
	n.NodeInfo, n.removed, n.heard, n.next, n.gone = info, false, k.now, k.now, false
}

// nodeOrGhost returns a node of the name. If the keeper has none, it is one that is removed: it is granted nothing.
func (k *Keeper) nodeOrGhost(name string) *node {
	if n := k.node(name); n != nil {
		return n
	}
	n := &node{
		NodeInfo: NodeInfo{Name: name}, removed: true, renewed: k.now,
		placed: map[*tenant]struct{}{}, held: map[*tenant]struct{}{},
		// A keeper before this one may have granted it a lease and removed it.
		until: k.first, lapsed: k.first <= k.now,
	}
	if n.stale = !n.lapsed; n.stale {
		k.stale++
	}
	k.nodes = append(k.nodes, n)
	slices.SortFunc(k.nodes, func(a, b *node) int { return cmp.Compare(a.Name, b.Name) })
	return n
}

// removeNode stops granting. What the node may hold it holds until it has lapsed.
func (k *Keeper) removeNode(name string) {
	n := k.node(name)
	if n == nil {
		return
	}
	n.removed = true
	if n.call != nil {
		k.do(Abandon{Node: n.Name, Call: n.call.id})
		n.call = nil
	}
}

func (k *Keeper) place(e Place) {
	t := k.tenants[e.Tenant]
	if t == nil {
		if e.Node == "" {
			return
		}
		t = &tenant{name: e.Tenant}
		k.tenants[t.name] = t
	}
	from := t.node
	if from != nil {
		delete(from.placed, t)
		from.changed(k.now)
	}
	t.withheld, t.notify = false, nothing
	if e.Frozen && t.holder != nil && t.holder.Name != e.Node {
		t.holder, t.listed = nil, false
		t.frozen++
	}
	t.node = nil
	if e.Node == "" {
		k.forget(t)
		return
	}
	t.node = k.nodeOrGhost(e.Node)
	t.node.placed[t] = struct{}{}
	t.node.changed(k.now)
}

func (k *Keeper) withhold(name string) {
	t := k.tenants[name]
	if t == nil || t.node == nil {
		return
	}
	t.withheld, t.notify = true, free
	t.node.changed(k.now)
	k.settle(t)
}

func (k *Keeper) release(name string) {
	t := k.tenants[name]
	if t == nil || !t.withheld {
		return
	}
	t.withheld, t.notify = false, nothing
	if t.node != nil {
		t.node.version++ // with the next renewal: a tenant without a file would be refused again at once
	}
}

// changed is a change of the list that the node should have: it is granted at once.
func (n *node) changed(now time.Duration) {
	n.version++
	n.soon(now)
}

// soon begins the next renewal now, or once the one that runs is acknowledged.
func (n *node) soon(now time.Duration) {
	if n.hurry = true; n.call == nil {
		n.next = min(n.next, now)
	}
}

// isFree reports whether no node's grants can let it write the tenant, other than those of the node given. Frozen copies do
// not write.
func (k *Keeper) isFree(t *tenant, but *node) bool {
	suspects := k.suspects
	if but != nil && but.suspect {
		suspects--
	}
	return suspects == 0 && (t.holder == nil || t.holder == but)
}

// listFor returns the tenants that the node may be granted now, by name.
func (k *Keeper) listFor(n *node) []*tenant {
	var tenants []*tenant
	for t := range n.placed {
		if !t.withheld && k.isFree(t, n) {
			tenants = append(tenants, t)
		}
	}
	slices.SortFunc(tenants, func(a, b *tenant) int { return strings.Compare(a.name, b.name) })
	return tenants
}

func (k *Keeper) hold(n *node, t *tenant) {
	if _, ok := n.held[t]; ok && t.holder != n {
		t.frozen--
	}
	t.holder = n
	n.held[t] = struct{}{}
}

// drop ends that a node holds a tenant, and lets what waits for that go on.
func (k *Keeper) drop(n *node, t *tenant) {
	delete(n.held, t)
	if t.holder == n {
		t.holder, t.listed = nil, false
	} else {
		t.frozen--
	}
	switch {
	case t.node == nil:
		k.forget(t)
	case t.withheld:
		k.settle(t)
	default:
		t.node.changed(k.now)
	}
}

// forget removes a tenant that is placed nowhere, once no node holds it.
func (k *Keeper) forget(t *tenant) {
	if t.holder == nil && t.frozen == 0 {
		delete(k.tenants, t.name)
	}
}

// mayPromote reports whether a copy of the tenant may be promoted on any node.
// A node that a keeper before this one granted may hold a frozen one.
func (k *Keeper) mayPromote(t *tenant) bool {
	return k.stale == 0 && t.frozen == 0 && k.isFree(t, nil)
}

// settle notifies the owner of a withheld tenant once it is free.
func (k *Keeper) settle(t *tenant) {
	if !t.withheld || t.notify == nothing || !k.mayPromote(t) {
		return
	}
	switch t.notify {
	case free:
		k.do(Free{Tenant: t.name})
	case promote:
		k.do(Promote{Node: t.node.Name, Tenant: t.name})
	}
	t.notify = nothing
}

// trust ends that the node may hold what a keeper before this one granted.
func (k *Keeper) trust(n *node) {
	if !n.stale {
		return
	}
	n.stale = false
	k.stale--
	if n.suspect {
		n.suspect = false
		if k.suspects--; k.suspects == 0 {
			k.do(Settled{})
		}
		for _, other := range k.nodes {
			other.changed(k.now)
		}
	}
	if k.stale == 0 {
		for _, t := range k.tenantsByName() {
			k.settle(t)
		}
	}
}

// lapse ends what the node may hold, once that is certain.
func (k *Keeper) lapse(n *node) {
	if n.lapsed || k.now < n.until {
		return
	}
	n.lapsed, n.claimed, n.acked = true, "", ""
	if !n.removed && !n.refuses && n.Leased {
		n.away = true
		k.do(Lapsed{Node: n.Name})
	}
	for _, t := range byName(n.held) {
		if t.node != n || t.withheld || t.holder != n {
			k.drop(n, t)
			continue
		}
		delete(n.held, t) // it stays in the list that the node should have
		t.holder, t.listed = nil, false
	}
	k.trust(n)
}

// left ends what the node held under earlier lists, which it can take no more: their stamps are older than that of the one
// it has acknowledged.
func (k *Keeper) left(n *node, l list) {
	in := make(map[*tenant]struct{}, len(l.tenants))
	for _, t := range l.tenants {
		in[t] = struct{}{}
	}
	for _, t := range byName(n.held) {
		if _, ok := in[t]; !ok {
			k.drop(n, t)
		}
	}
	k.trust(n)
}

// listed notifies the owner of tenants that are in an acknowledged list now.
func (k *Keeper) listed(n *node, l list) {
	var names []string
	for _, t := range l.tenants {
		if t.holder == n && !t.listed {
			t.listed = true
			names = append(names, t.name)
		}
	}
	if names != nil {
		k.do(Listed{Node: n.Name, Tenants: names})
	}
}

// missing withholds tenants of which the node has no file: it cannot write them, whatever grants it holds. It reports whether
// the list is another one without them.
func (k *Keeper) missing(n *node, c *call, names []string) bool {
	fewer := false
	for _, name := range names {
		t := k.tenants[name]
		if t == nil || t.node != n || t.withheld || !slices.Contains(c.list.tenants, t) {
			continue
		}
		fewer = true
		t.withheld, t.notify = true, promote
		n.version++
		if t.holder == n {
			k.drop(n, t)
		} else {
			k.settle(t)
		}
	}
	return fewer
}

// failOver has a lapsed node's tenants promoted elsewhere, and again every third of a lease while some stay.
func (k *Keeper) failOver(n *node) {
	if !n.lapsed || !n.failed || !n.Leased || n.refuses || n.removed || k.now < n.retry {
		return
	}
	var names []string
	for _, t := range byName(n.placed) {
		if !t.withheld && k.mayPromote(t) {
			t.withheld = true
			names = append(names, t.name)
		}
	}
	if names == nil {
		return
	}
	n.version++
	n.retry = k.now + k.third()
	k.do(FailOver{Node: n.Name, Tenants: names})
}

func (k *Keeper) tenantsByName() []*tenant {
	set := make(map[*tenant]struct{}, len(k.tenants))
	for _, t := range k.tenants {
		set[t] = struct{}{}
	}
	return byName(set)
}

func byName(set map[*tenant]struct{}) []*tenant {
	return slices.SortedFunc(maps.Keys(set), func(a, b *tenant) int { return strings.Compare(a.name, b.name) })
}

// View is a node's lease as the keeper knows it.
type View struct {
	NodeInfo
	// Left is until the last acknowledged grant lapses, 0 if it has.
	Left time.Duration
	// Age is since the last acknowledged grant, or since the keeper started.
	Age     time.Duration
	NoLease bool // it answers that it takes none
	Sync    bool // it runs --sync replica
	Lapsed  bool // no grant can let it write any more
}

// View returns the state of a node's lease, and false if the keeper has no such node.
func (k *Keeper) View(name string, now time.Duration) (View, bool) {
	n := k.node(name)
	if n == nil || n.removed {
		return View{}, false
	}
	v := View{NodeInfo: n.NodeInfo, Age: now - n.renewed, NoLease: n.refuses, Sync: n.sync, Lapsed: n.lapsed}
	if n.acked != "" {
		v.Left = max(0, n.renewed+k.length-now)
	}
	return v, true
}
