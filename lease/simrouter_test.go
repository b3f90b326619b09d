package lease

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// machineRouter owns a Keeper as a router does.
type machineRouter struct {
	machine
	keeper  *Keeper
	length  time.Duration
	dir     *shared
	old     []*shared // states of dir before its last changes, oldest first
	busy    map[string]bool
	waiting map[string]func() // for Free
	calls   map[Call]bool
	waking  uint64
	deposed bool
}

// change changes the directory on disk.
func (r *machineRouter) change(do func(*shared)) {
	r.old = append(r.old, r.dir.clone())
	if len(r.old) > 4 {
		r.old = r.old[1:]
	}
	do(r.dir)
}

func (r *machineRouter) start() {
	w := r.w
	r.process++
	r.alive, r.busy, r.waiting, r.calls = true, map[string]bool{}, map[string]func(){}, map[Call]bool{}
	w.longest = max(w.longest, r.length)
	behind := r.dir.behind
	c := Config{
		Length: r.length, Name: fmt.Sprintf("%s%d", r.name, r.process), Recorded: r.dir.length, Behind: behind,
	}
	for _, n := range w.nodes {
		c.Nodes = append(c.Nodes, NodeInfo{Name: n.name, Leased: r.dir.leased[n.name]})
	}
	for _, t := range w.tenants {
		c.Tenants = append(c.Tenants, Placement{Tenant: t, Node: r.dir.at[t], FailingOver: r.dir.failing[t] != ""})
	}
	now := r.clock.read(w.now)
	switch w.mutant {
	case "a router that does not wait at its start":
		now -= 2 * certain(w.longest)
	case "a router that knows no recorded length":
		c.Recorded = r.length
	case "a promoted router that trusts its directory":
		c.Behind = false
	case "a router that takes every node for leased":
		for i := range c.Nodes {
			c.Nodes[i].Leased = true
			r.dir.leased[c.Nodes[i].Name] = w.nodes[i].ever
		}
	}
	var err error
	if r.keeper, err = NewKeeper(c, now); err != nil {
		panic(err)
	}
	w.logf("%s starts, behind %v: %v %v", r.name, behind, r.dir.at, r.dir.failing)
	for _, t := range w.tenants {
		if to := r.dir.failing[t]; to != "" {
			r.busy[t] = true
			r.waiting[t] = func() { r.promote(t, to) }
			if w.mutant == "a promoted router that finishes a failover at once" {
				r.waiting[t]()
			}
		} else if w.node(r.dir.at[t]).frozen[t] {
			r.thawAtStart(t, behind)
		}
	}
	r.step()
}

// then does something in the process that runs now, a little later.
func (r *machineRouter) then(d time.Duration, do func()) {
	process := r.process
	r.w.after(d, func() {
		if r.process == process {
			r.deliver(func() {
				if r.process == process && r.alive && !r.deposed {
					do()
				}
			})
		}
	})
}

func (r *machineRouter) step(events ...Event) {
	if r.deposed {
		return
	}
	w := r.w
	now := r.clock.read(w.now)
	if w.mutant == "a router that waits no tenth" {
		now = now / 10 * 11
	}
	for _, a := range r.keeper.Step(now, events...) {
		r.do(a)
	}
	r.waking++
	waking, wake := r.waking, r.keeper.Wake()
	if w.mutant == "a router that waits no tenth" {
		wake = wake/11*10 + 20
	}
	r.then(max(0, r.clock.real(wake)-w.now), func() {
		if r.waking == waking {
			r.step()
		}
	})
}

func (r *machineRouter) do(a Action) {
	w := r.w
	if _, ok := a.(Read); !ok {
		w.logf("%s: %T%+v", r.name, a, a)
	}
	switch a := a.(type) {
	case Read:
		r.call(a.Node, a.Call, func(n *machineNode) (Status, error) { return n.status(), nil })
	case Send:
		d := r.dir.Directory
		r.call(a.Node, a.Call, func(n *machineNode) (Status, error) { return n.grant(a.Grant, d) })
	case Abandon:
		delete(r.calls, a.Call)
	case Free:
		if then := r.waiting[a.Tenant]; then != nil {
			delete(r.waiting, a.Tenant)
			then()
		}
	case FailOver:
		w.failed++
		for _, t := range a.Tenants {
			r.failOver(t)
		}
	case Promote:
		r.failOver(a.Tenant)
	case Leased:
		r.change(func(d *shared) { d.leased[a.Node] = a.Leased })
	case RecordLength:
		r.then(w.upTo(w.length/50), func() {
			if w.chaos && w.chance(20) {
				r.step(LengthRecorded{Err: errors.New("disk full")})
				return
			}
			r.change(func(d *shared) { d.length = a.Length })
			r.step(LengthRecorded{Length: a.Length})
		})
	case Settled:
		r.change(func(d *shared) { d.behind = false })
	case Deposed:
		r.deposed = true
	}
}

// call sends a call of the keeper. The answer is an event.
func (r *machineRouter) call(name string, id Call, ask func(*machineNode) (Status, error)) {
	w, n, process := r.w, r.w.node(name), r.process
	r.calls[id] = true
	answer := func(e Event) {
		w.send(name, r.name, func() {
			if r.process != process {
				return
			}
			r.deliver(func() {
				if r.process == process && r.calls[id] {
					delete(r.calls, id)
					r.step(e)
				}
			})
		})
	}
	w.send(r.name, name, func() {
		if !n.alive && !n.lost {
			answer(Unanswered{name, id})
			return
		}
		n.deliver(func() {
			s, err := ask(n)
			var refusal *Refusal
			if errors.As(err, &refusal) {
				answer(Refused{name, id, refusal})
				return
			}
			answer(Answered{name, id, s})
		})
	})
}

// ask is a call of the router's own: its late effects are refused, as they name a revision that has ended.
func (r *machineRouter) ask(name string, do func(*machineNode), then func(ok bool)) {
	w, n, d, process := r.w, r.w.node(name), r.dir.Directory, r.process
	patience := r.length / 3
	deadline, done := w.now+patience, false
	finish := func(ok bool) {
		if !done {
			done = true
			then(ok)
		}
	}
	w.send(r.name, name, func() {
		n.deliver(func() {
			if done || r.process != process || w.now >= deadline {
				return
			}
			if n.obeys(d) != nil {
				return
			}
			do(n)
			w.logf("%s does what %s asks: frozen %v", name, r.name, n.frozen)
			w.send(name, r.name, func() {
				if r.process == process {
					r.then(0, func() { finish(true) })
				}
			})
		})
	})
	r.then(patience, func() { finish(false) })
}

// failOver promotes a tenant on another node, unless something else is done with it.
func (r *machineRouter) failOver(t string) {
	if r.busy[t] {
		r.then(r.w.upTo(r.length/50), func() { r.step(Release{t}) })
		return
	}
	to := r.target(t)
	if to == "" {
		r.then(0, func() { r.step(Release{t}) })
		return
	}
	r.busy[t] = true
	r.then(r.w.upTo(r.length/50), func() {
		r.change(func(d *shared) { d.failing[t] = to })
		r.promote(t, to)
	})
}

// promote does what a recorded failover still needs.
func (r *machineRouter) promote(t, to string) {
	r.ask(to, func(n *machineNode) { n.frozen[t], n.primary[t] = false, true }, func(ok bool) {
		r.busy[t] = false
		if !ok {
			r.change(func(d *shared) { delete(d.failing, t) })
			r.step(Release{t})
			r.thaw(t, r.dir.at[t]) // a move before may have left it frozen
			return
		}
		r.change(func(d *shared) { delete(d.failing, t); d.at[t] = to })
		r.step(Place{Tenant: t, Node: to})
	})
}

// target returns a node that has a copy and has taken a lease. On one that takes none, a promotion whose answer is lost could
// not be taken back.
func (r *machineRouter) target(t string) string {
	var names []string
	for _, n := range r.w.nodes {
		if n.name != r.dir.at[t] && r.dir.leased[n.name] && n.files[t] {
			names = append(names, n.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return names[r.w.rnd.IntN(len(names))]
}

// move moves a tenant: freeze, install, flip, thaw. A tenant on a node without leases is not protected from a promoted router
// that does not know of the move, so none is moved to one.
func (r *machineRouter) move(t, to string) {
	from := r.dir.at[t]
	if r.busy[t] || from == to || r.dir.failing[t] != "" || !r.w.node(from).leased || !r.dir.leased[to] {
		return
	}
	r.busy[t] = true
	w := r.w
	w.logf("%s moves %s from %s to %s", r.name, t, from, to)
	abort := func() {
		r.busy[t] = false
		r.thaw(t, from)
	}
	frozen := r.w.mutant != "a move that does not freeze"
	r.ask(from, func(n *machineNode) { n.frozen[t] = frozen }, func(ok bool) {
		if !ok || !r.w.node(from).files[t] {
			abort()
			return
		}
		r.ask(to, func(n *machineNode) { n.files[t], n.frozen[t], n.primary[t] = true, true, true }, func(ok bool) {
			if !ok || frozen && !r.w.node(from).frozen[t] {
				abort()
				return
			}
			r.change(func(d *shared) { d.at[t] = to })
			r.busy[t] = false
			r.step(Place{Tenant: t, Node: to, Frozen: true})
			r.thaw(t, to)
		})
	})
}

// withdraw is a failover by hand, of a node that may be alive. One that has never taken a lease is left out: it may start
// without --lease and write.
func (r *machineRouter) withdraw(t string) {
	to := r.target(t)
	if r.busy[t] || r.dir.failing[t] != "" || to == "" || !r.dir.leased[r.dir.at[t]] {
		return
	}
	r.busy[t] = true
	next := func() {
		r.then(0, func() {
			r.change(func(d *shared) { d.failing[t] = to })
			r.promote(t, to)
		})
	}
	if r.w.mutant == "a failover by hand that does not wait" {
		r.change(func(d *shared) { d.failing[t] = to })
		r.promote(t, to)
		return
	}
	r.waiting[t] = next
	r.step(Withhold{t})
}

// thawAtStart repairs a move that a router before this one began. If the directory may lack that the move was completed, the
// copy may still be in its node's list, and the other one is written.
func (r *machineRouter) thawAtStart(t string, behind bool) {
	name := r.dir.at[t]
	if !behind || r.w.mutant == "a promoted router that thaws at once" {
		r.thaw(t, name)
		return
	}
	r.busy[t] = true
	r.waiting[t] = func() {
		r.then(0, func() {
			r.busy[t] = false
			r.step(Release{t})
			r.thaw(t, name)
		})
	}
	r.step(Withhold{t})
}

// thaw lets the copy write that the directory points at, until it is done or points elsewhere.
func (r *machineRouter) thaw(t, name string) {
	process := r.process
	current := func() bool { return r.process == process && r.dir.at[t] == name && !r.busy[t] }
	if !current() {
		return
	}
	r.ask(name, func(n *machineNode) {
		if current() {
			n.frozen[t] = false
		}
	}, func(ok bool) {
		if !ok && slices.Contains(r.w.tenants, t) {
			r.then(r.w.upTo(r.length/3), func() { r.thaw(t, name) })
		}
	})
}
