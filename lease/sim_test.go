package lease

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var (
	simSeed  = flag.Uint64("lease.seed", 0, "the only schedule of the simulation to run, traced if it fails")
	simCount = flag.Int("lease.count", 1000, "how many schedules the simulation runs")
)

func newWorld(seed uint64, mutant string) *world {
	w := &world{
		rnd: rand.New(rand.NewPCG(seed, 1)), seed: seed, length: time.Second, cuts: map[[2]string]bool{},
		chaos: true, mutant: mutant,
	}
	for i := range 2 + w.rnd.IntN(4) {
		w.tenants = append(w.tenants, fmt.Sprintf("t%d", i))
	}
	dir := &shared{
		Directory: Directory{Lineage: "l", Term: 1, History: "1-a"},
		at:        map[string]string{}, failing: map[string]string{}, leased: map[string]bool{},
	}
	for i := range 2 + w.rnd.IntN(3) {
		n := &machineNode{
			machine: machine{w: w, name: fmt.Sprintf("n%d", i), clock: w.newClock()},
			leased:  i == 0 || !w.chance(15), files: map[string]bool{}, frozen: map[string]bool{}, primary: map[string]bool{},
		}
		for _, t := range w.tenants {
			n.files[t] = true
		}
		w.nodes = append(w.nodes, n)
		n.start()
	}
	for _, t := range w.tenants {
		n := w.nodes[w.rnd.IntN(len(w.nodes))]
		dir.at[t], n.primary[t] = n.name, true
	}
	r := &machineRouter{machine: machine{w: w, name: "r0", clock: w.newClock()}, length: w.length, dir: dir}
	w.routers = append(w.routers, r)
	r.start()
	return w
}

// simulate runs one schedule: chaos for some leases, then a while in which everything works.
func simulate(seed uint64, mutant string, tracing bool) *world {
	w := newWorld(seed, mutant)
	w.tracing = tracing
	w.after(0, w.trouble)
	w.run(12 * w.length)
	w.heal()
	healed := w.now
	for w.failure == "" && w.idle() != "" {
		if w.now >= healed+patience*w.longest {
			w.failure = fmt.Sprintf("no node writes %s, %s after everything works", w.idle(), w.now-healed)
			break
		}
		w.run(w.now + w.length/5)
	}
	w.took = float64(w.now-healed) / float64(w.longest)
	return w
}

// patience is how many of the longest leases may pass until every tenant is written once everything works.
const patience = 3

// idle names a tenant that is not written where it is placed.
func (w *world) idle() string {
	r := w.router()
	for _, t := range w.tenants {
		n := w.node(r.dir.at[t])
		if !n.writes(t) && (n.leased || n.alive) {
			return t + " on " + n.name
		}
	}
	return ""
}

func (w *world) trouble() {
	if !w.chaos {
		return
	}
	w.after(w.upTo(w.length), w.trouble)
	n, r := w.nodes[w.rnd.IntN(len(w.nodes))], w.router()
	t, other := w.tenants[w.rnd.IntN(len(w.tenants))], w.nodes[w.rnd.IntN(len(w.nodes))]
	switch w.rnd.IntN(12) {
	case 0, 1:
		link := [2]string{r.name, n.name}
		if w.chance(50) {
			link = [2]string{n.name, r.name}
		}
		w.cut(link)
	case 2:
		w.cut([2]string{r.name, n.name})
		w.cut([2]string{n.name, r.name})
	case 3, 4:
		w.stop(&n.machine)
	case 5:
		w.stop(&r.machine)
	case 6:
		w.restartNode(n)
	case 7:
		w.restartRouter(r)
	case 8:
		w.promoteRouter(r)
	case 9, 10:
		r.deliver(func() { r.move(t, other.name) })
	case 11:
		r.deliver(func() { r.withdraw(t) })
	}
}

func (w *world) cut(link [2]string) {
	w.logf("cut %v", link)
	w.cuts[link] = true
	w.after(w.upTo(4*w.length), func() { delete(w.cuts, link) })
}

func (w *world) stop(m *machine) {
	if !m.alive || m.stopped {
		return
	}
	w.logf("stop %s", m.name)
	m.stopped = true
	process := m.process
	w.after(w.upTo(3*w.length), func() {
		if m.alive && m.stopped && m.process == process {
			w.logf("resume %s", m.name)
			m.resume()
		}
	})
}

func (w *world) restartNode(n *machineNode) {
	if !n.alive {
		return
	}
	n.kill()
	n.lost = w.chance(50)
	w.logf("kill %s, lost %v", n.name, n.lost)
	if w.chance(15) && n.ever {
		w.logf("wipe %s", n.name)
		clear(n.files)
		clear(n.frozen)
		clear(n.primary)
		n.directory = Directory{}
	}
	w.after(w.upTo(4*w.length), func() {
		if !n.alive {
			n.start()
		}
	})
}

func (w *world) restartRouter(r *machineRouter) {
	if r.deposed {
		return
	}
	r.kill()
	w.logf("kill %s", r.name)
	r.process++
	w.after(w.upTo(w.length), func() {
		if r.alive || r != w.router() {
			return
		}
		r.length = []time.Duration{w.length, w.length, w.length / 2, 2 * w.length}[w.rnd.IntN(4)]
		if w.mutant == "a router that forgets that it was promoted" {
			r.dir.behind = false
		}
		r.start()
	})
}

// promoteRouter promotes a standby, whose directory may lack the last changes. The old router is gone, or every node has heard
// of the new one.
func (w *world) promoteRouter(old *machineRouter) {
	if len(w.routers) == 3 {
		return
	}
	dir := old.dir
	if behind := w.rnd.IntN(len(old.old) + 1); behind > 0 {
		dir = old.old[len(old.old)-behind]
	}
	dir = dir.clone()
	dir.behind = true
	dir.Term++
	dir.History = fmt.Sprintf("%d-%d", dir.Term, len(w.routers))
	r := &machineRouter{
		machine: machine{w: w, name: fmt.Sprintf("r%d", len(w.routers)), clock: w.newClock()},
		length:  old.length, dir: dir,
	}
	w.logf("promote %s", r.name)
	if w.chance(50) {
		old.kill()
		old.process++
	}
	for _, n := range w.nodes {
		n.directory = dir.Directory
	}
	w.routers = append(w.routers, r)
	r.start()
}

// heal ends all trouble. One node may stay dead, if each of its tenants has another copy.
func (w *world) heal() {
	w.logf("heal")
	w.chaos = false
	clear(w.cuts)
	dead := w.nodes[w.rnd.IntN(len(w.nodes))]
	keep := w.chance(50) && w.router().dir.leased[dead.name] // any other is never failed over
	for _, t := range w.tenants {
		copies := 0
		for _, n := range w.nodes {
			if n != dead && n.files[t] && w.router().dir.leased[n.name] {
				copies++
			}
		}
		keep = keep && copies > 0
	}
	if keep {
		dead.kill()
	}
	for _, n := range w.nodes {
		if n.stopped {
			n.resume()
		}
		if !n.alive && !(keep && n == dead) {
			n.start()
		}
	}
	for _, r := range w.routers {
		if r.stopped {
			r.resume()
		}
	}
	if r := w.router(); !r.alive {
		r.start()
	}
	for _, t := range w.tenants { // what a wiped node had no copy of elsewhere is lost; give it a new one
		r := w.router()
		n := w.node(r.dir.at[t])
		n.files[t] = true
	}
}

func TestNoTwoPrimaries(t *testing.T) {
	first, count := uint64(1), *simCount
	if *simSeed != 0 {
		first, count = *simSeed, 1
	}
	steps, failed, took := 0, 0, 0.0
	began := time.Now()
	for seed := first; seed < first+uint64(count); seed++ {
		w := simulate(seed, "", *simSeed != 0)
		steps, failed, took = steps+w.steps, failed+w.failed, max(took, w.took)
		if w.failure != "" {
			t.Fatalf("-lease.seed %d: %s\n%s", seed, w.failure, strings.Join(w.trace, "\n"))
		}
	}
	t.Logf("%d schedules, %.0f a second, %d steps, %d failovers, all tenants written %.1f leases after the trouble at most",
		count, float64(count)/time.Since(began).Seconds(), steps, failed, took)
}

// TestWhatIsLeftOutIsFound leaves out one rule at a time and expects two primaries in some schedule.
func TestWhatIsLeftOutIsFound(t *testing.T) {
	for mutant, first := range map[string]uint64{ // a schedule before the first that shows it
		"a node that counts from reading":                    1,
		"a node that takes any stamp":                        1,
		"a node that obeys older terms":                      1,
		"a router that waits no tenth":                       1,
		"a router that does not wait at its start":           1,
		"a router that knows no recorded length":             1700,
		"a router that takes every node for leased":          1,
		"a promoted router that trusts its directory":        1,
		"a promoted router that thaws at once":               200,
		"a router that forgets that it was promoted":         1600,
		"a promoted router that finishes a failover at once": 2700,
		"a move that does not freeze":                        1,
		"a failover by hand that does not wait":              700,
	} {
		t.Run(mutant, func(t *testing.T) {
			for seed := first; seed < first+20_000; seed++ {
				if w := simulate(seed, mutant, false); strings.Contains(w.failure, "both write") {
					t.Logf("schedule %d: %s", seed, w.failure)
					return
				}
			}
			t.Error("not found in 20000 schedules")
		})
	}
}
