package lease

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// goneAfter is how many leases a node has answered nothing for when its replicas are placed elsewhere.
const goneAfter = 10

// Keeper is the leases of all nodes of a router. It is one for all of them because a tenant has to leave one node's list
// before it enters another's.
type Keeper struct {
	length    time.Duration
	name      string
	now       time.Duration
	first     time.Duration // when what the keepers before this one granted has certainly lapsed
	nodes     []*node       // by name
	tenants   map[string]*tenant
	stale     int // nodes that may hold what a keeper before this one granted
	suspects  int // those of them that may hold the lease of any tenant
	lastCall  Call
	lastEpoch uint64
	recorded  time.Duration
	recording bool
	recordAt  time.Duration // when a RecordLength that failed is tried again
	deposed   bool
	early     []Action // of the first Step
	out       []Action
}

// node is what the keeper knows of one.
type node struct {
	NodeInfo
	removed bool
	refuses bool // it answers that it takes no leases
	sync    bool
	heard   time.Duration // the last answer
	gone    bool          // Gone was returned

	// until is when, by the keeper's clock, every grant that was sent has certainly lapsed.
	until  time.Duration
	lapsed bool // until has passed
	away   bool // it lapsed and has acknowledged nothing since
	// renewed is the arrival of the answer whose stamp the last acknowledged grant carried.
	renewed time.Duration
	// failed is whether, since the last acknowledged grant, a renewal sent after a lapse went unanswered.
	failed bool
	retry  time.Duration // when a failover is tried again
	// trying is whether a grant was sent since the last answer to one; tried is when the first of them was, and drained when
	// the last has lapsed.
	trying         bool
	tried, drained time.Duration

	placed  map[*tenant]struct{} // what the directory places on it
	held    map[*tenant]struct{} // what grants that were sent may let it write
	stale   bool                 // it may hold what a keeper before this one granted
	suspect bool                 // that may be anything: see Config.Behind
	version uint64               // changes with every change of the list it should have
	sent    list                 // the last list that was sent
	claimed string               // the epoch whose list is in held
	acked   string               // the epoch that it acknowledged last

	call    *call
	next    time.Duration // when the next renewal begins
	hurry   bool          // begin the next one as this one ends
	retried bool          // a refusal was followed by a renewal at once
}

type list struct {
	epoch   string
	version uint64
	tenants []*tenant
}

// call is a call without an answer yet. A renewal is a read and then a grant.
type call struct {
	id         Call
	grant      bool
	began      time.Duration // the renewal
	deadline   time.Duration
	afterLapse bool          // the renewal began when the node had lapsed
	arrival    time.Duration // of the answer to the read
	list       list
}

// NewKeeper returns the keeper of a router that starts now. Its first Step begins the first renewals.
func NewKeeper(c Config, now time.Duration) (*Keeper, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	k := &Keeper{
		length: c.Length, name: c.Name, now: now, recorded: c.Recorded, recordAt: now,
		first: now + certain(max(c.Length, c.Recorded)), tenants: map[string]*tenant{},
	}
	for _, info := range c.Nodes {
		k.addNode(info)
	}
	for _, p := range c.Tenants {
		n := k.nodeOrGhost(p.Node)
		t := &tenant{name: p.Tenant, node: n, withheld: p.FailingOver}
		k.tenants[t.name] = t
		n.placed[t] = struct{}{}
		switch {
		case !t.withheld:
			k.hold(n, t)
		case c.Behind:
			t.notify = free
		default:
			k.do(Free{Tenant: t.name}) // as it was when the failover was recorded
		}
	}
	k.early, k.out = k.out, nil
	if c.Behind {
		for _, n := range k.nodes {
			n.suspect = true
			k.suspects++
		}
	}
	return k, nil
}

// Step takes events and returns what to do now, in this order. The time is that of the clock of package boottime. Step is
// called as an event arrives and at the time Wake returns.
func (k *Keeper) Step(now time.Duration, events ...Event) []Action {
	k.now, k.out, k.early = max(k.now, now), k.early, nil
	if k.deposed {
		return nil
	}
	for _, n := range k.nodes {
		k.lapse(n)
	}
	for _, e := range events {
		if k.deposed {
			return k.out
		}
		k.take(e)
	}
	k.recordLength()
	for _, n := range k.nodes {
		k.giveUp(n)
	}
	for _, n := range k.nodes {
		k.failOver(n)
	}
	for _, n := range k.nodes {
		if n.call == nil && n.next <= k.now && !n.removed {
			k.read(n)
		}
	}
	k.nodes = slices.DeleteFunc(k.nodes, func(n *node) bool {
		return n.removed && n.lapsed && len(n.placed) == 0
	})
	return k.out
}

// Wake returns when Step is to be called next if no event arrives before.
func (k *Keeper) Wake() time.Duration {
	wake := time.Duration(math.MaxInt64)
	if k.deposed {
		return wake
	}
	if at, due := k.recordDue(); due {
		wake = at
	}
	for _, n := range k.nodes {
		if !n.lapsed {
			wake = min(wake, n.until)
		}
		if n.removed {
			continue
		}
		if n.call != nil {
			wake = min(wake, n.call.deadline)
		} else {
			wake = min(wake, n.next)
		}
		if !n.gone {
			wake = min(wake, n.heard+goneAfter*k.length)
		}
	}
	return wake
}

func (k *Keeper) third() time.Duration { return k.length / parts }

func (k *Keeper) do(a Action) { k.out = append(k.out, a) }

func (k *Keeper) take(e Event) {
	switch e := e.(type) {
	case Answered:
		if n, c := k.called(e.Node, e.Call); c != nil {
			k.answered(n, c, e.Status)
		}
	case Refused:
		if n, c := k.called(e.Node, e.Call); c != nil {
			k.refused(n, c, e.Refusal)
		}
	case Unanswered:
		if n, c := k.called(e.Node, e.Call); c != nil {
			k.unanswered(n, c)
		}
	case AddNode:
		k.addNode(e.Node)
	case RemoveNode:
		k.removeNode(e.Node)
	case Place:
		k.place(e)
	case Withhold:
		k.withhold(e.Tenant)
	case Release:
		k.release(e.Tenant)
	case LengthRecorded:
		k.recording = false
		if e.Err != nil {
			k.recordAt = k.now + k.third()
			return
		}
		k.recorded = e.Length
		for _, n := range k.nodes {
			n.soon(k.now)
		}
	}
}

// called returns the node whose call a result is of, and nil if the keeper does not wait for it.
func (k *Keeper) called(name string, id Call) (*node, *call) {
	n := k.node(name)
	if n == nil || n.call == nil || n.call.id != id {
		return nil, nil
	}
	c := n.call
	n.call = nil
	return n, c
}

// read begins a renewal.
func (k *Keeper) read(n *node) {
	n.call = k.newCall()
	n.call.afterLapse = n.lapsed
	n.next = k.now + k.third()
	k.do(Read{Node: n.Name, Call: n.call.id})
}

func (k *Keeper) newCall() *call {
	k.lastCall++
	return &call{id: k.lastCall, began: k.now, deadline: k.now + k.third()}
}

func (k *Keeper) answered(n *node, c *call, s Status) {
	n.heard, n.gone = k.now, false
	if c.grant {
		k.acknowledged(n, c)
		return
	}
	n.sync = s.Sync
	if !s.Leased {
		k.takesNoLease(n)
		return
	}
	n.refuses = false
	if s.Granted {
		k.runsUntil(n, k.now+certain(s.Left)) // of a grant by hand, or of a router before this one
	}
	// A node that answers reads and no grants is not sent more of them for a while, so that its lease lapses.
	stuck := n.trying && k.now >= n.tried+certain(k.length) && k.now < n.drained
	if k.recorded >= k.length && !stuck {
		k.grant(n, c, s)
	}
}

// grant sends the grant of a renewal. From here on it counts, from the arrival of its stamp, whether it arrives or not.
func (k *Keeper) grant(n *node, read *call, s Status) {
	g := Grant{Length: k.length, At: s.At}
	if n.sent.epoch == "" || !s.Granted || s.Epoch != n.sent.epoch || n.sent.version != n.version {
		k.lastEpoch++
		n.sent = list{epoch: k.name + "-" + strconv.FormatUint(k.lastEpoch, 10), version: n.version, tenants: k.listFor(n)}
		g.Primaries = make([]string, 0, len(n.sent.tenants))
		for _, t := range n.sent.tenants {
			g.Primaries = append(g.Primaries, t.name)
		}
	}
	g.Epoch = n.sent.epoch
	if n.claimed != n.sent.epoch {
		n.claimed = n.sent.epoch
		for _, t := range n.sent.tenants {
			k.hold(n, t)
		}
	}
	n.call = k.newCall()
	n.call.grant, n.call.began, n.call.afterLapse = true, read.began, read.afterLapse
	n.call.arrival, n.call.list = k.now, n.sent
	if !n.trying || k.now >= n.drained {
		n.trying, n.tried = true, k.now
	}
	n.drained = k.now + certain(k.length)
	k.runsUntil(n, n.drained)
	n.hurry = false
	k.do(Send{Node: n.Name, Call: n.call.id, Grant: g})
}

// runsUntil counts a grant that may run until then.
func (k *Keeper) runsUntil(n *node, until time.Duration) {
	n.until = max(n.until, until)
	n.lapsed = n.until <= k.now
}

func (k *Keeper) acknowledged(n *node, c *call) {
	n.renewed, n.failed, n.retried, n.trying = c.arrival, false, false, false
	if !n.Leased {
		n.Leased = true
		k.do(Leased{Node: n.Name, Leased: true})
	}
	if n.away {
		n.away = false
		k.do(Returned{Node: n.Name})
	}
	if n.acked != c.list.epoch {
		n.acked = c.list.epoch
		k.left(n, c.list)
		k.listed(n, c.list)
	}
	if n.hurry {
		n.next = k.now
	}
}

// takesNoLease is a node without --lease. It was started with another directory than one that had taken a lease.
func (k *Keeper) takesNoLease(n *node) {
	n.refuses = true
	if n.Leased {
		n.Leased = false
		k.do(Leased{Node: n.Name})
	}
	n.until = k.now
	n.away = false
	k.lapse(n)
}

func (k *Keeper) refused(n *node, c *call, r *Refusal) {
	n.heard, n.gone, n.trying = k.now, false, false
	again := !n.retried
	switch r.Reason {
	case OlderTerm:
		k.depose(r.History)
		return
	case NoLease:
		k.takesNoLease(n)
		return
	case OtherEpoch:
		n.sent.epoch = ""
	case MissingFiles:
		again = k.missing(n, c, r.Missing) || again
	case Overtaken:
	default:
		again = false
	}
	if again {
		n.next, n.retried = k.now, true
	}
}

func (k *Keeper) depose(history string) {
	k.deposed = true
	for _, n := range k.nodes {
		if n.call != nil {
			k.do(Abandon{Node: n.Name, Call: n.call.id})
		}
	}
	k.do(Deposed{History: history})
}

// unanswered counts a renewal that failed. One that began after the lapse is what a failover waits for.
func (k *Keeper) unanswered(n *node, c *call) {
	n.failed = n.failed || c.afterLapse
	n.next = max(k.now, c.began+k.third())
}

// giveUp ends a call that has been without an answer for too long.
//
// A router that was stopped reads the clock before it reads the answers that came meanwhile. Step is late then, and the call
// gets a little longer, so that they are read.
func (k *Keeper) giveUp(n *node) {
	if !n.gone && !n.removed && k.now >= n.heard+goneAfter*k.length {
		n.gone = true
		k.do(Gone{Node: n.Name})
	}
	c := n.call
	if c == nil || k.now < c.deadline {
		return
	}
	if late := k.third() / 8; k.now > c.deadline+late {
		c.deadline = k.now + late
		return
	}
	n.call = nil
	k.do(Abandon{Node: n.Name, Call: c.id})
	k.unanswered(n, c)
}

// recordDue returns when the length in the directory is to be written. A longer one than that of the keepers before is written
// before the first grant, a shorter one once theirs have lapsed.
func (k *Keeper) recordDue() (time.Duration, bool) {
	switch {
	case k.recording || k.recorded == k.length:
		return 0, false
	case k.recorded < k.length:
		return k.recordAt, true
	}
	return max(k.recordAt, k.first), true
}

func (k *Keeper) recordLength() {
	if at, due := k.recordDue(); due && k.now >= at {
		k.recording = true
		k.do(RecordLength{Length: k.length})
	}
}
