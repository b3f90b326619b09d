package client_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"fenec/client"
	"fenec/node"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serveTenant runs a node with one tenant until the test ends, and returns the tenant's URL.
func serveTenant(t testing.TB) string {
	t.Helper()
	url, stop, err := startTenant(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return url
}

// startTenant serves the database in a directory at the URL it returns, until stop is called.
func startTenant(dir string) (url string, stop func() error, err error) {
	n, err := node.New(node.Config{File: dir + "/tenant.fenec", Version: "test"})
	if err != nil {
		return "", nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	served := make(chan error, 1)
	go func() { served <- n.Serve(l) }()
	stop = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := n.Shutdown(ctx); err != nil {
			return err
		}
		return <-served
	}
	return "http://" + l.Addr().String(), stop, nil
}

// newClient returns a client of a URL that is closed when the test ends.
func newClient(t testing.TB, url string, o client.Options) *client.Client {
	c := client.New(url, o)
	t.Cleanup(c.Close)
	return c
}

// withBooks returns a client of a tenant with the collection books.
func withBooks(t testing.TB) *client.Client {
	t.Helper()
	c := newClient(t, serveTenant(t), client.Options{})
	exec(t, c, "create collection books (title text @unique required, year int @sorted, meta json)")
	return c
}

// exec runs a statement, which must succeed, and returns how many rows or documents it affected.
func exec(t testing.TB, c *client.Client, statement string, params ...any) int {
	t.Helper()
	n, err := c.Exec(t.Context(), statement, params...)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return n
}

type book struct {
	ID    int64  `json:"id,omitzero"`
	Title string `json:"title"`
	Year  int    `json:"year"`
}

// turn is one response of a scripted server.
type turn func(w http.ResponseWriter, r *http.Request)

// scripted serves one turn per request, repeats the last one, and counts the requests.
func scripted(t testing.TB, turns ...turn) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := asked.Add(1) - 1
		turns[min(int(i), len(turns)-1)](w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// says responds with a status, a body, and headers in pairs.
func says(status int, body string, headers ...string) turn {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// cuts breaks the connection before a response.
func cuts(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// halves breaks the connection within a response.
func halves(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	io.WriteString(w, `[{"title":`)
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}
