package client_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"fenec/client"
)

// moving is a proxy to a node that can be restarted at another address.
type moving struct {
	*httptest.Server
	target atomic.Pointer[url.URL]
}

// startMoving starts a proxy without a target, and stops it when the test ends.
func startMoving(t *testing.T) *moving {
	m := &moving{}
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(m.target.Load()) },
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	m.Server = httptest.NewServer(proxy)
	t.Cleanup(func() {
		m.CloseClientConnections()
		m.Close()
		transport.CloseIdleConnections()
	})
	return m
}

// to sets the address of the node.
func (m *moving) to(t *testing.T, address string) {
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	m.target.Store(target)
}

// TestAViewHasTheRowsOfItsShape reads a live query while rows enter and leave its shape, connections break and the node
// restarts.
func TestAViewHasTheRowsOfItsShape(t *testing.T) {
	t.Parallel()
	const rounds = 60
	dir := t.TempDir()
	address, stop, err := startTenant(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { stop() }()
	proxy := startMoving(t)
	proxy.to(t, address)
	c := newClient(t, proxy.URL, client.Options{}).WithKeys()
	exec(t, c, "create collection books (title text, year int, meta json)")
	shape := client.Shape{
		Filters: []client.Filter{{"year", client.Gte, 10}, {"meta.lang", client.In, []string{"de", `"en"`}}},
		Where:   "year % 2 = 0",
		Select:  []string{"year"},
	}
	want := map[int64]int{}
	view := map[int64]book{}
	seeds, round, cursor := 0, 0, client.Position{}
	write := func() {
		round++
		id, year, lang := int64(round%7+1), round*13%40, []string{"de", `"en"`, "tr"}[round%3]
		exec(t, c, "put books {id: $1, title: 'x', year: $2, meta: {lang: $3}}", id, year, lang)
		if delete(want, id); year >= 10 && lang != "tr" && year%2 == 0 {
			want[id] = year
		}
		switch {
		case round%20 == 0:
			if err := stop(); err != nil {
				t.Error(err)
			}
			if address, stop, err = startTenant(dir); err != nil {
				t.Fatal(err)
			}
			proxy.to(t, address)
		case round%5 == 0:
			proxy.CloseClientConnections()
		}
	}
	for event, err := range client.Subscribe[book](t.Context(), c, "books", shape) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Seed {
			seeds++
		}
		if event.Position.Seq < cursor.Seq {
			t.Errorf("got an event at %s after one at %s", event.Position, cursor)
		}
		cursor = event.Position
		event.Apply(view)
		if event.Position.Seq < c.Position().Seq { // before the last write
			continue
		}
		got := map[int64]int{}
		for id, row := range view {
			got[id] = row.Year
		}
		if !maps.Equal(got, want) {
			t.Fatalf("at %s: got the view %v, expected %v", cursor, got, want)
		}
		if round == rounds {
			break
		}
		write()
	}
	if seeds != 1 {
		t.Errorf("got %d seeds, expected 1", seeds)
	}
}

func TestALiveQueryThatTheNodeRefusesReturnsItsError(t *testing.T) {
	t.Parallel()
	c := withBooks(t)
	for name, x := range map[string]struct {
		collection string
		shape      client.Shape
		kind       error
	}{
		"of no collection":    {"films", client.Shape{}, client.ErrNotFound},
		"that reads the time": {"books", client.Shape{Where: "year < now()"}, client.ErrInvalid},
		"of another type":     {"books", client.Shape{Filters: []client.Filter{{"year", client.Eq, "x"}}}, client.ErrInvalid},
	} {
		for event, err := range client.Subscribe[book](t.Context(), c, x.collection, x.shape) {
			if !errors.Is(err, x.kind) {
				t.Errorf("a live query %s: got %+v, %v, expected %v", name, event, err, x.kind)
				break
			}
		}
	}
}

func TestALiveQueryEndsWithItsCollection(t *testing.T) {
	t.Parallel()
	c := withBooks(t)
	var last error
	for event, err := range client.Subscribe[book](t.Context(), c, "books", client.Shape{}) {
		if last = err; err == nil && event.Seed {
			exec(t, c, "drop collection books")
		}
	}
	if !errors.Is(last, client.ErrNotFound) {
		t.Errorf("got %v, expected ErrNotFound", last)
	}
}

// TestLiveQueriesCloseTheirConnections ends live queries after their first event.
func TestLiveQueriesCloseTheirConnections(t *testing.T) {
	t.Parallel()
	tenant := serveTenant(t)
	var dialed, closed atomic.Int64
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		dialed.Add(1)
		return counted{conn, &closed}, err
	}}
	defer transport.CloseIdleConnections()
	c := client.New(tenant, client.Options{HTTP: &http.Client{Transport: transport}})
	exec(t, c, "create collection books (title text)")
	for range 50 {
		for _, err := range client.Subscribe[book](t.Context(), c, "books", client.Shape{}) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	for deadline := time.Now().Add(10 * time.Second); dialed.Load()-closed.Load() > 1; {
		if time.Now().After(deadline) {
			t.Fatalf("got %d of %d connections closed, expected all but one", closed.Load(), dialed.Load())
		}
	}
}

// counted counts closed connections.
type counted struct {
	net.Conn
	closed *atomic.Int64
}

func (c counted) Close() error {
	err := c.Conn.Close()
	if err == nil {
		c.closed.Add(1)
	}
	return err
}

func ExampleSubscribe() {
	c, done := open()
	defer done()
	ctx := context.Background()
	must(c.Exec(ctx, "create collection jobs (name text, state text)"))
	must(c.Exec(ctx, "put jobs $1", []map[string]any{{"name": "a", "state": "open"}, {"name": "b", "state": "open"}}))

	type Job struct {
		Name string `json:"name"`
	}
	open := client.Shape{Filters: []client.Filter{{Field: "state", Op: client.Eq, Value: "open"}}}
	view := map[int64]Job{}
	for event, err := range client.Subscribe[Job](ctx, c, "jobs", open) {
		if err != nil {
			fmt.Println(err)
			break
		}
		event.Apply(view)
		fmt.Println(slices.Sorted(maps.Keys(view)))
		if !event.Seed {
			break
		}
		must(c.Exec(ctx, "set jobs {state: 'done'} where name = 'a'"))
	}
	// Output:
	// [1 2]
	// [2]
}
