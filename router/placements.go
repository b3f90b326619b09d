package router

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// state is the state of a tenant. The directory stores its name.
type state uint8

const (
	// placing: node is creating a file for it; nothing is routed there yet.
	placing state = iota + 1
	// active: node serves it.
	active
	// moving: node serves it, possibly frozen, and target may hold a copy that accepts no writes.
	moving
	// settling: node serves it from an image that is held until the router has thawed it.
	settling
	// gone: it was deleted; stale names the copies that may still be on nodes.
	gone
	// deleting: node serves it, possibly frozen, and is being asked to delete it.
	deleting
)

var stateNames = [...]string{
	placing: "placing", active: "active", moving: "moving", settling: "settling", gone: "gone", deleting: "deleting",
}

func (s state) String() string { return stateNames[s] }

func parseState(name string) (state, bool) {
	for s := placing; s <= deleting; s++ {
		if stateNames[s] == name {
			return s, true
		}
	}
	return 0, false
}

// tenant is the placement of one tenant. It is immutable: a change replaces it whole, in the directory's file first and
// then in the map, so a reader sees the one before or the one after.
type tenant struct {
	name   string
	node   *node
	state  state
	target *node  // moving: where to
	token  string // moving, settling: its source is frozen and its image held under it; deleting: it is frozen under it
	stale  []leftover
}

// leftover is a copy that a node may hold and the directory does not route to.
type leftover struct {
	node  string
	token string // of the move that froze or installed it; empty for one that was created and never written to
}

// matches reports whether a copy is the leftover: it carries the token of the move that superseded or made it, or was
// never written to. A frozen copy is not enough: an operator may have frozen it.
func (l leftover) matches(s copyState) bool {
	if l.token == "" {
		return s.empty()
	}
	return s.exists && s.Frozen && s.Token == l.token
}

// routed reports whether requests for the tenant go to its node.
func (t *tenant) routed() bool {
	return t != nil && t.state != placing && t.state != gone
}

// settled reports whether the tenant needs no repair.
func (t *tenant) settled() bool { return t.state == active && len(t.stale) == 0 }

// shown is the state in listings: active, moving or deleting.
func (t *tenant) shown() string {
	if t.state == settling {
		return moving.String()
	}
	return t.state.String()
}

// leftovers returns the copies of the tenant that nodes may hold and nothing is routed to.
func (t *tenant) leftovers() []leftover {
	switch t.state {
	case moving:
		return with(t.stale, leftover{t.target.name, t.token})
	case placing:
		return with(t.stale, leftover{t.node.name, ""})
	}
	return t.stale
}

// with returns the list with the leftover in it. Neither with nor without changes its argument.
func with(list []leftover, one leftover) []leftover {
	if slices.Contains(list, one) {
		return list
	}
	return append(slices.Clip(list), one)
}

// without returns the list without the leftovers on a node.
func without(list []leftover, node string) []leftover {
	return slices.DeleteFunc(slices.Clone(list), func(l leftover) bool { return l.node == node })
}

// placementShards bounds what a change copies: at 100 000 tenants a shard holds about two dozen.
const placementShards = 4096

// placements maps a tenant's name to its placement. A reader loads one pointer and compares a few hashes: no writer blocks
// it. A writer copies one shard, a small part of the map however many tenants there are.
type placements struct {
	mu     sync.Mutex // one writer at a time
	count  int
	shards [placementShards]atomic.Pointer[[]placed]
}

type placed struct {
	hash   uint64
	tenant *tenant
}

// find is get for a string.
func (p *placements) find(name string) *tenant { return p.get([]byte(name)) }

// get returns the tenant of a name, nil if there is none. The name may be a view of a request's bytes.
func (p *placements) get(name []byte) *tenant {
	hash := xxhash.Sum64(name)
	shard := p.shards[hash%placementShards].Load()
	if shard == nil {
		return nil
	}
	for _, e := range *shard {
		if e.hash == hash && e.tenant.name == string(name) {
			return e.tenant
		}
	}
	return nil
}

// set records t under its name, or removes the name if t is nil.
func (p *placements) set(name string, t *tenant) {
	hash := xxhash.Sum64String(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	var old []placed
	shard := &p.shards[hash%placementShards]
	if s := shard.Load(); s != nil {
		old = *s
	}
	next := make([]placed, 0, len(old)+1)
	for _, e := range old {
		if e.hash != hash || e.tenant.name != name {
			next = append(next, e)
		}
	}
	p.count += len(next) - len(old)
	if t != nil {
		next = append(next, placed{hash, t})
		p.count++
	}
	shard.Store(&next)
}

// len returns the number of names, including those of deleted tenants with leftovers.
func (p *placements) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// each visits every tenant in no order; changes made meanwhile may or may not be visible.
func (p *placements) each(visit func(*tenant)) {
	for i := range p.shards {
		if shard := p.shards[i].Load(); shard != nil {
			for _, e := range *shard {
				visit(e.tenant)
			}
		}
	}
}
