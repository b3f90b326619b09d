package directory

import (
	"slices"
	"strings"

	"fenec/engine/fail"
)

// Node is the row of a node.
type Node struct {
	Name    string
	Addr    string
	Token   string // its admin token
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
)

var stateNames = [...]string{
	Placing: "placing", Active: "active", Moving: "moving", Settling: "settling", Gone: "gone", Deleting: "deleting",
}

func (s State) String() string { return stateNames[s] }

func parseState(name string) (State, bool) {
	for s := Placing; s <= Deleting; s++ {
		if stateNames[s] == name {
			return s, true
		}
	}
	return 0, false
}

// Tenant is the row of a tenant: where it is, and what an operation under way may have left on nodes.
type Tenant struct {
	Name   string
	Node   string // empty if it is gone
	State  State
	Target string // Moving: where to
	Token  string // Moving, Settling: its source is frozen and its image held under it; Deleting: it is frozen under it
	Stale  []Leftover

	Version uint64 // the change that made the row, or a later one at which it was read
}

// Leftover is a copy that a node may hold and the directory does not route to.
type Leftover struct {
	Node  string
	Token string // of the move that froze or installed it; empty for one that was created and never written to
}

// Routed reports whether requests for the tenant go to its node.
func (t *Tenant) Routed() bool {
	return t != nil && t.State != Placing && t.State != Gone
}

// Settled reports whether the tenant needs no repair.
func (t *Tenant) Settled() bool { return t.State == Active && len(t.Stale) == 0 }

// Leftovers returns the copies of the tenant that nodes may hold and nothing is routed to.
func (t *Tenant) Leftovers() []Leftover {
	switch t.State {
	case Moving:
		return With(t.Stale, Leftover{t.Target, t.Token})
	case Placing:
		return With(t.Stale, Leftover{t.Node, ""})
	}
	return t.Stale
}

// With returns the list with the leftover in it. Neither With nor Without changes its argument.
func With(list []Leftover, one Leftover) []Leftover {
	if slices.Contains(list, one) {
		return list
	}
	return append(slices.Clip(list), one)
}

// Without returns the list without the leftovers on a node.
func Without(list []Leftover, node string) []Leftover {
	return slices.DeleteFunc(slices.Clone(list), func(l Leftover) bool { return l.Node == node })
}

// names returns the nodes that cannot be removed while the row is the current one.
func (t *Tenant) names() (node, target string) {
	if t == nil || t.State == Gone {
		return "", ""
	}
	if t.Target == t.Node {
		return t.Node, ""
	}
	return t.Node, t.Target
}

// same reports whether two rows differ in nothing but their versions. Either may be nil.
func (t *Tenant) same(o *Tenant) bool {
	if t == nil || o == nil {
		return t == o
	}
	return t.Name == o.Name && t.Node == o.Node && t.State == o.State && t.Target == o.Target && t.Token == o.Token &&
		slices.Equal(t.Stale, o.Stale)
}

func (n *Node) same(o *Node) bool {
	if n == nil || o == nil {
		return n == o
	}
	return n.Name == o.Name && n.Addr == o.Addr && n.Token == o.Token
}

// Change is one row that was put or deleted.
type Change struct {
	// One of the two is set. Of a deleted row, Name and Version are.
	Node    *Node
	Tenant  *Tenant
	Deleted bool
}

// schema is the file's schema. The state of a tenant is a name of stateNames; stale is its leftovers separated by spaces,
// each the name of a node, followed by a colon and the token if there is one.
var schema = []string{
	`create collection if not exists nodes (name text required @unique, addr text required, token text required)`,
	`create collection if not exists tenants (name text required @unique, node text required, state text required,
		target text, token text, stale text)`,
}

// deletedState and deletedAddr mark a row that is deleted in the same block: a reader of the changes learns its name from
// the marked row, since a delete has only the number of a document.
const (
	deletedState = "deleted"
	deletedAddr  = "deleted"
)

// nodeColumns and tenantColumns are a row as the file stores it, in the order of the statements' parameters.
type (
	nodeColumns struct {
		Name  string `json:"name"`
		Addr  string `json:"addr"`
		Token string `json:"token"`
	}
	tenantColumns struct {
		Name   string `json:"name"`
		Node   string `json:"node"`
		State  string `json:"state"`
		Target string `json:"target"`
		Token  string `json:"token"`
		Stale  string `json:"stale"`
	}
)

func (c *nodeColumns) change(version uint64) Change {
	return Change{Node: &Node{c.Name, c.Addr, c.Token, version}, Deleted: c.Addr == deletedAddr}
}

func (c *tenantColumns) change(version uint64) (Change, error) {
	if c.State == deletedState {
		return Change{Tenant: &Tenant{Name: c.Name, Version: version}, Deleted: true}, nil
	}
	s, ok := parseState(c.State)
	if !ok {
		return Change{}, fail.New(fail.Damaged, "tenant %s is in state %s, which this version does not know", c.Name, c.State)
	}
	t := &Tenant{Name: c.Name, Node: c.Node, State: s, Target: c.Target, Token: c.Token, Version: version}
	for _, text := range strings.Fields(c.Stale) {
		name, token, _ := strings.Cut(text, ":")
		t.Stale = append(t.Stale, Leftover{name, token})
	}
	return Change{Tenant: t}, nil
}

func (t *Tenant) columns() tenantColumns {
	var stale []string
	for _, l := range t.Stale {
		text := l.Node
		if l.Token != "" {
			text += ":" + l.Token
		}
		stale = append(stale, text)
	}
	return tenantColumns{t.Name, t.Node, t.State.String(), t.Target, t.Token, strings.Join(stale, " ")}
}
