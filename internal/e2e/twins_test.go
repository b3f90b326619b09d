package e2e

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// twins are two nodes that are sent the same bytes, one straight and one through a router: a request means the same at
// both, and is answered the same.
type twins struct{ straight, through string }

func startTwins(t testing.TB) twins {
	t.Helper()
	return twins{straight: startPair(t).straight, through: startPair(t).through}
}

// say sends bytes and the end of them, and returns the first answer that is no interim one; no status is no answer.
func say(t testing.TB, addr string, text []byte) heard {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		c.Write(text) // an early refusal may come before all of it is out
		c.(*net.TCPConn).CloseWrite()
	}()
	defer func() { <-sent }()
	all, err := io.ReadAll(c)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		t.Fatalf("%s does not end its answer to %.300q: %v", addr, text, err)
	}
	method, _, _ := bytes.Cut(bytes.TrimPrefix(text, []byte("\r\n")), []byte(" "))
	in := bufio.NewReader(bytes.NewReader(all))
	for {
		resp, err := http.ReadResponse(in, &http.Request{Method: string(method)})
		if err != nil {
			return heard{}
		}
		if resp.StatusCode < 200 {
			continue
		}
		body, _ := io.ReadAll(resp.Body) // a stream ends with its client
		return heard{resp.StatusCode, resp.Header, string(body)}
	}
}

// differing is what no two copies have in common.
var differing = regexp.MustCompile(`[0-9a-f]+-[0-9a-f]{8,}|"ms":[0-9]+|"(total|max)_ms":[0-9.]+|fenec_[a-z_]+|history [^ ,"]+`)

// ownWords is a refusal that node and router each word for themselves: of a tenant or a path that they do not have.
var ownWords = regexp.MustCompile(`no tenant|no such route`)

// compare sends the same bytes to both.
func (tw twins) compare(t testing.TB, text []byte) (status int) {
	t.Helper()
	a, b := say(t, tw.straight, text), say(t, tw.through, text)
	if a.status != b.status {
		t.Errorf("%.300q is answered %d %s\nstraight and %d %s\nthrough the router", text, a.status, a.body, b.status, b.body)
		return a.status
	}
	own := a.status == 404 && ownWords.MatchString(a.body)
	if one, two := differing.ReplaceAllString(a.body, "#"), differing.ReplaceAllString(b.body, "#"); one != two && !own && !ofAll(text) {
		t.Errorf("%.300q is answered\n%s\nstraight and\n%s\nthrough the router", text, a.body, b.body)
	}
	for _, name := range []string{"Allow", "Content-Type", "Retry-After", "Fenec-Seq", "Fenec-Tenant", "Www-Authenticate", "Idempotent-Replayed"} {
		if one, two := a.header[name], b.header[name]; strings.Join(one, "|") != strings.Join(two, "|") {
			t.Errorf("%.300q: %s is %q straight and %q through the router", text, name, one, two)
		}
	}
	for way, got := range map[string]heard{"straight": a, "through the router": b} {
		if got.status != 0 && len(got.header["X-Request-Id"]) != 1 {
			t.Errorf("%.300q: %s it has the ids %q", text, way, got.header["X-Request-Id"])
		}
	}
	return a.status
}

// ofAll reports whether a request is about the process, which node and router answer by themselves.
func ofAll(text []byte) bool {
	return bytes.Contains(text, []byte("_health")) || bytes.Contains(text, []byte("_metrics"))
}

// sized is a request with a head of that many bytes.
func sized(line string, size int) string {
	begin := line + "\r\nHost: a\r\nX: "
	return begin + strings.Repeat("x", size-len(begin)-4) + "\r\n\r\n"
}

// twinRequests are requests that node and router might well take for different ones. A status of 0 is not said.
var twinRequests = []struct {
	name, text string
	status     int
}{
	{"OPTIONS of everything", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 204},
	{"OPTIONS of everything with a body", "OPTIONS * HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxx", 204},
	{"OPTIONS of a collection", "OPTIONS /t/acme/books HTTP/1.1\r\nHost: a\r\n\r\n", 204},
	{"OPTIONS of a route there is not", "OPTIONS /t/acme/books/x/y HTTP/1.1\r\nHost: a\r\n\r\n", 404},
	{"OPTIONS of a tenant there is not", "OPTIONS /t/nobody/books HTTP/1.1\r\nHost: a\r\n\r\n", 404},
	{"OPTIONS of the health", "OPTIONS /_health HTTP/1.1\r\nHost: a\r\n\r\n", 204},
	{"the health", "GET /_health HTTP/1.1\r\nHost: a\r\n\r\n", 200},
	{"the health by a POST", "POST /_health HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 405},
	{"metrics", "GET /_metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + adminToken + "\r\n\r\n", 200},
	{"* of a GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"a method of a tenant there is not", "PUT /t/nobody/books HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 404},
	{"a route to come of a tenant there is not", "GET /t/nobody/_whoami HTTP/1.1\r\nHost: a\r\n\r\n", 404},
	{"a wrong header for a tenant there is not", "GET /t/nobody/books HTTP/1.1\r\nHost: a\r\nFenec-After: x\r\n\r\n", 404},
	{"no method of the route", "PUT /t/acme/books HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 405},
	{"no method at all", "BREW /t/acme/books HTTP/1.1\r\nHost: a\r\n\r\n", 405},
	{"a path to nowhere", "GET /elsewhere HTTP/1.1\r\nHost: a\r\n\r\n", 404},
	{"no path", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 404},
	{"a tenant without a name", "GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n", 404},
	{"a tenant alone", "GET /t/acme HTTP/1.1\r\nHost: a\r\n\r\n", 200},
	{"empty segments", "GET //t//acme//books//?limit=1 HTTP/1.1\r\nHost: a\r\n\r\n", 200},
	{"a tenant's name that is none", "GET /t/Acme/books HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"an absolute target", "GET HTTP://b:1/t/acme/books?limit=1 HTTP/1.1\r\nHost: a\r\n\r\n", 200},
	{"a bad escape", "GET /t/acme/books%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"a NUL in an escape", "GET /t/acme/books%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"a header that only Unicode holds the Host", "GET /t/acme/books HTTP/1.1\r\nHost: a\r\nConnection: ho\u017ft\r\n\r\n", 200},
	{"a key that only Unicode holds one", "POST /t/acme/books HTTP/1.1\r\nHost: a\r\nConnection: idempotency-\u212aey\r\nIdempotency-Key: 1\r\nContent-Length: 13\r\n\r\n{\"title\":\"a\"}", 201},
	{"a Connection that names the Host", "GET /t/acme/books HTTP/1.1\r\nHost: a\r\nConnection: close, HOST\r\n\r\n", 400},
	{"a Connection that names the length", "POST /t/acme/books HTTP/1.1\r\nHost: a\r\nConnection: Content-Length\r\nContent-Length: 2\r\n\r\n{}", 400},
	{"a Connection that names the token", "GET /t/acme/books HTTP/1.1\r\nHost: a\r\nConnection: authorization\r\nAuthorization: x\r\n\r\n", 400},
	{"a Connection that names too much", "GET /t/acme/books HTTP/1.1\r\nHost: a\r\nConnection: " + strings.Repeat("x,", 65) + "\r\n\r\n", 400},
	{"a Connection that names much of nothing", "GET /t/acme/books HTTP/1.1\r\nHost: a\r\nConnection: " + strings.Repeat(",", 1000) + "\r\n\r\n", 200},
	{"a Connection that names a mark", "POST /t/acme/books HTTP/1.1\r\nHost: a\r\nFenec-Read: replica\r\nConnection: fenec-read\r\nContent-Length: 13\r\n\r\n{\"title\":\"a\"}", 201},
	{"the mark not named", "POST /t/acme/books HTTP/1.1\r\nHost: a\r\nFenec-Read: replica\r\nContent-Length: 13\r\n\r\n{\"title\":\"a\"}", 403},
	{"a Connection that names a position", "GET /t/acme/books HTTP/1.1\r\nHost: a\r\nFenec-After: 1000000\r\nConnection: Fenec-After\r\n\r\n", 200},
	{"a Connection that names a wrong position", "GET /t/acme/books HTTP/1.1\r\nHost: a\r\nFenec-After: x\r\nConnection: Fenec-After\r\n\r\n", 200},
	{"a Connection that names one wait of two", "GET /t/acme/books HTTP/1.1\r\nHost: a\r\nFenec-Wait: 1\r\nfenec-wait: 1\r\nConnection: FENEC-WAIT\r\n\r\n", 200},
	{"a Connection that names a key", "POST /t/acme/books HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 1\r\nIdempotency-Key: 2\r\nConnection: idempotency-key\r\nContent-Length: 13\r\n\r\n{\"title\":\"a\"}", 201},
	{"two keys", "POST /t/acme/books HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 1\r\nIdempotency-Key: 2\r\nContent-Length: 13\r\n\r\n{\"title\":\"a\"}", 400},
	{"a Connection that names the coding", "POST /t/acme/books HTTP/1.1\r\nHost: a\r\nConnection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n{\"title\":\"a\"}\r\n0\r\n\r\n", 201},
	{"a client that speaks for a router", "GET /t/acme/books HTTP/1.1\r\nHost: a\r\nFenec-Router: 10.0.0.1 00\r\n\r\n", 200},
	{"an upgrade", "GET /t/acme/books HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", 200},
	{"an expectation", "POST /t/acme/books HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 13\r\n\r\n{\"title\":\"a\"}", 201},
	{"an unknown expectation", "POST /t/acme/books HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 2\r\n\r\n{}", 417},
	{"HTTP/1.0 without a Host", "GET /t/acme/books?limit=1 HTTP/1.0\r\n\r\n", 200},
	{"HTTP/1.0 with chunks", "POST /t/acme/books HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	{"a body that ends early", "POST /t/acme/books HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n{}", 400},
	{"a body over the limit", "POST /t/acme/books HTTP/1.1\r\nHost: a\r\nContent-Length: 67108865\r\n\r\n", 413},
	{"a GET with a body", "GET /t/acme/books?limit=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxx", 200},
	{"a HEAD", "HEAD /t/acme/books HTTP/1.1\r\nHost: a\r\n\r\n", 200},
	{"a HEAD of what is not there", "HEAD /t/acme/nothing HTTP/1.1\r\nHost: a\r\n\r\n", 404},
	{"a position in the future", "GET /t/acme/books HTTP/1.1\r\nHost: a\r\nFenec-After: 1000000\r\nFenec-Wait: 1\r\n\r\n", 504},
	{"a batch", "POST /t/acme/batch HTTP/1.1\r\nHost: a\r\nContent-Length: 23\r\n\r\n{\"query\":\"get books\"}\r\n", 200},
	{"a head that ends early", "GET /t/acme/books HTTP/1.1\r\nHost: a\r\n", 400},
	{"nothing", "", 0},
}

func TestARequestMeansTheSameStraightAndThroughTheRouter(t *testing.T) {
	tw := startTwins(t)
	for _, tc := range twinRequests {
		t.Run(tc.name, func(t *testing.T) {
			if status := tw.compare(t, []byte(tc.text)); status != tc.status {
				t.Errorf("both answer %d, want %d", status, tc.status)
			}
		})
	}
}

// The longest head is the same for both, whatever a router adds to it.
func TestTheLongestHeadIsTheSameStraightAndThroughTheRouter(t *testing.T) {
	tw := startTwins(t)
	within := func(text string, status int) {
		t.Helper()
		if got := tw.compare(t, []byte(text)); got != status {
			head, _, _ := strings.Cut(text, "\r\n\r\n")
			t.Errorf("%.40q, a head of %d bytes, is answered %d, want %d", text, len(head)+4, got, status)
		}
	}
	for size := maxHead - 100; size <= maxHead; size++ {
		within(sized("GET /t/acme/books HTTP/1.1", size), 200)
	}
	for _, line := range []string{
		"GET /t/acme/books HTTP/1.1", "GET /t/acme/books HTTP/1.0", "GET http://a/t/acme/books HTTP/1.1", "OPTIONS /t/acme/books HTTP/1.1",
		"GET /t/acme/books HTTP/1.1\r\nConnection: x\r\nX-Request-Id: 7", "GET /t/acme/books HTTP/1.1\r\nFenec-Router: 127.0.0.1 00",
	} {
		status := 200
		if strings.HasPrefix(line, "OPTIONS") {
			status = 204
		}
		within(sized(line, maxHead-1), status)
		within(sized(line, maxHead), status)
		within("\r\n"+sized(line, maxHead), status)
		for _, more := range []int{1, 2, 91, 500, 1023, 1024, 1025, 5000, 70000} {
			within(sized(line, maxHead+more), 431)
		}
	}
	for _, more := range []int{10, 500, 2000} { // what else is wrong with it does not count
		within(sized("GET /t/acme/books HTTP/1.1\r\nHost: b", maxHead+more), 431)
		within(strings.TrimSuffix(sized("GET /t/acme/books HTTP/1.1", maxHead+more), "\r\n"), 431)
		within(strings.TrimSuffix(sized("GET /t/acme/books HTTP/1.1", maxHead+more), "\r\n\r\n")+"\x00\r\n\r\n", 431)
	}
	within(sized("GET /t/acme/books HTTP/1.1\r\nHost: b", maxHead), 400)
	within(strings.TrimSuffix(sized("GET /t/acme/books HTTP/1.1", maxHead), "\r\n"), 400)
	within(strings.TrimSuffix(sized("GET /t/acme/books HTTP/1.1", maxHead-10), "\r\n\r\n")+"\x00\r\n\r\n", 400)
	within(strings.Replace(sized("POST /t/acme/books HTTP/1.1\r\nTransfer-Encoding: chunked", maxHead), "\r\n\r\n", "\r\n\r\nd\r\n{\"title\":\"a\"}\r\n0\r\n\r\n", 1), 201)
	within(strings.Replace(sized("POST /t/acme/books HTTP/1.1\r\nTransfer-Encoding:chunked", maxHead), "\r\n\r\n", "\r\n\r\nd\r\n{\"title\":\"a\"}\r\n0\r\n\r\n", 1), 201)
}

var waiting = regexp.MustCompile(`(?i)fenec-(after|wait)`)

// FuzzStraightAndThroughTheRouter holds node and router against each other on any bytes.
func FuzzStraightAndThroughTheRouter(f *testing.F) {
	for _, tc := range twinRequests {
		f.Add([]byte(tc.text))
	}
	for _, size := range []int{maxHead - 91, maxHead, maxHead + 1, maxHead + 91} {
		f.Add([]byte(sized("GET /t/acme/books HTTP/1.1", size)))
	}
	tw := startTwins(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		line, _, _ := bytes.Cut(text, []byte("\n"))
		if bytes.Contains(line, []byte("/_")) || bytes.Contains(line, []byte("/changes")) || waiting.Match(text) {
			return // routes of their own, streams, and waits
		}
		if r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text))); err == nil {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return // a router reads a body that is no whole one before it asks a node, which may refuse without
			}
		}
		tw.compare(t, text)
	})
}
