package directory

import "fmt"

// isPlace returns an error if a row places or moves a tenant on a standby.
func (f *File[N]) isPlace(t *Tenant) error {
	if t == nil {
		return nil
	}
	to := ""
	switch t.State {
	case Placing:
		to = t.Node
	case Moving:
		to = t.Target
	}
	if n, _ := f.Node(to); n != nil && n.Standby != "" {
		return &Paired{fmt.Sprintf("node %s is the standby of node %s: no tenant is placed on it or moved to it", to, n.Standby)}
	}
	return nil
}

// isFree returns an error if a node cannot be removed. The caller has changes stopped.
func (f *File[N]) isFree(node string) error {
	tenants := f.Naming(node)
	replicas, _ := f.Replicas(node, "")
	if tenants+replicas > 0 {
		return &Held{node, tenants, replicas}
	}
	if standby := f.StandbyOf(node); standby != "" {
		return &Paired{fmt.Sprintf("node %s has the standby %s: end the pair or remove the standby first", node, standby)}
	}
	return nil
}

// mayPair returns an error if a node cannot become the standby that its row says. The caller has changes stopped.
func (f *File[N]) mayPair(n *Node) error {
	primary, _ := f.Node(n.Standby)
	tenants := f.Naming(n.Name)
	replicas, ofPrimary := f.Replicas(n.Name, n.Standby)
	of, other := f.StandbyOf(n.Name), f.StandbyOf(n.Standby)
	switch {
	case n.Name == n.Standby:
		return &Paired{fmt.Sprintf("node %s cannot be the standby of itself", n.Name)}
	case primary == nil:
		return &NoNode{n.Standby}
	case primary.Standby != "":
		return &Paired{fmt.Sprintf("node %s is itself the standby of node %s", n.Standby, primary.Standby)}
	case of != "":
		return &Paired{fmt.Sprintf("node %s has the standby %s: it cannot be one itself", n.Name, of)}
	case other != "" && other != n.Name:
		return &Paired{fmt.Sprintf("node %s has the standby %s already", n.Standby, other)}
	case tenants+replicas > ofPrimary:
		return &Held{n.Name, tenants, replicas - ofPrimary}
	}
	return nil
}
