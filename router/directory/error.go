package directory

import "fmt"

// Conflict is the error of a change whose row is not the current one any more, or is being changed.
type Conflict struct{ What, Name string } // What is "node" or "tenant"

func (e *Conflict) Error() string {
	return fmt.Sprintf("%s %s was changed by another request, send the request again", e.What, e.Name)
}

// NoNode is the error of a change that names a node without a row.
type NoNode struct{ Name string }

func (e *NoNode) Error() string { return "no node " + e.Name }

// Held is the error of a change of a node that is refused because tenants name the node.
type Held struct {
	Node     string
	Tenants  int // that it holds or that are moving there
	Replicas int
}

func (e *Held) Error() string {
	switch {
	case e.Replicas == 0:
		return fmt.Sprintf("node %s holds %s: move them first", e.Node, count(e.Tenants, "tenant"))
	case e.Tenants == 0:
		return fmt.Sprintf("node %s holds %s: drain it first", e.Node, count(e.Replicas, "replica"))
	}
	return fmt.Sprintf("node %s holds %s and %s: drain it first", e.Node, count(e.Tenants, "tenant"), count(e.Replicas, "replica"))
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// Paired is the error of a change that a pair of a node and its standby does not allow.
type Paired struct{ Why string }

func (e *Paired) Error() string { return e.Why }

// Busy is the error of an operation on a tenant that has another one under way.
type Busy struct {
	Tenant    string
	Operation Operation
}

func (e *Busy) Error() string { return "tenant " + e.Tenant + " is being " + e.Operation.String() }

// InDoubt is the error of a change that may or may not be on disk. The maps show the row before it, until the file has been
// opened again; no Work begins before that.
type InDoubt struct{ Err error }

func (e *InDoubt) Error() string { return e.Err.Error() }
func (e *InDoubt) Unwrap() error { return e.Err }
