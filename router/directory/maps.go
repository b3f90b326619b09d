package directory

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// Owner is what the user of a directory keeps beside it. N is its object for a node, such as one with the connections to it.
type Owner[N comparable] struct {
	// Node returns the object for a node: a new one, or had, which it was given for an earlier row of the same name. It fails
	// if the row cannot be used.
	Node func(row *Node, had N) (N, error)
	// Removed ends the use of the object of a node that is removed.
	Removed func(had N)
	// Tenant is notified of each change of a tenant's row, nil for a deleted one. working reports whether somebody has the
	// tenant's Work.
	Tenant func(name string, row *Tenant, working bool)
}

// Maps are the current rows by name. A reader loads one pointer: no writer blocks it. The zero value is not ready.
type Maps[N comparable] struct {
	owner Owner[N]
	works works

	nodes   atomic.Pointer[map[string]member[N]] // replaced whole
	tenants shards[N]

	mu      sync.Mutex     // one writer at a time
	version uint64         // all changes up to it are applied, and none of them changes anything any more
	deleted map[key]uint64 // the versions of the rows deleted after that
	naming  map[string]int // how many tenants name each node as theirs or as their target
	copies  map[pair]int   // how many tenants of a node have their replica on another
	follow  map[string]int // how many tenants have their replica on each node
	alone   int            // how many tenants of nodes have no replica
}

// pair is a node of tenants and the node of their replicas.
type pair struct{ of, on string }

// key names a row of either collection.
type key struct{ what, name string } // what is nodeRow or tenantRow

const (
	nodeRow   = "node"
	tenantRow = "tenant"
)

// member is a node's row with its owner's object.
type member[N comparable] struct {
	row    *Node
	object N
}

func (m *Maps[N]) init(o Owner[N]) {
	m.owner = o
	m.nodes.Store(&map[string]member[N]{})
	m.deleted, m.naming = map[key]uint64{}, map[string]int{}
	m.copies, m.follow = map[pair]int{}, map[string]int{}
}

// Find returns the row of a tenant and the object of its node: nil and the zero N if there is no such tenant. The name may
// be a view of a request's bytes.
func (m *Maps[N]) Find(name []byte) (*Tenant, N) { return m.tenants.get(name) }

// Tenant is Find for a string, without the object.
func (m *Maps[N]) Tenant(name string) *Tenant {
	t, _ := m.tenants.get([]byte(name))
	return t
}

// Node returns the row of a node and its object: nil and the zero N if there is no such node.
func (m *Maps[N]) Node(name string) (*Node, N) {
	found := (*m.nodes.Load())[name]
	return found.row, found.object
}

// Nodes returns the objects of the nodes, sorted by the nodes' names.
func (m *Maps[N]) Nodes() []N {
	rows := slices.SortedFunc(maps.Values(*m.nodes.Load()), func(a, b member[N]) int { return strings.Compare(a.row.Name, b.row.Name) })
	list := make([]N, len(rows))
	for i := range rows {
		list[i] = rows[i].object
	}
	return list
}

// Each visits every tenant in no order; changes made meanwhile may or may not be visible.
func (m *Maps[N]) Each(visit func(*Tenant, N)) { m.tenants.each(visit) }

// Len returns the number of nodes and of tenants, including deleted tenants with leftovers.
func (m *Maps[N]) Len() (nodes, tenants int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(*m.nodes.Load()), m.tenants.count
}

// Naming returns how many tenants name a node as their node or their target.
func (m *Maps[N]) Naming(node string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.naming[node]
}

// Replicas returns how many tenants have their replica on a node, and how many of those are on the node of.
func (m *Maps[N]) Replicas(on, of string) (all, ofThat int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.follow[on], m.copies[pair{of, on}]
}

// Unreplicated returns how many tenants have no replica.
func (m *Maps[N]) Unreplicated() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.alone
}

// StandbyOf returns the name of a node's standby, empty for none.
func (m *Maps[N]) StandbyOf(node string) string {
	for name, member := range *m.nodes.Load() {
		if member.row.Standby == node {
			return name
		}
	}
	return ""
}

// Version returns the version up to which the maps hold all changes.
func (m *Maps[N]) Version() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.version
}

// fold applies changes, which with those before are all up to version. It returns the first error of Owner.Node.
func (m *Maps[N]) fold(changes []Change, version uint64) (failed error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range changes {
		if err := m.apply(c); err != nil && failed == nil {
			failed = err
		}
	}
	if version > m.version {
		m.version = version
		clear(m.deleted)
	}
	return failed
}

// apply applies one change. It is the only function that changes the maps. A change that is older than the row of its name,
// or not newer than m.version, changes nothing, so changes of different rows may arrive in any order and more than once.
func (m *Maps[N]) apply(c Change) error {
	if c.Node != nil {
		return m.applyNode(c.Node, c.Deleted)
	}
	m.applyTenant(c.Tenant, c.Deleted)
	return nil
}

// late reports whether a change at a version is older than what is known of its row, which was last put at version now.
func (m *Maps[N]) late(k key, version, now uint64) bool {
	return version <= m.version || version <= now || version <= m.deleted[k]
}

func (m *Maps[N]) applyNode(row *Node, deleted bool) (err error) {
	nodes := *m.nodes.Load()
	was, known := nodes[row.Name]
	var version uint64
	if known {
		version = was.row.Version
	}
	k := key{nodeRow, row.Name}
	if m.late(k, row.Version, version) {
		return nil
	}
	now := member[N]{row: row}
	next := maps.Clone(nodes)
	if deleted {
		m.deleted[k] = row.Version
		delete(next, row.Name)
	} else {
		if now.object, err = m.owner.Node(row, was.object); err != nil {
			now.object = was.object
		}
		next[row.Name] = now
	}
	m.nodes.Store(&next)
	if now.object != was.object && m.naming[row.Name] > 0 {
		m.tenants.resolve(row.Name, now.object)
	}
	if deleted && known {
		m.owner.Removed(was.object)
	}
	return err
}

func (m *Maps[N]) applyTenant(row *Tenant, deleted bool) {
	was := m.Tenant(row.Name)
	var version uint64
	if was != nil {
		version = was.Version
	}
	k := key{tenantRow, row.Name}
	if m.late(k, row.Version, version) {
		return
	}
	now := row
	if deleted {
		m.deleted[k], now = row.Version, nil
	}
	m.count(was, -1)
	m.count(now, +1)
	var object N
	if now != nil {
		object = (*m.nodes.Load())[now.Node].object
	}
	m.tenants.set(row.Name, now, object)
	m.owner.Tenant(row.Name, now, m.works.working(row.Name))
}

// count adds to the numbers of tenants that name the nodes of a row.
func (m *Maps[N]) count(t *Tenant, add int) {
	node, target, replica := t.names()
	if node != "" {
		bump(m.naming, node, add)
	}
	if target != "" {
		bump(m.naming, target, add)
	}
	if node != "" && replica == "" {
		m.alone += add
	}
	if replica != "" {
		bump(m.follow, replica, add)
		bump(m.copies, pair{node, replica}, add)
	}
}

// bump adds to a count, which is forgotten at zero.
func bump[K comparable](counts map[K]int, k K, add int) {
	if counts[k] += add; counts[k] == 0 {
		delete(counts, k)
	}
}

// changesTo returns what turns the maps into the given rows, which are all there are at a version. A row that is the same
// is not changed and keeps its version. Nodes are put first and deleted last, so that tenants find theirs.
func (m *Maps[N]) changesTo(nodes, tenants []Change, version uint64) (changes []Change) {
	listed := make(map[key]struct{}, len(nodes)+len(tenants))
	for _, c := range nodes {
		listed[key{nodeRow, c.Node.Name}] = struct{}{}
		if row, _ := m.Node(c.Node.Name); !row.same(c.Node) {
			changes = append(changes, c)
		}
	}
	for _, c := range tenants {
		listed[key{tenantRow, c.Tenant.Name}] = struct{}{}
		if !m.Tenant(c.Tenant.Name).same(c.Tenant) {
			changes = append(changes, c)
		}
	}
	m.Each(func(t *Tenant, _ N) {
		if _, found := listed[key{tenantRow, t.Name}]; !found {
			changes = append(changes, Change{Tenant: &Tenant{Name: t.Name, Version: version}, Deleted: true})
		}
	})
	for name := range *m.nodes.Load() {
		if _, found := listed[key{nodeRow, name}]; !found {
			changes = append(changes, Change{Node: &Node{Name: name, Version: version}, Deleted: true})
		}
	}
	return changes
}

// shardCount bounds what a change copies: at 100 000 tenants a shard holds about two dozen.
const shardCount = 4096

// shards are the tenants by the hash of their name. A reader loads one pointer and compares a few hashes. A writer, one at a
// time, copies one shard, a small part of the map however many tenants there are.
type shards[N comparable] struct {
	count  int
	shards [shardCount]atomic.Pointer[[]placed[N]]
}

// placed is a tenant's row with the object of its node.
type placed[N comparable] struct {
	hash   uint64
	row    *Tenant
	object N
}

func (s *shards[N]) get(name []byte) (row *Tenant, object N) {
	hash := xxhash.Sum64(name)
	shard := s.shards[hash%shardCount].Load()
	if shard == nil {
		return nil, object
	}
	for i := range *shard {
		if e := &(*shard)[i]; e.hash == hash && e.row.Name == string(name) {
			return e.row, e.object
		}
	}
	return nil, object
}

// set stores a row under its name, or removes the name if row is nil.
func (s *shards[N]) set(name string, row *Tenant, object N) {
	hash := xxhash.Sum64String(name)
	var old []placed[N]
	shard := &s.shards[hash%shardCount]
	if p := shard.Load(); p != nil {
		old = *p
	}
	next := make([]placed[N], 0, len(old)+1)
	for _, e := range old {
		if e.hash != hash || e.row.Name != name {
			next = append(next, e)
		}
	}
	s.count += len(next) - len(old)
	if row != nil {
		next = append(next, placed[N]{hash, row, object})
		s.count++
	}
	shard.Store(&next)
}

// resolve sets the object of the tenants on a node.
func (s *shards[N]) resolve(node string, object N) {
	for i := range s.shards {
		shard := s.shards[i].Load()
		if shard == nil {
			continue
		}
		next := slices.Clone(*shard)
		for k := range next {
			if next[k].row.Node == node {
				next[k].object = object
			}
		}
		s.shards[i].Store(&next)
	}
}

func (s *shards[N]) each(visit func(*Tenant, N)) {
	for i := range s.shards {
		if shard := s.shards[i].Load(); shard != nil {
			for _, e := range *shard {
				visit(e.row, e.object)
			}
		}
	}
}
