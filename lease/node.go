package lease

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// maxEpochBytes bounds an epoch, which a node only compares.
const maxEpochBytes = 128

// NodeConfig is what a Node is made of.
type NodeConfig struct {
	// Leased is whether the node takes leases. One that takes none may always write.
	Leased bool
	// Process identifies this process of the node among all its processes. It is random and contains no dot.
	Process string
	// Has reports whether the node has a file of a tenant. It is called with a lock of the Node held and must not call it.
	Has func(tenant string) bool
}

// Grant is what a router asks of a node: to count as the primary of the tenants in a list for a while.
type Grant struct {
	Length time.Duration
	// Epoch names the list. It is compared for equality alone.
	Epoch string
	// Primaries is the list. Nil renews the list that the node holds under Epoch; a list that is empty is not nil.
	Primaries []string
	// At is a stamp from an earlier answer of the node: the grant runs from that instant. Without one it runs from now.
	At string
}

// Status is a node's answer to a GET and to a grant.
type Status struct {
	Leased bool // the node takes leases
	// Granted is whether it has taken a grant in this process. If not, Epoch, Primaries and Left mean nothing.
	Granted   bool
	Epoch     string
	Primaries int
	// Left is until the lease lapses, 0 if it has. It is rounded up when it is sent as milliseconds.
	Left time.Duration
	At   string // the stamp of this answer
	// Sync is whether the node runs --sync replica. The Node does not set it.
	Sync bool
}

// Change is which tenants the node's writes begin and end for. What is in both ended and began again: the lease lapsed in
// between, so another node may have written the tenant.
type Change struct {
	Lost, Gained []string
}

// Term identifies an unbroken time in which the lease named a tenant. The zero Term is none.
type Term uint64

// forever is the term of a node that takes no leases.
const forever Term = 1

// Node is the lease that a node holds. Its mutex is a leaf; the questions that writes ask, Write and Stands, take no lock.
type Node struct {
	leased bool
	has    func(string) bool
	held   atomic.Pointer[held]

	mu     sync.Mutex
	stamps stamps
	terms  Term
	mine   bool // the tenants of held were reported as gained and not as lost
}

// held is a grant that was taken. Nothing in it changes.
type held struct {
	epoch     string
	at, until time.Duration
	terms     map[string]Term
}

// NewNode returns a node that holds no lease yet.
func NewNode(config NodeConfig) *Node {
	return &Node{leased: config.Leased, has: config.Has, stamps: stamps{process: config.Process}, terms: forever}
}

// Write reports whether a write of the tenant may land now, and in which term. It is asked under the tenant's write lock.
func (n *Node) Write(tenant string, now time.Duration) (Term, bool) {
	if !n.leased {
		return forever, true
	}
	h := n.held.Load()
	if h == nil || now >= h.until {
		return 0, false
	}
	term := h.terms[tenant]
	return term, term != 0
}

// Stands reports whether the node has been the tenant's primary without a break since it was told the term. It is asked
// before the answer to a write goes out: if it reports false, the write has landed and is not known to stand.
func (n *Node) Stands(tenant string, since Term, now time.Duration) bool {
	term, ok := n.Write(tenant, now)
	return ok && term == since
}

// Status returns the state of the lease, with a stamp of this instant.
func (n *Node) Status(now time.Duration) Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.statusLocked(now)
}

func (n *Node) statusLocked(now time.Duration) Status {
	_, at := n.stamps.make(now)
	s := Status{Leased: n.leased, At: at}
	if h := n.held.Load(); h != nil {
		s.Granted, s.Epoch, s.Primaries = true, h.epoch, len(h.terms)
		s.Left = max(0, h.until-now)
	}
	return s
}

// Grant takes a grant, or returns a *Refusal and changes nothing.
func (n *Node) Grant(g Grant, now time.Duration) (Status, Change, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.held.Load()
	at, err := n.judgeLocked(g, old)
	if err != nil {
		return Status{}, Change{}, err
	}
	if g.At == "" {
		at, _ = n.stamps.make(now)
	}
	h := &held{epoch: g.Epoch, at: at, until: at + g.Length}
	runs := n.mine && now < old.until
	var change Change
	switch {
	case runs && g.Primaries == nil:
		h.terms = old.terms
	default:
		h.terms = n.termsLocked(g, old, runs)
		change = n.changeLocked(h, old, runs, now)
	}
	n.held.Store(h)
	return n.statusLocked(now), change, nil
}

// judgeLocked returns the instant of the grant's stamp, if it has one.
func (n *Node) judgeLocked(g Grant, old *held) (at time.Duration, err error) {
	switch {
	case g.Length < 0 || g.Length > MaxLength:
		return 0, &Refusal{Reason: BadValue, detail: fmt.Sprintf("expected a length from 0 to %s, got %s", MaxLength, g.Length)}
	case g.Epoch == "" || len(g.Epoch) > maxEpochBytes:
		return 0, &Refusal{Reason: BadValue, detail: fmt.Sprintf("expected an epoch of 1 to %d bytes, got %d", maxEpochBytes, len(g.Epoch))}
	case !n.leased:
		return 0, &Refusal{Reason: NoLease}
	}
	if g.At != "" {
		var ok bool
		if at, ok = n.stamps.read(g.At); !ok {
			return 0, &Refusal{Reason: Overtaken, detail: "got one of another process"}
		}
		if old != nil && at < old.at {
			return 0, &Refusal{Reason: Overtaken, detail: "got an older one"}
		}
	}
	if g.Primaries == nil && (old == nil || old.epoch != g.Epoch) {
		r := &Refusal{Reason: OtherEpoch}
		if old != nil {
			r.Holds, r.Epoch = true, old.epoch
		}
		return 0, r
	}
	var missing []string
	for _, tenant := range g.Primaries {
		if !n.has(tenant) {
			missing = append(missing, tenant)
		}
	}
	if missing != nil {
		return 0, &Refusal{Reason: MissingFiles, Missing: missing}
	}
	return at, nil
}

// termsLocked returns the terms under a new grant: those of tenants whose lease goes on without a break stay.
func (n *Node) termsLocked(g Grant, old *held, runs bool) map[string]Term {
	n.terms++
	terms := make(map[string]Term, len(g.Primaries))
	if g.Primaries == nil {
		for tenant := range old.terms {
			terms[tenant] = n.terms
		}
		return terms
	}
	for _, tenant := range g.Primaries {
		terms[tenant] = n.terms
		if runs && old.terms[tenant] != 0 {
			terms[tenant] = old.terms[tenant]
		}
	}
	return terms
}

// changeLocked returns what a grant changes for the tenants of it and of the one before it.
func (n *Node) changeLocked(h, old *held, runs bool, now time.Duration) (c Change) {
	if n.mine {
		for tenant, term := range old.terms {
			if !runs || h.terms[tenant] != term {
				c.Lost = append(c.Lost, tenant)
			}
		}
	}
	n.mine = now < h.until
	if !n.mine {
		// The grant has lapsed before it was taken, or ends the lease.
		for tenant := range h.terms {
			if runs && old.terms[tenant] == h.terms[tenant] {
				c.Lost = append(c.Lost, tenant)
			}
		}
		return c
	}
	for tenant, term := range h.terms {
		if !runs || old.terms[tenant] != term {
			c.Gained = append(c.Gained, tenant)
		}
	}
	return c
}

// NextLapse returns when the lease lapses if it is not renewed, and false if it holds no tenant's lease or has reported its
// lapse. The owner calls Lapse then.
func (n *Node) NextLapse() (time.Duration, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.mine {
		return 0, false
	}
	return n.held.Load().until, true
}

// Lapse returns the tenants that the node's writes have ended for because the lease lapsed. It returns each lapse once.
func (n *Node) Lapse(now time.Duration) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.held.Load()
	if !n.mine || now < h.until {
		return nil
	}
	n.mine = false
	lost := make([]string, 0, len(h.terms))
	for tenant := range h.terms {
		lost = append(lost, tenant)
	}
	return lost
}

// Runs reports whether a lease runs now.
func (n *Node) Runs(now time.Duration) bool {
	h := n.held.Load()
	return h != nil && now < h.until
}
