package tenants

import (
	"hash/maphash"
	"maps"
	"sync"
	"sync/atomic"
)

// registryShards is how many maps the open tenants are spread over: a change copies one map, so with 10 000 tenants
// open it copies about forty entries.
const registryShards = 256

// registry is the open tenants by name. A lookup takes no lock: each shard is a map that is never changed, only replaced.
type registry struct {
	seed   maphash.Seed
	shards [registryShards]registryShard
}

type registryShard struct {
	mu      sync.Mutex // taken by writers
	tenants atomic.Pointer[map[string]*Tenant]
}

func (r *registry) init() {
	r.seed = maphash.MakeSeed()
	for i := range r.shards {
		r.shards[i].tenants.Store(&map[string]*Tenant{})
	}
}

func (r *registry) shard(name string) *registryShard {
	return &r.shards[maphash.String(r.seed, name)%registryShards]
}

// get returns the open tenant of that name, nil if it is not open.
func (r *registry) get(name string) *Tenant { return (*r.shard(name).tenants.Load())[name] }

// find is get for the bytes of a name in a request, which it does not keep.
func (r *registry) find(name []byte) *Tenant {
	s := &r.shards[maphash.Bytes(r.seed, name)%registryShards]
	return (*s.tenants.Load())[string(name)]
}

func (r *registry) put(t *Tenant) {
	s := r.shard(t.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(*s.tenants.Load())
	next[t.Name] = t
	s.tenants.Store(&next)
}

func (r *registry) remove(name string) {
	s := r.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(*s.tenants.Load())
	delete(next, name)
	s.tenants.Store(&next)
}

// each visits the open tenants in no order, until fn returns false.
func (r *registry) each(fn func(*Tenant) bool) {
	for i := range r.shards {
		for _, t := range *r.shards[i].tenants.Load() {
			if !fn(t) {
				return
			}
		}
	}
}

// gates are one lock per tenant name, created by its first user and removed by its last.
type gates struct {
	mu   sync.Mutex
	held map[string]*gate
}

type gate struct {
	sync.Mutex
	wanted int // number of its holder and waiters
}

// lock waits for the name's gate and returns the function that releases it.
func (g *gates) lock(name string) (unlock func()) {
	g.mu.Lock()
	if g.held == nil {
		g.held = map[string]*gate{}
	}
	one := g.held[name]
	if one == nil {
		one = &gate{}
		g.held[name] = one
	}
	one.wanted++
	g.mu.Unlock()
	one.Lock()
	return func() { g.unlock(name, one) }
}

// tryLock takes the name's gate if no caller holds it or waits for it; otherwise unlock is nil.
func (g *gates) tryLock(name string) (unlock func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held == nil {
		g.held = map[string]*gate{}
	}
	if g.held[name] != nil {
		return nil
	}
	one := &gate{wanted: 1}
	one.Lock()
	g.held[name] = one
	return func() { g.unlock(name, one) }
}

func (g *gates) unlock(name string, one *gate) {
	one.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if one.wanted--; one.wanted == 0 {
		delete(g.held, name)
	}
}
