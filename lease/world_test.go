package lease

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// world is a cluster in virtual time: routers that run a Keeper, nodes that run a Node, a network that delays, loses, reorders
// and cuts, machines whose clocks differ in rate. One seed decides everything that happens in it.
type world struct {
	rnd     *rand.Rand
	seed    uint64
	now     time.Duration // real time
	queue   eventQueue
	serial  uint64
	length  time.Duration // of a lease, of most routers
	longest time.Duration // of any router so far
	tenants []string
	nodes   []*machineNode
	routers []*machineRouter // the last one is active
	cuts    map[[2]string]bool
	chaos   bool
	mutant  string // what is left out
	steps   int
	failure string
	trace   []string
	tracing bool
	failed  int     // failovers begun
	took    float64 // until all tenants were written again, in the longest leases
}

type event struct {
	at     time.Duration
	serial uint64
	do     func()
}

type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].serial < q[j].serial
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return e
}

func (w *world) after(d time.Duration, do func()) {
	w.serial++
	heap.Push(&w.queue, event{w.now + d, w.serial, do})
}

// run lets things happen until then, and compares who may write after each of them.
func (w *world) run(until time.Duration) {
	for len(w.queue) > 0 && w.queue[0].at <= until && w.failure == "" {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		w.steps++
		e.do()
		w.check()
	}
	w.now = max(w.now, until)
}

func (w *world) logf(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%8s ", w.now.Round(time.Millisecond))+fmt.Sprintf(format, args...))
	}
}

// check finds two nodes that may write one tenant at this instant. Whether they know of the role that the copy has is left
// out: the lists alone have to be disjoint.
func (w *world) check() {
	for _, t := range w.tenants {
		writer := ""
		for _, n := range w.nodes {
			if !n.writes(t) {
				continue
			}
			if writer != "" {
				w.failure = fmt.Sprintf("%s and %s both write %s at %s", writer, n.name, t, w.now)
				return
			}
			writer = n.name
		}
	}
}

func (w *world) chance(percent int) bool { return w.rnd.IntN(100) < percent }

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rnd.Int64N(int64(d) + 1)) }

// send carries a message. It may be late by some leases while there is chaos, and so overtake others.
func (w *world) send(from, to string, deliver func()) {
	if w.cuts[[2]string{from, to}] || w.chaos && w.chance(4) {
		return
	}
	delay := w.upTo(w.length / 100)
	if w.chaos && w.chance(8) {
		delay = w.upTo(4 * w.length)
	}
	w.after(delay, deliver)
}

// clock is of one machine. Its rate differs from real time by up to 4.7 %.
type clock struct {
	offset time.Duration
	rate   int64 // in a thousandth of a percent
}

const full = 100_000

func (w *world) newClock() clock {
	c := clock{offset: time.Duration(w.rnd.Int64N(int64(1000 * time.Hour)))}
	switch w.rnd.IntN(3) {
	case 0:
		c.rate = full - 4700
	case 1:
		c.rate = full + 4700
	default:
		c.rate = full - 4700 + w.rnd.Int64N(9401)
	}
	return c
}

func (c clock) read(real time.Duration) time.Duration {
	return c.offset + time.Duration(int64(real)/full*c.rate+int64(real)%full*c.rate/full)
}

// real returns when the clock has reached then.
func (c clock) real(then time.Duration) time.Duration {
	d := int64(then - c.offset)
	return time.Duration(d/c.rate*full+d%c.rate*full/c.rate) + 2
}

// machine is one on which a process runs, is stopped, or is dead.
type machine struct {
	w       *world
	name    string
	clock   clock
	alive   bool
	stopped bool
	lost    bool // nothing on it answers, not even that nothing listens
	process int  // counts its processes
	socket  []func()
}

// deliver hands something to the process that runs. It waits in the socket of one that is stopped.
func (m *machine) deliver(do func()) {
	switch {
	case !m.alive:
	case m.stopped:
		m.socket = append(m.socket, do)
	default:
		do()
	}
}

func (m *machine) resume() {
	m.stopped = false
	waiting := m.socket
	m.socket = nil
	for _, do := range waiting {
		do()
	}
}

func (m *machine) kill() { m.alive, m.stopped, m.socket = false, false, nil }

// machineNode is a node and its disk.
type machineNode struct {
	machine
	node      *Node
	leased    bool // --lease
	ever      bool // on its disk: it has taken a lease
	files     map[string]bool
	frozen    map[string]bool // on its disk; copies held after an install too
	primary   map[string]bool // what a node without leases writes
	directory Directory
}

// writes reports whether the node takes itself for the primary of the tenant. One that is stopped would go on as one.
func (n *machineNode) writes(t string) bool {
	if !n.alive || !n.files[t] || n.frozen[t] || !n.leased && !n.primary[t] {
		return false
	}
	_, ok := n.node.Write(t, n.clock.read(n.w.now))
	return ok
}

func (n *machineNode) start() {
	n.process++
	n.alive = true
	if n.leased && !n.ever && n.w.chance(20) {
		n.leased = false
	}
	n.node = NewNode(NodeConfig{
		Leased: n.leased, Process: fmt.Sprintf("%s%d", n.name, n.process), Has: func(t string) bool { return n.files[t] },
	})
	n.w.logf("%s starts, leased %v", n.name, n.leased)
}

// obeys reports whether the node does what a router of the directory asks for.
func (n *machineNode) obeys(d Directory) error {
	verdict, err := n.directory.Judge(d, n.node.Runs(n.clock.read(n.w.now)))
	if verdict == AcceptAndRecord {
		n.directory = d
	}
	if n.w.mutant == "a node that obeys older terms" {
		return nil
	}
	return err
}

func (n *machineNode) status() Status { return n.node.Status(n.clock.read(n.w.now)) }

func (n *machineNode) grant(g Grant, d Directory) (Status, error) {
	if err := n.obeys(d); err != nil {
		return Status{}, err
	}
	switch n.w.mutant {
	case "a node that counts from reading":
		g.At = ""
	case "a node that takes any stamp":
		if at, ok := n.node.stamps.read(g.At); !ok || n.node.held.Load() != nil && at < n.node.held.Load().at {
			g.At = n.node.Status(n.clock.read(n.w.now)).At
		}
	}
	s, _, err := n.node.Grant(g, n.clock.read(n.w.now))
	if err == nil {
		n.ever = true
	}
	n.w.logf("%s takes %s %v at %s: %v", n.name, g.Epoch, g.Primaries, g.At, err)
	return s, err
}

// shared is a router's directory, on its disk.
type shared struct {
	Directory
	at      map[string]string // tenant to node
	failing map[string]string // tenant to the node it is promoted on
	leased  map[string]bool
	length  time.Duration
	behind  bool // it may lack changes of the router before
}

func (d *shared) clone() *shared {
	c := &shared{Directory: d.Directory, at: map[string]string{}, failing: map[string]string{}, leased: map[string]bool{}, length: d.length, behind: d.behind}
	for t, n := range d.at {
		c.at[t] = n
	}
	for t, n := range d.failing {
		c.failing[t] = n
	}
	for n, l := range d.leased {
		c.leased[n] = l
	}
	return c
}

func (w *world) node(name string) *machineNode {
	i := slices.IndexFunc(w.nodes, func(n *machineNode) bool { return n.name == name })
	return w.nodes[i]
}

func (w *world) router() *machineRouter { return w.routers[len(w.routers)-1] }
