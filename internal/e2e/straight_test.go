package e2e

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fenec/node"
	"fenec/router"
)

// pair is a node and a router in front of it, in this process, with a tenant acme that has a collection books.
type pair struct {
	t        testing.TB
	straight string // the node's address
	through  string // the router's
}

func startPair(t testing.TB) *pair {
	t.Helper()
	return startPairWith(t, node.Config{}, router.Config{})
}

func startPairWith(t testing.TB, nc node.Config, rc router.Config) *pair {
	t.Helper()
	p := &pair{t: t}
	nc.Dir, nc.AdminToken = t.TempDir(), adminToken
	n, err := node.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	p.straight = serveIn(t, n)
	rc.Directory = filepath.Join(t.TempDir(), "shard.fenec")
	r, err := router.New(rc)
	if err != nil {
		t.Fatal(err)
	}
	p.through = serveIn(t, r)
	p.must(p.through, 201, "PUT", "/_shard/nodes/n1", `{"addr":"`+p.straight+`","token":"`+adminToken+`"}`)
	p.must(p.through, 201, "PUT", "/_shard/tenants/acme", "")
	p.must(p.through, 200, "POST", "/t/acme/query", `{"query":"create collection books (title text @hash, year int @sorted)"}`)
	return p
}

// serveIn serves on loopback until the test ends, and returns the address.
func serveIn(t testing.TB, s service) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s.Shutdown(ctx)
		if err := receive(t, "it is answered", ended); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// heard is an answer as a client reads it.
type heard struct {
	status int
	header http.Header
	body   string
}

// send sends bytes on a connection of their own and returns the first answer.
func (p *pair) send(addr, text string) heard {
	p.t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		p.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		io.WriteString(c, text) // an early refusal may come before all of it is out
	}()
	method, _, _ := strings.Cut(text, " ")
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		p.t.Fatalf("%s does not answer %.200q: %v", addr, text, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatalf("%s breaks off in the answer to %.200q: %v", addr, text, err)
	}
	c.Close()
	<-sent
	return heard{resp.StatusCode, resp.Header, string(body)}
}

func (p *pair) must(addr string, status int, method, path, body string) string {
	p.t.Helper()
	got := p.send(addr, method+" "+path+" HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer router\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
	if got.status != status {
		p.t.Fatalf("%s %s is answered %d %s", method, path, got.status, got.body)
	}
	return got.body
}

// maxHead is the longest head, as the documentation says.
const maxHead = 64 << 10

// crowdedHeads are heads of 64 KiB at most on which a pass over each part for each other part is slow.
func crowdedHeads() map[string]string {
	const line = "GET /t/acme/books HTTP/1.1\r\nHost: a\r\n"
	room := func(taken string) int { return maxHead - len(taken) - len("\r\n\r\n") }
	lines := func(begin, piece string) string {
		return begin + strings.Repeat(piece, room(begin)/len(piece)) + "\r\n"
	}
	list := func(begin, piece string) string { return lines(begin, piece) + "\r\n" }
	target := func(begin, piece, end string) string {
		const rest = " HTTP/1.1\r\nHost: a\r\n\r\n"
		return begin + strings.Repeat(piece, (maxHead-len(begin+end+rest))/len(piece)) + end + rest
	}
	var names []string
	for i := range 64 {
		names = append(names, "a"+string(rune('A'+i/26))+string(rune('a'+i%26)))
	}
	return map[string]string{
		"empty members of Connection beside short lines": lines(line+"Connection: zz"+strings.Repeat(",", 32<<10)+"\r\n", "aa:\r\n"),
		"a name of Connection beside short lines":        lines(line+"Connection: zz\r\n", "aa:\r\n"),
		"64 names of Connection beside lines as short":   lines(line+"Connection: "+strings.Join(names, ",")+"\r\n", "aaz:\r\n"),
		"lines that Connection names":                    lines(line+"Connection: aa\r\n", "aa:\r\n"),
		"lines of Connection":                            lines(line, "Connection:,\r\n"),
		"a long Connection":                              list(line+"Connection: ", "close,"),
		"short lines":                                    lines(line, "a:\r\n"),
		"request ids that cannot be used":                lines(line, "X-Request-Id:\r\n"),
		"lines that end at the router":                   lines(line, "TE:\r\n"),
		"waits":                                          lines(line, "Fenec-Waits:\r\n"),
		"empty segments":                                 target("GET /t/acme/books", "/", ""),
		"segments":                                       target("GET /t/acme/books", "/b", ""),
		"segments that begin like dots":                  target("GET /t/acme/", "%2e%2E./", ""),
		"ampersands":                                     target("GET /t/acme/books?", "&", ""),
		"a filter of an indexed field":                   target("GET /t/acme/books?", "title=a&", "year=1"),
		"a filter with escapes":                          target("GET /t/acme/books?", "%74itle=%61&", "year=1"),
		"a range of an indexed field":                    target("GET /t/acme/books?", "year=lt.9&", "year=1"),
		"a list of an indexed field":                     target("GET /t/acme/books?year=in.(", "1,", "1)"),
		"lists of an indexed field":                      target("GET /t/acme/books?", "year=in.(1,2)&", "year=1"),
		"conditions":                                     target("GET /t/acme/books?where=", "id%3D1%20and%20", "id%3D1"),
		"waits in the query":                             target("GET /t/acme/books?", "wait=1&", "wait=1"),
		"commas of a lookup":                             target("GET /t/acme/books?lookup=", ",", ""),
	}
}

// processorTime returns what the process has used.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func TestAHeadCostsLittleMoreThanItsBytes(t *testing.T) {
	const heads, bound = 3, 3 * time.Second // of each: a pass over the square takes many times that
	p := startPair(t)
	for name, text := range crowdedHeads() {
		t.Run(name, func(t *testing.T) {
			if head, _, _ := strings.Cut(text, "\r\n\r\n"); len(head)+4 > maxHead || len(head) < maxHead*7/8 {
				t.Fatalf("the head has %d bytes", len(head)+4)
			}
			for way, addr := range map[string]string{"straight": p.straight, "through the router": p.through} {
				began := processorTime(t)
				for range heads {
					p.send(addr, text)
				}
				if took := processorTime(t) - began; took > bound {
					t.Errorf("%d heads %s take %s", heads, way, took)
				}
			}
		})
	}
}
