package lease

import (
	"fmt"
	"strings"
)

// Reason is why a call is refused.
type Reason int

// Reasons. The first five are a node's answers to a grant, the last two its answers to any change of a router.
const (
	// BadValue is a length, an epoch or a list that no grant may have: 400.
	BadValue Reason = iota + 1
	// NoLease is a node that takes no leases: 409.
	NoLease
	// Overtaken is a stamp of another process of the node, or one older than that of the grant it holds: 409.
	Overtaken
	// OtherEpoch is a renewal of an epoch that the node does not hold: 412.
	OtherEpoch
	// MissingFiles is a list that names tenants of which the node has no file: 409.
	MissingFiles
	// OlderTerm is a call of a router whose directory another one has taken over: 409.
	OlderTerm
	// OtherLineage is a call of a router of another cluster while a lease runs: 409.
	OtherLineage
)

// Refusal is the error of a call that a node refuses. A refused call has changed nothing.
type Refusal struct {
	Reason  Reason
	Missing []string // with MissingFiles: the tenants, in the order of the list
	Holds   bool     // with OtherEpoch: the node holds an epoch, which is Epoch
	Epoch   string
	History string // with OlderTerm and OtherLineage: the history of the directory that the node obeys
	detail  string
}

// Error returns what was expected and what was got.
func (r *Refusal) Error() string {
	switch r.Reason {
	case BadValue:
		return "lease: " + r.detail
	case NoLease:
		return "lease: this node takes no lease: start it with --lease"
	case Overtaken:
		return "lease: expected an `at` of this process, no older than that of the lease it holds; " + r.detail
	case OtherEpoch:
		if !r.Holds {
			return "lease: expected a list of primaries, because this node holds no epoch"
		}
		return fmt.Sprintf("lease: expected a list of primaries or the epoch %q that this node holds", r.Epoch)
	case MissingFiles:
		return "lease: this node has no file of " + strings.Join(r.Missing, ", ")
	case OlderTerm:
		return "directory: the directory with the history " + r.History + " took over"
	case OtherLineage:
		return "directory: this node is leased by the cluster of the directory with the history " + r.History
	}
	return fmt.Sprintf("lease: refused for the unknown reason %d", r.Reason)
}
