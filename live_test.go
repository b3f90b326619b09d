package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// liveStreams has no time limit, unlike web.
var liveStreams = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}

// liveEvent is an event of a live query.
type liveEvent struct {
	name       string
	Seq        uint64
	Rows, Puts []struct{ ID, N int }
	Dels       []int
	Error      string
}

// subscriber follows the collection writes through a live query, and comes back behind its last event whenever that ends.
type subscriber struct {
	tenant func() string
	resp   *http.Response
	in     *bufio.Reader
	id     string

	mu    sync.Mutex
	rows  map[int]int // n by id
	seq   uint64
	seeds int
	err   error
}

// connect opens the stream, as soon as there is somebody to answer.
func (s *subscriber) connect() error {
	r, err := http.NewRequest("GET", s.tenant()+"/writes/changes", nil)
	if err != nil {
		return err
	}
	if s.id != "" {
		r.Header.Set("Last-Event-ID", s.id)
	}
	if s.resp, err = liveStreams.Do(r); err != nil {
		return err
	}
	if s.resp.StatusCode != 200 {
		s.resp.Body.Close()
		return fmt.Errorf("a live query is answered %d", s.resp.StatusCode)
	}
	s.in = bufio.NewReader(s.resp.Body)
	return nil
}

// next reads an event and applies it.
func (s *subscriber) next() (*liveEvent, error) {
	e := &liveEvent{}
	id := ""
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "event":
			e.name = value
		case "id":
			id = value
		case "data":
			if err := json.Unmarshal([]byte(value), e); err != nil {
				return nil, err
			}
		case "":
			if id != "" {
				s.id = id
			}
			if e.name != "" {
				return e, s.apply(e)
			}
		}
	}
}

func (s *subscriber) apply(e *liveEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.name {
	case "seed":
		clear(s.rows)
		s.seeds++
	case "change":
		if e.Seq <= s.seq {
			s.err = fmt.Errorf("change %d comes behind %d", e.Seq, s.seq)
			return s.err
		}
	default:
		return nil
	}
	s.seq = e.Seq
	for _, row := range append(e.Rows, e.Puts...) {
		s.rows[row.ID] = row.N
	}
	for _, id := range e.Dels {
		delete(s.rows, id)
	}
	return nil
}

// follow reads until the test is done.
func (s *subscriber) follow(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		if s.connect() != nil {
			continue // moving, or the node is away
		}
		for {
			if _, err := s.next(); err != nil {
				break
			}
		}
		s.resp.Body.Close()
	}
}

// has tells that it holds the rows there are.
func (s *subscriber) has(t *testing.T, tenant string) bool {
	var rows []struct{ ID, N int }
	if err := json.Unmarshal([]byte(query(t, tenant, "get writes")), &rows); err != nil {
		t.Fatal(err)
	}
	there := map[int]int{}
	for _, row := range rows {
		there[row.ID] = row.N
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Equal(there, s.rows)
}

// TestLiveQueriesThroughMovesAndCrashes has two clients hold the collection while it is written, moved and its node
// killed.
func TestLiveQueriesThroughMovesAndCrashes(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	w := startWriters(2, c.tenant)
	done := make(chan struct{})
	var following sync.WaitGroup
	subscribers := []*subscriber{{}, {}}
	for _, s := range subscribers {
		s.tenant, s.rows = c.tenant, map[int]int{}
		following.Go(func() { s.follow(done) })
	}
	on := "n1"
	for range 3 {
		w.more(t, 20)
		if a := c.move(other(on)); a.status != 200 {
			t.Fatalf("the move answered %d %s", a.status, a.body)
		}
		on = other(on)
		w.more(t, 20)
		c.nodes[on].kill()
		c.startNode(on)
	}
	w.more(t, 20)
	w.stop()
	query(t, c.tenant(), "del writes where n % 3 = 0")
	for i, s := range subscribers {
		eventually(t, fmt.Sprintf("subscriber %d holds what there is", i), func() bool { return s.has(t, c.tenant()) })
	}
	close(done)
	for _, node := range c.nodes {
		node.stop() // which ends the streams
	}
	following.Wait()
	for i, s := range subscribers {
		if s.err != nil || s.seeds == 0 {
			t.Errorf("subscriber %d: %d seeds, %v", i, s.seeds, s.err)
		}
	}
	c.router.Load().stop()
}

func TestAMovedStreamEndsWithAnErrorAndResumesWithoutASeed(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	s := &subscriber{tenant: c.tenant, rows: map[int]int{}}
	expect := func(name string, rows int) *liveEvent {
		t.Helper()
		e, err := s.next()
		if err != nil || e.name != name || len(s.rows) != rows {
			t.Fatalf("got %v, %v and %d rows, want %s and %d", e, err, len(s.rows), name, rows)
		}
		return e
	}
	must(t, 201, "POST", c.tenant()+"/writes", `{"n": 1}`)
	if err := s.connect(); err != nil {
		t.Fatal(err)
	}
	expect("seed", 1)
	must(t, 201, "POST", c.tenant()+"/writes", `{"n": 2}`)
	expect("change", 2)
	must(t, 201, "POST", c.tenant()+"/ballast", `{"text": "of which the stream says nothing"}`)
	for _, to := range []string{"n2", "n1"} {
		if a := c.move(to); a.status != 200 {
			t.Fatalf("the move answered %d %s", a.status, a.body)
		}
		if e := expect("error", len(s.rows)); !strings.Contains(e.Error, "is being moved") {
			t.Errorf("the stream ends with %q", e.Error)
		}
		if _, err := s.next(); err != io.EOF {
			t.Errorf("behind the error came %v", err)
		}
		s.resp.Body.Close()
		if err := s.connect(); err != nil {
			t.Fatal(err)
		}
		must(t, 201, "POST", c.tenant()+"/writes", `{"n": 3}`)
		expect("change", len(s.rows)+1)
	}
	// A router that stops does not wait for streams to end.
	c.router.Load().stop()
	if _, err := s.next(); err == nil {
		t.Error("the stream goes on without its router")
	}
	s.resp.Body.Close()
	for _, node := range c.nodes {
		node.stop()
	}
}
