package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// document is one of the model's.
type document struct {
	ID    int64
	Owner int
	K     int
	V     int
}

// client is one writer of the model test: it owns documents nobody else touches,
// and knows exactly what they have to be.
type client struct {
	owner  int
	random *rand.Rand
	tenant func() string
	want   map[int]int // k -> v
	next   int
	ids    *ids
}

// ids are all ids ever handed out: none comes twice, whatever node hands it out.
type ids struct {
	mu   sync.Mutex
	seen map[int64]string
}

func (s *ids) take(id int64, document string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.seen[id]; ok && before != document {
		return fmt.Errorf("id %d is %s and was %s", id, document, before)
	}
	s.seen[id] = document
	return nil
}

// step does one thing and holds the answer against the model.
func (c *client) step() error {
	if c.random.IntN(3) == 0 {
		return c.compare()
	}
	k, known := c.anyKey()
	v := c.random.IntN(1000)
	mine := fmt.Sprintf("%s/docs?owner=eq.%d&k=eq.%d", c.tenant(), c.owner, k)
	switch op := c.random.IntN(4); {
	case op <= 1 || !known:
		k = c.next
		c.next++
		body := fmt.Sprintf(`{"owner": %d, "k": %d, "v": %d}`, c.owner, k, v)
		return c.write("POST", c.tenant()+"/docs", body, 201, `"inserted":1`, func() { c.want[k] = v })
	case op == 2:
		return c.write("PATCH", mine, fmt.Sprintf(`{"v": %d}`, v), 200, `"updated":1`, func() { c.want[k] = v })
	default:
		return c.write("DELETE", mine, "", 200, `"deleted":1`, func() { delete(c.want, k) })
	}
}

func (c *client) anyKey() (int, bool) {
	for k := range c.want {
		return k, true
	}
	return 0, false
}

// write sends a write; a 503 means that it did not happen.
func (c *client) write(method, url, body string, status int, says string, happened func()) error {
	a, err := request(method, url, body)
	switch {
	case err != nil:
		return err
	case a.status == 503:
		if a.header.Get("Retry-After") == "" {
			return fmt.Errorf("%s %s answered 503 without Retry-After", method, url)
		}
		return nil
	case a.status != status || !strings.Contains(a.body, says):
		return fmt.Errorf("%s %s %s answered %d %s, want %d and %s", method, url, body, a.status, a.body, status, says)
	}
	happened()
	return nil
}

// compare reads everything the client owns: reads go on through every move, and
// tell what was answered before.
func (c *client) compare() error {
	url := fmt.Sprintf("%s/docs?owner=eq.%d&order=k", c.tenant(), c.owner)
	a, err := request("GET", url, "")
	if err != nil {
		return err
	}
	var rows []document
	if a.status != 200 || json.Unmarshal([]byte(a.body), &rows) != nil {
		return fmt.Errorf("GET %s answered %d %s", url, a.status, a.body)
	}
	if len(rows) != len(c.want) {
		return fmt.Errorf("%s answers %d documents, want %d", url, len(rows), len(c.want))
	}
	for _, r := range rows {
		if v, ok := c.want[r.K]; !ok || v != r.V || r.Owner != c.owner {
			return fmt.Errorf("%s answers %+v, want v %d (%v)", url, r, v, ok)
		}
		if err := c.ids.take(r.ID, fmt.Sprintf("%d/%d", r.Owner, r.K)); err != nil {
			return err
		}
	}
	return nil
}

// TestAModelOfATenantHoldsThroughMoves runs clients that know what they wrote
// against a tenant that is moved all the while.
func TestAModelOfATenantHoldsThroughMoves(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := startCluster(t)
	query(t, c.tenant(), "create collection docs (owner int @hash, k int @sorted, v int)")
	shared := &ids{seen: make(map[int64]string)}
	stopping := make(chan struct{})
	var clients sync.WaitGroup
	var steps sync.Map
	for owner := range 4 {
		cl := &client{
			owner: owner, random: rand.New(rand.NewPCG(seed, uint64(owner))), tenant: c.tenant,
			want: make(map[int]int), ids: shared,
		}
		clients.Add(1)
		go func() {
			defer clients.Done()
			for n := 0; ; n++ {
				select {
				case <-stopping:
					if err := cl.compare(); err != nil {
						t.Errorf("at the end: %v", err)
					}
					return
				default:
				}
				if err := cl.step(); err != nil {
					t.Errorf("client %d, step %d: %v", cl.owner, n, err)
					return
				}
				steps.Store(cl.owner, n)
			}
		}()
	}
	done := func() int {
		sum := 0
		steps.Range(func(_, n any) bool { sum += n.(int); return true })
		return sum
	}
	on := "n1"
	for range 6 {
		before := done()
		eventually(t, "the clients go on", func() bool { return done() > before+100 || t.Failed() })
		on = other(on)
		if a := c.move(on); a.status != 200 {
			t.Errorf("the move to %s answered %d %s", on, a.status, a.body)
		}
	}
	close(stopping)
	clients.Wait()
	c.settled(on)
}
