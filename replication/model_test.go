package replication

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"
)

// cluster is a model of three hosts with one tenant, of which exactly one takes writes at a time. A person, who knows which, promotes
// another one, and tells the others to follow it.
type cluster struct {
	*world
	random  *rand.Rand
	hosts   []*host
	primary *host
	next    int                          // the n of the next row
	acked   map[int]bool                 // rows that were acknowledged and that the primary must have
	watched map[*host]map[int]*outStream // rows of them that were acknowledged while a copy was connected, by its stream
	log     []string
	began   time.Time
	cuts    [][2]*host // pairs that may be cut off, one way or both
	failed  int        // failovers
	promise int        // rows that promoted copies had to have
}

func (c *cluster) note(format string, args ...any) {
	c.log = append(c.log, fmt.Sprintf("%v ", time.Since(c.began).Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

// connected returns the streams of copies that a write waits for, by their host.
func (c *cluster) connected() map[*host]*outStream {
	copies := c.primary.primary.Copies("t")
	copies.mu.Lock()
	defer copies.mu.Unlock()
	out := map[*host]*outStream{}
	for _, s := range copies.streams {
		if s.connected {
			out[c.world.hosts[s.asked.node]] = s
		}
	}
	return out
}

// write puts a row, and notes which copies were connected all the time.
func (c *cluster) write() {
	before := c.connected()
	n := c.next
	c.next++
	c.primary.exec("t", fmt.Sprintf(`put c {n: %d, s: "%0*d"}`, n, c.random.IntN(2000), n))
	c.acked[n] = true
	for h, s := range c.connected() {
		if before[h] == s {
			c.watched[h][n] = s
		}
	}
}

var rowNumber = regexp.MustCompile(`"n":(\d+)`)

// rows returns the rows that a host has.
func (c *cluster) rows(h *host) map[int]bool {
	rows := map[int]bool{}
	for _, m := range rowNumber.FindAllStringSubmatch(h.rows("t", "get c limit 100000"), -1) {
		n, _ := strconv.Atoi(m[1])
		rows[n] = true
	}
	return rows
}

// mustHave checks that a host has rows.
func (c *cluster) mustHave(h *host, rows map[int]bool, what string) {
	has := c.rows(h)
	for n := range rows {
		if !has[n] {
			c.t.Fatalf("%s lacks row %d, %s", h.name, n, what)
		}
	}
}

// kill ends the process of a host; what it has sent arrives. With loss, its disk loses what is not synced.
func (c *cluster) kill(h *host, loss bool) {
	t := h.get("t")
	if loss {
		t.fs = t.fs.Crash()
	}
	h.listener.Close()
	h.primary.Close()
	h.follower.Close()
	h.conns.Wait()
	t.alone(func() { t.db.Close(); t.closed = true })
}

// restart begins the process of a host again.
func (c *cluster) restart(h *host) {
	h.boot()
	t := h.get("t")
	t.alone(func() {
		if t.closed { // else a stream has opened it
			h.openLocked(t)
		}
	})
	c.tell(h)
}

// tell makes a host follow the primary, unless it is that.
func (c *cluster) tell(h *host) {
	if h != c.primary {
		h.follower.Follow("t", Target{From: c.primary.name, CaughtUp: false})
	}
}

func (c *cluster) cutOff(a, b *host) bool {
	return slices.ContainsFunc(c.cuts, func(p [2]*host) bool { return p == [2]*host{a, b} || p == [2]*host{b, a} })
}

// failOver promotes a copy in place of the primary, if it has caught up.
func (c *cluster) failOver(to *host, loss bool) {
	status, _ := to.follower.Status("t")
	if !status.CaughtUp {
		return
	}
	old := c.primary
	streams, cut := c.connected(), c.cutOff(old, to)
	c.kill(old, loss)
	c.eventually("disconnected", func() bool { s, _ := to.follower.Status("t"); return !s.Connected })
	promised := map[int]bool{}
	for n, s := range c.watched[to] {
		if !cut && streams[to] == s && s != nil {
			promised[n] = true
		}
	}
	c.note("fail over from %s to %s, which was promised %d rows, loss %v", old.name, to.name, len(promised), loss)
	c.failed, c.promise = c.failed+1, c.promise+len(promised)
	to.promote()
	c.mustHave(to, promised, "which was acknowledged while its connection to "+old.name+" lasted")
	has := c.rows(to)
	for n := range c.acked {
		if !has[n] {
			delete(c.acked, n)
		}
	}
	c.primary = to
	for _, h := range c.hosts {
		clear(c.watched[h])
	}
	old.get("t").follower = true
	c.restart(old)
	for _, h := range c.hosts {
		if h != old {
			c.tell(h)
		}
	}
}

func (c *cluster) step() {
	any := func() *host { return c.hosts[c.random.IntN(len(c.hosts))] }
	a, b := any(), any()
	switch n := c.random.IntN(20); {
	case n < 9:
		for range 1 + c.random.IntN(5) {
			c.write()
		}
	case n < 10:
		c.note("compact %s", a.name)
		if a == c.primary {
			a.exec("t", "compact")
		}
	case n < 12 && a != b:
		c.note("silence from %s to %s", a.name, b.name)
		a.net.Silence(b.net)
		c.cuts = append(c.cuts, [2]*host{a, b})
	case n < 13 && a != b:
		c.note("silence between %s and %s", a.name, b.name)
		a.net.Silence(b.net)
		b.net.Silence(a.net)
		c.cuts = append(c.cuts, [2]*host{a, b})
	case n < 14 && a != b:
		c.note("partition %s and %s", a.name, b.name)
		a.net.Partition(b.net)
		c.cuts = append(c.cuts, [2]*host{a, b})
	case n < 16:
		c.note("heal")
		c.network.Heal()
		c.cuts = nil
	case n < 17:
		loss := c.random.IntN(2) == 0
		c.note("restart %s, loss %v", a.name, loss)
		c.kill(a, loss)
		c.restart(a)
		c.mustHave(c.primary, c.acked, "which it has acknowledged")
	case n < 18 && a != c.primary:
		c.failOver(a, c.random.IntN(2) == 0)
	default:
		time.Sleep(time.Duration(c.random.IntN(6000)) * time.Millisecond)
	}
}

// TestCopiesThroughFaults runs a model of three hosts under random writes, compactions, cuts of the network, losses of power and
// failovers. At the end all copies are equal, and nothing that was acknowledged while the promoted copy was connected is lost.
func TestCopiesThroughFaults(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 12
	}
	failovers, promised := 0, 0
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			run(t, []string{"one", "two", "three"}, func(w *world) {
				c := &cluster{
					world: w, random: rand.New(rand.NewPCG(uint64(seed), 1)), hosts: []*host{w.hosts["one"], w.hosts["two"], w.hosts["three"]},
					acked: map[int]bool{}, watched: map[*host]map[int]*outStream{}, began: time.Now(),
				}
				defer func() {
					if t.Failed() {
						for _, line := range c.log {
							t.Log(line)
						}
					}
				}()
				c.primary = c.hosts[0]
				for _, h := range c.hosts {
					c.watched[h] = map[int]*outStream{}
					h.keep = []int64{1, 10 << 10, 64 << 20}[c.random.IntN(3)]
					h.create("t", h != c.primary)
					c.tell(h)
				}
				c.primary.exec("t", `create collection c (n int, s text)`)
				for range 60 {
					c.step()
				}
				w.network.Heal()
				c.write()
				for _, h := range c.hosts {
					if h != c.primary {
						w.same("t", c.primary, h)
					}
				}
				c.mustHave(c.primary, c.acked, "which was acknowledged")
				failovers, promised = failovers+c.failed, promised+c.promise
			})
		})
	}
	if !testing.Short() && (failovers < 50 || promised < 100) {
		t.Errorf("%d failovers with %d promised rows: too few to show anything", failovers, promised)
	}
}
