package router

import (
	"bufio"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

const mib = 1 << 20

// numbered is a text of n bytes in which no two places look alike.
func numbered(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(itoa(i))
	}
	return b.String()[:n]
}

// begun sends a GET for the tenant and returns once its answer has begun, of which no more has been read than that.
func begun(t *testing.T, rt *running) *bufio.Reader {
	t.Helper()
	c := dial(t, rt.addr)
	c.SetReadBuffer(16 << 10)
	io.WriteString(c, "GET /t/acme/c HTTP/1.1\r\nHost: x\r\n\r\n")
	in := bufio.NewReaderSize(c, 16)
	if _, err := in.Peek(9); err != nil {
		t.Fatal(err)
	}
	return in
}

func TestAnAnswerWaitsForItsClientInABoundedMemory(t *testing.T) {
	for _, c := range []struct {
		says    string
		size    int
		full    bool // there is no room
		counted int64
	}{
		{"a short one is not counted", 60 << 10, false, 0},
		{"a longer one is held whole", mib / 2, false, 0},
		{"of a long one a part is held", 40 * mib, false, heldAnswer},
		{"without room a longer one is not held", mib / 2, true, 0},
		{"without room a long one is not held", 40 * mib, true, 0},
	} {
		t.Run(c.says, func(t *testing.T) {
			text := ok(numbered(c.size))
			rt, _ := routed(t, Config{}, answering(text))
			full := int64(0)
			if c.full {
				full = rt.answers.Max()
				rt.answers.Take(full, 0)
			}
			var clients []*bufio.Reader
			for range 3 {
				clients = append(clients, begun(t, rt))
			}
			if c.size >= 40*mib { // more than the sockets take
				if used := rt.answers.Used() - full; used != 3*c.counted {
					t.Errorf("of three answers %d bytes are counted, want %d each", used, c.counted)
				}
			}
			for _, in := range clients {
				got := make([]byte, len(text))
				if n, err := io.ReadFull(in, got); err != nil || string(got) != text {
					t.Errorf("the answer is another after %d bytes, %v", n, err)
				}
			}
			eventually(t, "what the answers took is given back", func() bool { return rt.answers.Used() == full })
			eventually(t, "the connections are kept", func() bool { return rt.keptQuiet("n1") > 0 })
			p := &rt.node("n1").link.Load().pool
			for w := p.take(); w != nil; w = p.take() {
				if n := reflect.ValueOf(w.Upstream).Elem().FieldByName("buf").Len(); n > keptBuffer {
					t.Errorf("a connection that lies unused holds %d bytes", n)
				}
				w.close()
			}
		})
	}
}

func TestALongAnswerThatBreaksOffIsRetriedOnlyBeforeAnythingWasForwarded(t *testing.T) {
	text := ok(numbered(3 * mib))
	for _, c := range []struct {
		says  string
		cut   int
		sends int
		whole bool
	}{
		{"after its head", len(text) - 3*mib, 2, true},
		{"within what is held of it", heldAnswer - 1, 2, true},
		{"past what is held of it", heldAnswer + mib, 1, false},
	} {
		t.Run(c.says, func(t *testing.T) {
			rt, node := routed(t, Config{}, func(s *scripted) {
				if s.n > 1 {
					s.say(text)
					return
				}
				s.say(text[:c.cut])
				s.Close()
			})
			conn := dial(t, rt.addr)
			io.WriteString(conn, "GET /t/acme/c HTTP/1.1\r\nHost: x\r\n\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if got := err == nil && strings.HasSuffix(text, "\r\n\r\n"+string(body)); resp.StatusCode != 200 || got != c.whole {
				t.Errorf("got %d with %d bytes, %v", resp.StatusCode, len(body), err)
			}
			if n := len(node.requests()); n != c.sends {
				t.Errorf("the node saw the GET %d times, want %d", n, c.sends)
			}
			conn.Close()
			eventually(t, "what the answer took is given back", func() bool { return rt.answers.Used() == 0 })
		})
	}
}

func TestALongAnswerToAConnectionThatClosesLosesItsHops(t *testing.T) {
	body := numbered(3 * mib)
	rt, _ := routed(t, Config{}, answering(answerText("200 OK", "X-A: 1\r\nKeep-Alive: 5\r\nx-b:2\r\n", body)))
	got := raw(t, rt.addr, "GET /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	want := "HTTP/1.1 200 OK\r\nX-A: 1\r\nx-b:2\r\nContent-Length: " + itoa(len(body)) + "\r\nConnection: close\r\n\r\n" + body
	if got != want {
		t.Errorf("got %d bytes that begin with %q, want %d", len(got), got[:min(200, len(got))], len(want))
	}
}

// A body of 60 MB is announced and not a byte of it sent.
func TestARequestRefusedByItsHeadIsAnsweredBeforeTheBodyArrives(t *testing.T) {
	rt := start(t, Config{Token: "s3cret"})
	for request, want := range map[string]string{
		"PUT /_shard/nodes/n1 HTTP/1.1\r\n":                                            "401",
		"PUT /_shard/nodes/n1 HTTP/1.1\r\nAuthorization: Bearer wrong\r\n":             "401",
		"POST /_shard/nodes/n1 HTTP/1.1\r\nAuthorization: Bearer s3cret\r\n":           "405",
		"PATCH /_shard/tenants/acme HTTP/1.1\r\nAuthorization: Bearer s3cret\r\n":      "405",
		"POST /_health HTTP/1.1\r\n":                                                   "405",
		"POST /t/acme/query HTTP/1.1\r\n":                                              "404",
		"PUT /_shard/elsewhere HTTP/1.1\r\nAuthorization: Bearer s3cret\r\n":           "404",
		"POST /_shard/tenants/acme/quota HTTP/1.1\r\nAuthorization: Bearer s3cret\r\n": "501",
	} {
		for _, framing := range []string{"Content-Length: 60000000\r\n", "Content-Length: 60000000\r\nExpect: 100-continue\r\n", "Transfer-Encoding: chunked\r\n"} {
			c := dial(t, rt.addr)
			io.WriteString(c, request+"Host: x\r\n"+framing+"\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := itoa(resp.StatusCode); got != want {
				t.Errorf("%q is answered %s, want %s", request, got, want)
			}
			c.Close()
		}
	}
}
