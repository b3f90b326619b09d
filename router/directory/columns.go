package directory

import (
	"fenec/engine/fail"
)

// schema is the file's schema. The state of a tenant is a name of stateNames, stale its leftovers as leftoverText writes them,
// and passive is "true" or null.
var schema = []string{
	`create collection if not exists nodes (name text required @unique, addr text required, token text required,
		standby text, passive text)`,
	`create collection if not exists tenants (name text required @unique, node text required, state text required,
		target text, token text, stale text, replica text, lineage text)`,
}

// added are the fields that the files of earlier versions lack. They get them as they are opened; their rows stay as they are.
var added = []struct{ collection, field string }{
	{"nodes", "standby"}, {"nodes", "passive"}, {"tenants", "replica"}, {"tenants", "lineage"},
}

// deletedState and deletedAddr mark a row that is deleted in the same block: a reader of the changes learns its name from
// the marked row, since a delete has only the number of a document.
const (
	deletedState = "deleted"
	deletedAddr  = "deleted"
)

// nodeColumns and tenantColumns are a row as the file stores it, in the order of the statements' parameters. A column that is
// null is empty here.
type (
	nodeColumns struct {
		Name    string `json:"name"`
		Addr    string `json:"addr"`
		Token   string `json:"token"`
		Standby string `json:"standby"`
		Passive string `json:"passive"`
	}
	tenantColumns struct {
		Name    string `json:"name"`
		Node    string `json:"node"`
		State   string `json:"state"`
		Target  string `json:"target"`
		Token   string `json:"token"`
		Stale   string `json:"stale"`
		Replica string `json:"replica"`
		Lineage string `json:"lineage"`
	}
)

const passive = "true"

func (c *nodeColumns) change(version uint64) Change {
	n := &Node{Name: c.Name, Addr: c.Addr, Token: c.Token, Standby: c.Standby, Passive: c.Passive == passive, Version: version}
	return Change{Node: n, Deleted: c.Addr == deletedAddr}
}

func (n *Node) columns() nodeColumns {
	c := nodeColumns{Name: n.Name, Addr: n.Addr, Token: n.Token, Standby: n.Standby}
	if n.Passive {
		c.Passive = passive
	}
	return c
}

func (c *tenantColumns) change(version uint64) (Change, error) {
	if c.State == deletedState {
		return Change{Tenant: &Tenant{Name: c.Name, Version: version}, Deleted: true}, nil
	}
	s, ok := parseState(c.State)
	if !ok {
		return Change{}, fail.New(fail.Damaged, "tenant %s is in state %s, which this version does not know", c.Name, c.State)
	}
	return Change{Tenant: &Tenant{
		Name: c.Name, Node: c.Node, State: s, Target: c.Target, Token: c.Token, Replica: c.Replica, Lineage: c.Lineage,
		Stale: parseLeftovers(c.Stale), Version: version,
	}}, nil
}

func (t *Tenant) columns() tenantColumns {
	return tenantColumns{t.Name, t.Node, t.State.String(), t.Target, t.Token, leftoverText(t.Stale), t.Replica, t.Lineage}
}
