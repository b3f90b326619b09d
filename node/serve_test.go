package node

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// raw opens a connection and writes the bytes of a request to it.
func (r *running) raw(request string) (net.Conn, *bufio.Reader) {
	r.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		r.t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

func TestASlowBodyDoesNotBlockTheDeleteOfItsTenant(t *testing.T) {
	r := start(t, Config{})
	r.fill("acme", 1)
	conn, in := r.raw("POST /t/acme/c HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\nExpect: 100-continue\r\n\r\n")
	if line, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("got %q, %v, expected status 100", line, err) // the node is waiting for the body
	}
	r.wantAdmin(204, "DELETE", "tenants/acme", "")
	if _, err := io.WriteString(conn, `{"n": 1}`); err != nil {
		t.Fatal(err)
	}
	in.ReadString('\n') // the blank line that ends the 100
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 404 {
		t.Errorf("got %d after the delete, expected 404", resp.StatusCode)
	}
}

func TestNoContinueIsSentForAnAbsentTenant(t *testing.T) {
	r := start(t, Config{})
	_, in := r.raw("POST /t/nobody/c HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n")
	if line, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 404 ") {
		t.Errorf("got %q, %v, expected status 404", line, err)
	}
}

func TestShutdownEndsRequestsAtItsDeadline(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/acme", "")
	r.query("acme", "create collection c (s text)")
	for range 24 {
		r.want(201, "POST", "/t/acme/c", `{"s": "`+strings.Repeat("x", 1<<20)+`"}`)
	}
	_, in := r.raw("GET /_admin/tenants/acme/file HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + adminToken + "\r\n\r\n")
	if _, err := in.ReadString('\n'); err != nil { // the client reads the head and nothing after it
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := r.Node.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, expected %v", err, context.DeadlineExceeded)
	}
	r.shutdown = func(context.Context) error { return nil } // for the clean-up: the node is shut down already
	again := start(t, Config{Dir: r.config.Dir})
	if got := again.count("acme"); got != `{"count":24}` {
		t.Errorf("got %s after a restart, expected 24 documents", got)
	}
}

func TestTheHealthCheckOfAStoppingNodeFails(t *testing.T) {
	n := &Node{}
	if a := n.health(nil); a.Status != 200 {
		t.Errorf("got %d, expected 200", a.Status)
	}
	n.stopping.Store(true)
	if a := n.health(nil); a.Status != 503 {
		t.Errorf("got %d while stopping, expected 503", a.Status)
	}
}

func TestAStatementIsStoppedAtItsTimeout(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/acme", "")
	r.query("acme", "create collection c (n int)")
	rows := "[" + strings.Repeat(`{"n": 1},`, 9999) + `{"n": 1}]`
	r.want(201, "POST", "/t/acme/c", rows)
	r.stop()
	r = start(t, Config{Dir: r.config.Dir, StatementTimeout: time.Nanosecond})
	got := r.want(503, "GET", "/t/acme/c?n=2", "")
	want := `{"error":"the statement ran out of time after 1ns: it was about to begin","retry_after":1}`
	if got.header.Get("Retry-After") == "" || strings.TrimSpace(got.body) != want {
		t.Errorf("got %v %s, expected Retry-After and %s", got.header, got.body, want)
	}
}

func TestTheErrorOfATimeoutNamesTheStepOfTheStatement(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/acme", "")
	r.query("acme", "create collection c (s text)")
	row := `{"s": "` + strings.Repeat("é", 200) + `"}`
	r.want(201, "POST", "/t/acme/c", "["+strings.Repeat(row+",", 19_999)+row+"]")
	r.stop()
	var ticks, step atomic.Int64
	r = start(t, Config{Dir: r.config.Dir, StatementTimeout: 10 * time.Millisecond, Clock: func() time.Time {
		return time.UnixMilli(1_700_000_000_000 + ticks.Add(step.Load()))
	}})
	r.want(200, "GET", "/t/acme/c?count", "")
	step.Store(3) // milliseconds per call of the clock: one call at the start of a statement, one for every few thousand rows
	got := r.want(503, "POST", "/t/acme/query", `{"query": "get c where lower(s) = 'b'"}`)
	want := regexp.MustCompile(`^{"error":"the statement ran out of time after 10ms: it was scanning c, [0-9]+ [0-9]+ of 20 000 rows tested","retry_after":1}$`)
	if !want.MatchString(strings.TrimSpace(got.body)) {
		t.Errorf("got %s, expected %s", got.body, want)
	}
}

func TestTLSIsServed(t *testing.T) {
	cert, key, roots := selfSigned(t)
	r := start(t, Config{TLSCert: cert, TLSKey: key})
	r.url = "https://" + strings.TrimPrefix(r.url, "http://")
	r.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	resp, err := r.client.Get(r.url + "/_health")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.TLS == nil {
		t.Errorf("got %d over %v, expected 200 over TLS", resp.StatusCode, resp.TLS)
	}
}

// selfSigned writes a self-signed certificate of 127.0.0.1 and its key to files, and returns their names and a pool with the
// certificate.
func selfSigned(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, bytes []byte) string {
		path := fmt.Sprintf("%s/%s", dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	roots = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(parsed)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret), roots
}
