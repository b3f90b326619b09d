package lease

import "time"

// Event is what a Keeper learns from its owner.
type Event interface{ event() }

// Call numbers the calls of a Keeper. An answer carries the number of the call it answers; those of calls that the keeper has
// given up are ignored.
type Call uint64

// The events.
type (
	// Answered is a node's answer to a Read, or to a Send that it accepted.
	Answered struct {
		Node   string
		Call   Call
		Status Status
	}
	// Refused is a node's refusal.
	Refused struct {
		Node    string
		Call    Call
		Refusal *Refusal
	}
	// Unanswered is a call whose connection failed, or whose answer made no sense.
	Unanswered struct {
		Node string
		Call Call
	}
	// AddNode is a node that is in the directory from now on.
	AddNode struct{ Node NodeInfo }
	// RemoveNode is a node that is in the directory no more.
	RemoveNode struct{ Node string }
	// Place is a tenant that the directory now places on the node, or nowhere if Node is empty. It ends a Withhold.
	Place struct {
		Tenant, Node string
		// Frozen is whether the copy that the tenant leaves is frozen on its disk or deleted, so that no lease lets it write.
		Frozen bool
	}
	// Withhold takes a tenant off its node's list, as before a failover by hand. Free follows.
	Withhold struct{ Tenant string }
	// Release ends a Withhold, FailOver or Promote after which the tenant stays where it is. It is listed with the next renewal.
	Release struct{ Tenant string }
	// LengthRecorded is the result of RecordLength.
	LengthRecorded struct {
		Length time.Duration
		Err    error
	}
)

func (Answered) event()       {}
func (Refused) event()        {}
func (Unanswered) event()     {}
func (AddNode) event()        {}
func (RemoveNode) event()     {}
func (Place) event()          {}
func (Withhold) event()       {}
func (Release) event()        {}
func (LengthRecorded) event() {}

// Action is what the owner of a Keeper does next.
type Action interface{ action() }

// The actions.
type (
	// Read asks the node for its lease: GET /_admin/lease.
	Read struct {
		Node string
		Call Call
	}
	// Send grants: POST /_admin/lease. It is sent at once or not at all: the keeper counts it as sent.
	Send struct {
		Node  string
		Call  Call
		Grant Grant
	}
	// Abandon closes the connection of a call that the keeper has given up.
	Abandon struct {
		Node string
		Call Call
	}
	// Listed names tenants that a node has acknowledged to be in its list, and that were not before.
	Listed struct {
		Node    string
		Tenants []string
	}
	// Free is a withheld tenant that is in no node's list now, so no lease lets any node write it. It says nothing of a node
	// that writes without a lease: see View.Leased. Place or Release answers it.
	Free struct{ Tenant string }
	// Lapsed is a node that no grant can let write any more.
	Lapsed struct{ Node string }
	// FailOver names tenants of a lapsed node to be promoted elsewhere now: record each in the directory, promote, and answer
	// with Place, or Release if it stays. They are in no list until then.
	FailOver struct {
		Node    string
		Tenants []string
	}
	// Promote names a tenant that the node has lost the file of. It is answered like FailOver.
	Promote struct{ Node, Tenant string }
	// Returned is a node that took a grant after it had lapsed: its copies of tenants placed elsewhere have to follow those.
	Returned struct{ Node string }
	// Gone is a node that has answered nothing for ten leases: its replicas are to be placed elsewhere.
	Gone struct{ Node string }
	// Leased records in the directory whether the node has ever taken a lease, which is NodeInfo.Leased of the next keeper.
	Leased struct {
		Node   string
		Leased bool
	}
	// RecordLength writes the length of leases into the directory. LengthRecorded answers it.
	RecordLength struct{ Length time.Duration }
	// Settled means that no node may hold a lease that the directory does not show: Behind is over, and the next keeper with
	// this directory need not assume it. The owner keeps it on disk from the promotion until then.
	Settled struct{}
	// Deposed is the end of a keeper: another router has taken over with a directory of this history.
	Deposed struct{ History string }
)

func (Read) action()         {}
func (Send) action()         {}
func (Abandon) action()      {}
func (Listed) action()       {}
func (Free) action()         {}
func (Lapsed) action()       {}
func (FailOver) action()     {}
func (Promote) action()      {}
func (Returned) action()     {}
func (Gone) action()         {}
func (Leased) action()       {}
func (RecordLength) action() {}
func (Settled) action()      {}
func (Deposed) action()      {}
