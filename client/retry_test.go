package client_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fenec/client"

	"go.uber.org/goleak"
)

const refused = `{"error":"tenant acme is frozen","retry_after":1}`

// frozen is a temporary refusal. Retry-After is in whole seconds, so few tests here wait for it.
var frozen = says(503, refused, "Retry-After", "1")

func TestOnlyRequestsThatAreSafeToRepeatAreRetried(t *testing.T) {
	t.Parallel()
	const read, write = "get books", "put books {title: 'Emma'}"
	rows, done := says(200, `[{"title":"Emma"}]`), says(200, `{"affected":1}`)
	plain := func(c *client.Client) *client.Client { return c }
	for name, x := range map[string]struct {
		of        func(*client.Client) *client.Client
		statement string
		turns     []turn
		asked     int64
		ok        bool
	}{
		"a read through a freeze":                    {plain, read, []turn{frozen, rows}, 2, true},
		"a read through a restart":                   {plain, read, []turn{cuts, cuts, rows}, 3, true},
		"a read with half a response":                {plain, read, []turn{halves, rows}, 2, true},
		"a read through a router without a node":     {plain, read, []turn{says(502, "{}"), says(504, "{}"), rows}, 3, true},
		"a read past a rate limit":                   {plain, read, []turn{says(429, "{}", "Retry-After", "1"), rows}, 2, true},
		"a read after a comment":                     {plain, "-- all\n  GET books", []turn{cuts, rows}, 2, true},
		"a read after no pause":                      {plain, read, []turn{says(503, "{}", "Retry-After", "0"), rows}, 2, true},
		"a read through a proxy without a server":    {plain, read, []turn{says(503, "<html>"), rows}, 2, true},
		"a read given up by the server":              {plain, read, []turn{says(503, "{}"), rows}, 1, false},
		"a read of a damaged file":                   {plain, read, []turn{says(500, "{}"), rows}, 1, false},
		"a read of a branch that was left":           {plain, read, []turn{says(504, "{}", "Fenec-Seq", "3", "Fenec-History", "2-a"), rows}, 1, false},
		"a write through a freeze":                   {plain, write, []turn{frozen, done}, 1, false},
		"a write cut off":                            {plain, write, []turn{cuts, done}, 1, false},
		"a write with half a response":               {plain, write, []turn{halves, done}, 1, false},
		"a write a router lost":                      {plain, write, []turn{says(502, "{}"), done}, 1, false},
		"a write that looks like a read":             {plain, "getbooks", []turn{cuts, done}, 1, false},
		"a write under a key":                        {func(c *client.Client) *client.Client { return c.WithKey("k") }, write, []turn{cuts, halves, frozen, says(502, "{}"), done}, 5, true},
		"a write under a random key":                 {(*client.Client).WithKeys, write, []turn{cuts, done}, 2, true},
		"a write that may run twice":                 {(*client.Client).WithRepeats, write, []turn{cuts, halves, frozen, says(502, "{}"), done}, 5, true},
		"a write that may run twice, refused":        {(*client.Client).WithRepeats, write, []turn{says(400, "{}"), done}, 1, false},
		"a write that may run twice, on a full disk": {(*client.Client).WithRepeats, write, []turn{says(507, "{}"), done}, 1, false},
		"a write that may not run twice any more":    {func(c *client.Client) *client.Client { return c.WithRepeats().WithKey("") }, write, []turn{cuts, done}, 1, false},
		"a write marked as a read":                   {(*client.Client).Read, write, []turn{cuts, says(403, "{}")}, 2, false},
		"nothing, without patience":                  {func(c *client.Client) *client.Client { return c.WithPatience(-1) }, read, []turn{cuts, rows}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, asked := scripted(t, x.turns...)
			_, err := x.of(newClient(t, server, client.Options{})).Exec(t.Context(), x.statement)
			if (err == nil) != x.ok || asked.Load() != x.asked {
				t.Errorf("got %d requests, expected %d; error %v", asked.Load(), x.asked, err)
			}
		})
	}
}

func TestARetryIsTheSameRequest(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var keys, bodies []string
	note := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		keys, bodies = append(keys, r.Header.Get("Idempotency-Key")), append(bodies, string(body))
		n := len(keys)
		mu.Unlock()
		if n%2 == 1 {
			cuts(w, r)
		}
		says(200, `{"affected":1}`)(w, r)
	}
	server, _ := scripted(t, note)
	c := newClient(t, server, client.Options{}).WithKeys()
	for range 2 {
		if _, err := c.Exec(t.Context(), "put books $1", map[string]int{"a": 1, "b": 2, "c": 3}); err != nil {
			t.Fatal(err)
		}
	}
	if len(keys) != 4 || keys[0] != keys[1] || keys[2] != keys[3] || keys[1] == keys[2] || len(keys[0]) < 20 {
		t.Errorf("got the keys %q, expected two, each of a request and its retry", keys)
	}
	if bodies[0] != bodies[1] {
		t.Errorf("got the bodies %q, expected the first two equal", bodies)
	}
}

func TestAWriteThatCannotConnectIsRetried(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	server := &http.Server{Handler: http.HandlerFunc(says(200, `{"affected":1}`))}
	served := make(chan error, 1)
	var dials atomic.Int64
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dials.Add(1) == 2 { // the first was refused
			l, err := net.Listen("tcp", address)
			if err != nil {
				return nil, err
			}
			go func() { served <- server.Serve(l) }()
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	transport := &http.Transport{DialContext: dial}
	c := client.New("http://"+address, client.Options{HTTP: &http.Client{Transport: transport}})
	_, err = c.Exec(t.Context(), "put books {title: 'Emma'}")
	if err != nil || dials.Load() < 2 {
		t.Errorf("got %v after %d dials, expected no error after 2 or more", err, dials.Load())
	}
	transport.CloseIdleConnections()
	server.Close()
	<-served
}

func TestRetriesEndWithThePatience(t *testing.T) {
	t.Parallel()
	server, asked := scripted(t, cuts)
	c := newClient(t, server, client.Options{Patience: 300 * time.Millisecond})
	_, err := c.Exec(t.Context(), "get books")
	if err == nil || asked.Load() < 2 || !errors.Is(err, io.EOF) {
		t.Errorf("got %v after %d requests, expected io.EOF after 2 or more", err, asked.Load())
	}
	server, asked = scripted(t, says(503, refused, "Retry-After", "3600"))
	c = newClient(t, server, client.Options{})
	_, err = c.Exec(t.Context(), "get books") // fails at once: the pause is longer than the patience
	var e *client.Error
	if !errors.As(err, &e) || !errors.Is(err, client.ErrUnavailable) || e.RetryAfter != time.Hour || asked.Load() != 1 {
		t.Errorf("got %v after %d requests, expected ErrUnavailable after 1", err, asked.Load())
	}
}

func TestAContextEndsTheWaitForARetry(t *testing.T) {
	t.Parallel()
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	server, _ := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		says(503, refused, "Retry-After", "20")(w, r)
		cancel(stop)
	})
	_, err := client.Query[book](ctx, newClient(t, server, client.Options{}), "get books")
	if !errors.Is(err, stop) {
		t.Errorf("got %v, expected %v", err, stop)
	}
}

func TestARequestIsRetriedAfterItsTimeout(t *testing.T) {
	t.Parallel()
	server, asked := scripted(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client left
		<-r.Context().Done()
	}, says(200, "[]"))
	c := newClient(t, server, client.Options{Timeout: 100 * time.Millisecond})
	if _, err := client.Query[book](t.Context(), c, "get books"); err != nil || asked.Load() != 2 {
		t.Errorf("got %v after %d requests, expected no error after 2", err, asked.Load())
	}
}

func TestConnectionsAreReusedUntilClose(t *testing.T) {
	before := goleak.IgnoreCurrent()
	var opened atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		says(404, `{"error":"no collection books"}`)(w, r)
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c := client.New(server.URL, client.Options{})
	for range 50 {
		if _, err := c.Exec(t.Context(), "get books"); !errors.Is(err, client.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if opened.Load() != 1 {
		t.Errorf("got %d connections for 50 requests, expected 1", opened.Load())
	}
	c.Close()
	server.Close()
	goleak.VerifyNone(t, before)
}

// cutting starts a proxy to a server that loses every third response, before or within its body, and counts them.
func cutting(t *testing.T, target string) (address string, lost *atomic.Int64) {
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	lost = new(atomic.Int64)
	var answers atomic.Int64
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		ErrorLog:  log.New(io.Discard, "", 0),
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			switch n := answers.Add(1); {
			case n%3 != 0:
				return nil
			case n%2 == 0:
				r.Body = struct {
					io.Reader
					io.Closer
				}{io.LimitReader(r.Body, 3), r.Body}
			default:
				r.Body.Close()
				lost.Add(1)
				panic(http.ErrAbortHandler)
			}
			lost.Add(1)
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	return server.URL, lost
}

// TestWritesUnderKeysRunOnce writes through a proxy that loses responses.
func TestWritesUnderKeysRunOnce(t *testing.T) {
	t.Parallel()
	const writers, each = 4, 25
	tenant := serveTenant(t)
	direct := newClient(t, tenant, client.Options{})
	exec(t, direct, "create collection counters (n int)")
	exec(t, direct, "put counters {id: 1, n: 0}")
	address, lost := cutting(t, tenant)
	c := newClient(t, address, client.Options{}).WithKeys()
	var g sync.WaitGroup
	for range writers {
		g.Go(func() {
			for range each {
				if n, err := c.Exec(t.Context(), "set counters {n: n + 1} where id = 1"); n != 1 || err != nil {
					t.Errorf("got %d, %v, expected 1", n, err)
				}
			}
		})
	}
	g.Wait()
	got, err := client.One[struct{ N int }](t.Context(), direct, "get counters select n as N")
	if err != nil || got.N != writers*each || lost.Load() < writers*each/4 {
		t.Errorf("got %d of %d writes, %d responses lost, %v, expected all and a quarter lost", got.N, writers*each, lost.Load(), err)
	}
}
