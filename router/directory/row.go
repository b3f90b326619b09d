package directory

// Node is the row of a node.
type Node struct {
	Name    string
	Addr    string
	Token   string // its admin token
	Standby string // the node that it is the standby of, empty for none: it holds replicas of that node's tenants and nothing else
	Passive bool   // it is not promoted by a lease
	Version uint64 // the change that made the row
}

// State is the state of a tenant. The file stores its name.
type State uint8

const (
	// Placing: Node is creating a file for it; nothing is routed there yet.
	Placing State = iota + 1
	// Active: Node serves it.
	Active
	// Moving: Node serves it, possibly frozen, and Target may hold a copy that accepts no writes.
	Moving
	// Settling: Node serves it from an image that is held until the router has thawed it.
	Settling
	// Gone: it was deleted; Stale names the copies that may still be on nodes.
	Gone
	// Deleting: Node serves it, possibly frozen, and is being asked to delete it.
	Deleting
	// Promoting: a failover from Node to Target, which holds its replica, has been decided. Node may be frozen, and Target may
	// have been promoted.
	Promoting
)

var stateNames = [...]string{
	Placing: "placing", Active: "active", Moving: "moving", Settling: "settling", Gone: "gone", Deleting: "deleting",
	Promoting: "promoting",
}

func (s State) String() string { return stateNames[s] }

func parseState(name string) (State, bool) {
	for s := Placing; int(s) < len(stateNames); s++ {
		if stateNames[s] == name {
			return s, true
		}
	}
	return 0, false
}

// Tenant is the row of a tenant: where it is, and what an operation under way may have left on nodes.
type Tenant struct {
	Name    string
	Node    string // empty if it is gone
	State   State
	Target  string // Moving: where to; Promoting: the node of the replica that is being promoted
	Token   string // Moving, Settling: its source is frozen and its image held under it; Deleting, Promoting: it is frozen under it
	Replica string // the node whose copy follows Node's, empty for none
	Lineage string // which tenant its copies are of: 16 hexadecimal digits, empty if it is not known
	Stale   []Leftover

	Version uint64 // the change that made the row, or a later one at which it was read
}

// Routed reports whether requests for the tenant go to its node.
func (t *Tenant) Routed() bool {
	return t != nil && t.State != Placing && t.State != Gone
}

// Settled reports whether the tenant needs no repair.
func (t *Tenant) Settled() bool { return t.State == Active && len(t.Stale) == 0 }

// Leftovers returns the copies of the tenant that nodes may hold and nothing is routed to, without the replica.
func (t *Tenant) Leftovers() []Leftover {
	switch t.State {
	case Moving:
		return With(t.Stale, Leftover{Node: t.Target, Token: t.Token})
	case Placing:
		return With(t.Stale, Leftover{Node: t.Node})
	}
	return t.Stale
}

// names returns the nodes that cannot be removed while the row is the current one. No name is returned twice.
func (t *Tenant) names() (node, target, replica string) {
	if t == nil || t.State == Gone {
		return "", "", ""
	}
	target, replica = t.Target, t.Replica
	if target == t.Node || target == replica {
		target = ""
	}
	if replica == t.Node {
		replica = ""
	}
	return t.Node, target, replica
}

// same reports whether two rows differ in nothing but their versions. Either may be nil.
func (t *Tenant) same(o *Tenant) bool {
	if t == nil || o == nil {
		return t == o
	}
	return t.columns() == o.columns()
}

func (n *Node) same(o *Node) bool {
	if n == nil || o == nil {
		return n == o
	}
	return n.columns() == o.columns()
}

// Change is one row that was put or deleted.
type Change struct {
	// One of the two is set. Of a deleted row, Name and Version are.
	Node    *Node
	Tenant  *Tenant
	Deleted bool
}
