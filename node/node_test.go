package node

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fenec/internal/vfs/crashfs"

	"go.uber.org/goleak"
)

// modelChecks is the number of sequences that a model test runs if the command line does not set it.
const modelChecks = "40"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", modelChecks); err != nil {
		panic(err)
	}
	if dir := os.Getenv(crowdEnv); dir != "" {
		os.Exit(serveCrowd(dir))
	}
	goleak.VerifyTestMain(m)
}

// fakeClock is a clock that only Advance moves.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *fakeClock { return &fakeClock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

const adminToken = "the-admin-token"

// running is a node that serves a loopback socket, and a client of it.
type running struct {
	*Node
	t      testing.TB
	url    string
	client *http.Client
	token  string // sent with every request if not empty
	served chan error
}

// start runs a node until the test ends. Without Dir and File the node uses a temporary directory.
func start(t testing.TB, c Config) *running {
	t.Helper()
	if c.Dir == "" && c.File == "" {
		c.Dir = t.TempDir()
	}
	if c.AdminToken == "" {
		c.AdminToken = adminToken
	}
	if c.Version == "" {
		c.Version = "test"
	}
	n, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{
		Node: n, t: t, url: "http://" + l.Addr().String(), served: make(chan error, 1),
		client: newClient(),
	}
	go func() { r.served <- n.Serve(l) }()
	t.Cleanup(r.stop)
	return r
}

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
}

// stop shuts the node down; it may be called before the test ends.
func (r *running) stop() {
	r.t.Helper()
	r.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.Shutdown(ctx); err != nil {
		r.t.Errorf("shutdown: %v", err)
	}
	select {
	case err := <-r.served:
		if err != nil {
			r.t.Errorf("serve: %v", err)
		}
		r.served <- nil
	case <-time.After(10 * time.Second):
		r.t.Error("serve did not end with the shutdown")
	}
}

// reply is a response as a client sees it.
type reply struct {
	status int
	header http.Header
	body   string
}

// send sends a request and returns the response. Headers are pairs of name and value.
func (r *running) send(method, path, body string, headers ...string) (reply, error) {
	base, target, _ := strings.Cut(strings.TrimPrefix(r.url, "http://")+path, "/")
	req, err := http.NewRequest(method, "http://"+base, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.URL.Opaque = "/" + target // keeps escapes that net/http would not send
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(text)}, err
}

// do sends a request and fails the test if there is no response.
func (r *running) do(method, path, body string, headers ...string) reply {
	r.t.Helper()
	got, err := r.send(method, path, body, headers...)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	return got
}

// admin sends a request to a path under /_admin/ with the admin token.
func (r *running) admin(method, path, body string) reply {
	r.t.Helper()
	return r.do(method, "/_admin/"+path, body, "Authorization", "Bearer "+adminToken)
}

// want sends a request and checks the status of the response.
func (r *running) want(status int, method, path, body string, headers ...string) reply {
	r.t.Helper()
	got := r.do(method, path, body, headers...)
	if got.status != status {
		r.t.Fatalf("%s %s %s: got %d %s, expected %d", method, path, body, got.status, got.body, status)
	}
	return got
}

// wantAdmin is want for a path under /_admin/.
func (r *running) wantAdmin(status int, method, path, body string) reply {
	r.t.Helper()
	return r.want(status, method, "/_admin/"+path, body, "Authorization", "Bearer "+adminToken)
}

// query runs a statement in a tenant, checks that the status is 200 and returns the body.
func (r *running) query(tenant, statement string) string {
	r.t.Helper()
	return r.want(200, "POST", "/t/"+tenant+"/query", fmt.Sprintf(`{"query": %q}`, statement)).body
}

// fill creates a tenant with a collection c of numbered documents.
func (r *running) fill(tenant string, documents int) {
	r.t.Helper()
	r.wantAdmin(201, "PUT", "tenants/"+tenant, "")
	r.query(tenant, "create collection c (n int, s text)")
	r.insert(tenant, 1, documents)
}

// insert adds numbered documents to the collection c.
func (r *running) insert(tenant string, from, documents int) {
	r.t.Helper()
	if documents == 0 {
		return
	}
	var rows bytes.Buffer
	for i := range documents {
		fmt.Fprintf(&rows, `%c{"n": %d, "s": "s%d"}`, ",["[b2i(i == 0)], from+i, from+i)
	}
	rows.WriteByte(']')
	r.want(201, "POST", "/t/"+tenant+"/c", rows.String())
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// count returns the body of a count of c.
func (r *running) count(tenant string) string {
	r.t.Helper()
	return r.want(200, "GET", "/t/"+tenant+"/c?count", "").body
}

// isOpen reports whether the tenant's file is open.
func (r *running) isOpen(tenant string) bool { return r.tenants.Find([]byte(tenant)) != nil }

// closeIdle waits until no request uses a tenant, which is shortly after a response, and closes it.
func (r *running) closeIdle(tenant string) {
	r.t.Helper()
	eventually(r.t, "no request is in "+tenant, func() bool {
		one := r.tenants.Find([]byte(tenant))
		return one == nil || r.tenants.CloseIfIdle(one)
	})
}

func (r *running) file(name string) string { return filepath.Join(r.config.Dir, name) }

// eventually waits until another goroutine has made a condition true.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out: expected that %s", what)
		}
	}
}

func TestASecondNodeOnADirectoryIsRefused(t *testing.T) {
	r := start(t, Config{})
	if _, err := New(Config{Dir: r.config.Dir}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second node on the directory: got %v, expected an error with \"in use\"", err)
	}
	r.stop()
	again, err := New(Config{Dir: r.config.Dir})
	if err != nil {
		t.Fatalf("a node after the first has stopped: %v", err)
	}
	if err := again.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestAFailedStartReturnsAOneLineError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		config Config
		want   string
	}{
		"a file where the directory should be": {Config{Dir: file}, "cannot create the directory"},
		"a read-only node over no directory":   {Config{Dir: file + "s", ReadOnly: true}, "cannot read the directory"},
		"a damaged file":                       {Config{File: file}, "cannot open"},
		"a read-only node over no file":        {Config{File: file + "s", ReadOnly: true}, "cannot open"},
		"a missing certificate":                {Config{Dir: t.TempDir(), TLSCert: file + "s", TLSKey: file}, "cannot read"},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := New(tc.config)
			if err == nil {
				n.Shutdown(context.Background())
				t.Fatal("the node started")
			}
			if !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, expected one line with %q", err, tc.want)
			}
		})
	}
}

func TestAcknowledgedWritesSurviveAShutdown(t *testing.T) {
	r := start(t, Config{})
	r.fill("acme", 3)
	r.stop()
	r = start(t, Config{Dir: r.config.Dir})
	if got := r.count("acme"); got != `{"count":3}` {
		t.Errorf("got %s after a restart, expected 3 documents", got)
	}
}

func TestShutdownSyncsEveryTenant(t *testing.T) {
	fs := crashfs.New(1)
	r := start(t, Config{Dir: "/data", FS: fs}) // syncs only when a tenant closes
	for i := range 5 {
		r.fill(fmt.Sprint("t", i), 3)
	}
	r.stop()
	r = start(t, Config{Dir: "/data", FS: fs.Crash()})
	for i := range 5 {
		if got := r.count(fmt.Sprint("t", i)); got != `{"count":3}` {
			t.Errorf("t%d: got %s after a power loss, expected 3 documents", i, got)
		}
	}
}

func TestAnIdleTenantIsSyncedWhenItIsClosed(t *testing.T) {
	fs := crashfs.New(1)
	r := start(t, Config{Dir: "/data", FS: fs})
	r.fill("acme", 3)
	r.closeIdle("acme")
	r = start(t, Config{Dir: "/data", FS: fs.Crash()})
	if got := r.count("acme"); got != `{"count":3}` {
		t.Errorf("got %s after a power loss, expected 3 documents", got)
	}
}

func TestShutdownMayBeCalledTwiceAndBeforeServe(t *testing.T) {
	n, err := New(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(n.Shutdown(context.Background()), n.Shutdown(context.Background())); err != nil {
		t.Error(err)
	}
}
