package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// writer inserts numbered rows until it is stopped. It repeats each write under one key until it is answered.
type writer struct {
	name         string
	acknowledged atomic.Int64 // rows 1 to this are acknowledged
	sent         int64        // the last row that was sent; read once the writer has stopped
}

func (w *writer) run(c *cluster, stop <-chan struct{}) {
	for {
		w.sent++
		for {
			a, err := c.send("POST", "router", "/t/acme/log", fmt.Sprintf(`{"w": %q, "n": %d}`, w.name, w.sent),
				"Idempotency-Key", fmt.Sprintf("%s-%d", w.name, w.sent))
			if err == nil && a.status == 201 {
				break
			}
			if err == nil && a.status < 500 {
				c.t.Errorf("row %d of %s: %d %s", w.sent, w.name, a.status, a.body)
				return
			}
			select {
			case <-stop:
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
		w.acknowledged.Store(w.sent)
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// writers are some writers that run until stop is called.
func (c *cluster) writers(n int) (all []*writer, stop func()) {
	stopping := make(chan struct{})
	var running sync.WaitGroup
	for i := range n {
		w := &writer{name: fmt.Sprintf("w%d", i)}
		all = append(all, w)
		running.Go(func() { w.run(c, stopping) })
	}
	return all, func() {
		close(stopping)
		running.Wait()
	}
}

// row is a row of the log.
type row struct {
	W string
	N int64
}

// wantRows checks that every acknowledged row is there once, and none that was not sent. kept are rows that were kept elsewhere, which
// may be missing.
func (c *cluster) wantRows(all []*writer, kept ...row) {
	c.t.Helper()
	var rows []row
	text := c.want(200, "GET", "router", "/t/acme/log?select=w,n", "")
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		c.t.Fatal(err)
	}
	for _, one := range kept {
		if !slices.Contains(rows, one) { // the writer may have repeated it
			rows = append(rows, one)
		}
	}
	got := map[string][]int64{}
	for _, row := range rows {
		got[row.W] = append(got[row.W], row.N)
	}
	for _, w := range all {
		numbers := got[w.name]
		slices.Sort(numbers)
		n := int64(len(numbers))
		for i, number := range numbers {
			if number != int64(i+1) {
				c.t.Fatalf("the rows of %s are %v, with %v kept elsewhere", w.name, numbers, kept)
			}
		}
		if n < w.acknowledged.Load() || n > w.sent {
			c.t.Errorf("%s has %d rows; %d are acknowledged and %d were sent", w.name, n, w.acknowledged.Load(), w.sent)
		}
	}
}

// takingWrites returns the nodes whose copy of acme accepts writes.
func (c *cluster) takingWrites() (names []string) {
	c.t.Helper()
	for name := range c.nodes {
		a, err := c.send("GET", name, "/_admin/tenants/acme/position", "")
		if err != nil {
			c.t.Fatal(err)
		}
		var position struct{ Writable bool }
		switch {
		case a.status == 404:
		case a.status != 200:
			c.t.Fatalf("the position of acme on %s: %d %s", name, a.status, a.body)
		case json.Unmarshal([]byte(a.body), &position) != nil || position.Writable:
			names = append(names, name)
		}
	}
	return names
}

// placed reports whether the router has the tenant on a node and nothing else to do with it.
func (c *cluster) placed(node string) bool {
	c.t.Helper()
	text := c.want(200, "GET", "router", "/_shard/tenants/acme", "")
	return strings.Contains(text, `"active"`) && strings.Contains(text, fmt.Sprintf("%q", node))
}

// TestANodeThatLosesPowerDuringAMove moves a tenant while clients write to it, and takes the power from one of the two nodes
// at each of its changes to the disk, from a little before the move on. Once it is back, the tenant is whole, in one place and accepts writes.
func TestANodeThatLosesPowerDuringAMove(t *testing.T) {
	for _, victim := range []string{"n1", "n2"} {
		t.Run(map[string]string{"n1": "the source", "n2": "the target"}[victim], func(t *testing.T) {
			for k := 1; ; k++ {
				reached := false
				t.Run(fmt.Sprintf("at change %d", k), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { reached = losePowerDuringAMove(t, victim, k) })
				})
				if !reached || t.Failed() {
					break
				}
			}
		})
	}
}

// losePowerDuringAMove is one run. It reports whether the move was still under way when the power went.
func losePowerDuringAMove(t *testing.T, victim string, k int) bool {
	c := start(t, uint64(k), "n1", "n2")
	defer c.stop()
	c.want(201, "PUT", "router", "/_shard/tenants/acme?node=n1", "")
	c.want(200, "POST", "router", "/t/acme/query", `{"query": "create collection log (w text, n int)"}`)
	all, stop := c.writers(3)
	time.Sleep(20 * time.Millisecond)

	off := c.nodes[victim].losePowerAt(k)
	time.Sleep(120 * time.Millisecond) // the first changes of the source are only writes
	moved := make(chan answer, 1)
	go func() {
		a, err := c.send("POST", "router", "/_shard/tenants/acme/move", `{"to": "n2"}`)
		if err != nil {
			t.Error(err)
		}
		moved <- a
	}()
	a, answered := answer{}, false
	select {
	case <-off:
	case a = <-moved:
		answered = true
	}
	reached := closed(off) // also if the move has failed because of it
	switch {
	case reached:
		time.Sleep(time.Second)
		c.restart(victim)
		if !answered {
			<-moved
		}
	case a.status != 200:
		t.Errorf("the move: %d %s", a.status, a.body)
	default:
		c.nodes[victim].disk.Heal()
	}
	acknowledged := all[0].acknowledged.Load()
	c.eventually("writes go on", func() bool { return all[0].acknowledged.Load() > acknowledged+3 })
	c.eventually("one copy accepts writes", func() bool { return len(c.takingWrites()) == 1 })
	if !c.placed("n2") { // the move was given up
		c.eventually("the tenant is moved", func() bool {
			a, err := c.send("POST", "router", "/_shard/tenants/acme/move", `{"to": "n2"}`)
			return err == nil && a.status == 200
		})
	}
	stop()
	if !c.placed("n2") || !slices.Equal(c.takingWrites(), []string{"n2"}) {
		t.Errorf("writes are accepted on %v; %s", c.takingWrites(), c.want(200, "GET", "router", "/_shard/tenants/acme", ""))
	}
	c.wantRows(all)
	return reached
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
