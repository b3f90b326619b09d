package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"fenec/client"
)

// write is a row of the collection writes.
type write struct {
	N int `json:"n"`
}

// subscriber holds the collection writes by a live query.
type subscriber struct {
	mu    sync.Mutex
	rows  map[int64]write
	seeds int
	err   error
}

// follow applies what the live query tells, until the context ends.
func (s *subscriber) follow(ctx context.Context, c *client.Client) {
	var last client.Position
	for event, err := range client.Subscribe[write](ctx, c, "writes", client.Shape{}) {
		s.mu.Lock()
		switch {
		case ctx.Err() != nil: // it ends here
		case err != nil:
			s.err = err
		case event.Seed:
			s.seeds++
		case event.Position.Seq <= last.Seq:
			s.err = fmt.Errorf("change %s comes behind %s", event.Position, last)
		}
		event.Apply(s.rows)
		last = event.Position
		s.mu.Unlock()
	}
}

// has tells that it holds the rows there are.
func (s *subscriber) has(t *testing.T, c *client.Client) bool {
	type row struct {
		ID int64 `json:"id"`
		write
	}
	rows, err := client.Query[row](t.Context(), c, "get writes")
	if err != nil {
		t.Fatal(err)
	}
	there := map[int64]write{}
	for _, row := range rows {
		there[row.ID] = row.write
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
	tenant := client.New(c.tenant(), client.Options{Patience: patience})
	defer tenant.Close()
	w := startWriters(2, c.tenant)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var following sync.WaitGroup
	subscribers := []*subscriber{{}, {}}
	for _, s := range subscribers {
		s.rows = map[int64]write{}
		following.Go(func() { s.follow(ctx, tenant) })
	}
	c.movesAndCrashes(t, w)
	if _, err := tenant.Exec(t.Context(), "del writes where n % 3 = 0"); err != nil {
		t.Fatal(err)
	}
	for i, s := range subscribers {
		eventually(t, fmt.Sprintf("subscriber %d holds what there is", i), func() bool { return s.has(t, tenant) })
	}
	for _, node := range c.nodes {
		node.stop() // which ends the streams
	}
	cancel()
	following.Wait()
	for i, s := range subscribers {
		if s.err != nil || s.seeds == 0 {
			t.Errorf("subscriber %d: %d seeds, %v", i, s.seeds, s.err)
		}
	}
	c.router.Load().stop()
}

// stream is one connection of a live query of the collection writes, as its bytes are.
type stream struct {
	response *http.Response
	in       *bufio.Reader
	id       string // of the last event
	rows     map[int]int
}

// streamEvent is an event of it.
type streamEvent struct {
	name       string
	Rows, Puts []struct{ ID, N int }
	Error      string
}

// connect opens the stream, behind the last event there was.
func (s *stream) connect(tenant string) error {
	r, err := http.NewRequest("GET", tenant+"/writes/changes", nil)
	if err != nil {
		return err
	}
	if s.id != "" {
		r.Header.Set("Last-Event-ID", s.id)
	}
	if s.response, err = web.Do(r); err != nil {
		return err
	}
	if s.response.StatusCode != 200 {
		s.response.Body.Close()
		return fmt.Errorf("a live query is answered %d", s.response.StatusCode)
	}
	s.in = bufio.NewReader(s.response.Body)
	return nil
}

// next reads an event and takes its rows.
func (s *stream) next() (*streamEvent, error) {
	e := &streamEvent{}
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
				for _, row := range append(e.Rows, e.Puts...) {
					s.rows[row.ID] = row.N
				}
				return e, nil
			}
		}
	}
}

func TestAMovedStreamEndsWithAnErrorAndResumesWithoutASeed(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	s := &stream{rows: map[int]int{}}
	expect := func(name string, rows int) *streamEvent {
		t.Helper()
		e, err := s.next()
		if err != nil || e.name != name || len(s.rows) != rows {
			t.Fatalf("got %v, %v and %d rows, want %s and %d", e, err, len(s.rows), name, rows)
		}
		return e
	}
	must(t, 201, "POST", c.tenant()+"/writes", `{"n": 1}`)
	if err := s.connect(c.tenant()); err != nil {
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
		s.response.Body.Close()
		if err := s.connect(c.tenant()); err != nil {
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
	s.response.Body.Close()
	for _, node := range c.nodes {
		node.stop()
	}
}
