package http1

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnswersHeadsAreReadByTheRules(t *testing.T) {
	for _, one := range []struct {
		name, head, method string
		status             int // 0: refused
		length             int64
		chunked, close     bool
	}{
		{"an answer with a length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "GET", 200, 5, false, false},
		{"an answer without a reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "GET", 200, 0, false, false},
		{"a chunked answer has no length", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", 200, -1, true, false},
		{"an answer with neither ends with the connection", "HTTP/1.1 200 OK\r\n\r\n", "GET", 200, -1, false, true},
		{"an answer that says so closes", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n", "GET", 200, 5, false, true},
		{"HTTP/1.0 closes", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n", "GET", 200, 5, false, true},
		{"an answer to HEAD has no body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD", 200, 0, false, false},
		{"an answer to HEAD may be chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HEAD", 200, 0, false, false},
		{"a 204 has no body", "HTTP/1.1 204 No Content\r\n\r\n", "GET", 204, 0, false, false},
		{"a 204 that announces a body is not trusted further", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "GET", 204, 0, false, true},
		{"a 304 has no body whatever its length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "GET", 304, 0, false, false},
		{"an interim answer has no body", "HTTP/1.1 103 Early Hints\r\n\r\n", "GET", 103, 0, false, false},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", "GET", 0, 0, false, false},
		{"a length that is none", "HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\n", "GET", 0, 0, false, false},
		{"a length beside chunked", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", 0, 0, false, false},
		{"an unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "GET", 0, 0, false, false},
		{"chunked in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", 0, 0, false, false},
		{"a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", "GET", 0, 0, false, false},
		{"a status below 100", "HTTP/1.1 099 OK\r\n\r\n", "GET", 0, 0, false, false},
		{"a status of letters", "HTTP/1.1 2x0 OK\r\n\r\n", "GET", 0, 0, false, false},
		{"another major version", "HTTP/2.0 200 OK\r\n\r\n", "GET", 0, 0, false, false},
		{"what is no HTTP", "SSH-2.0-OpenSSH\r\n\r\n", "GET", 0, 0, false, false},
		{"a bare line feed", "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n", "GET", 0, 0, false, false},
		{"a space before a colon", "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n", "GET", 0, 0, false, false},
		{"a folded header", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", "GET", 0, 0, false, false},
		{"a head that is not whole", "HTTP/1.1 200 OK\r\nX: a\r\n", "GET", 0, 0, false, false},
		{"more than a head", "HTTP/1.1 204 OK\r\n\r\nx", "GET", 0, 0, false, false},
	} {
		t.Run(one.name, func(t *testing.T) {
			got, err := parseResponse([]byte(one.head), one.method)
			var bad *Error
			if one.status == 0 {
				if !errors.As(err, &bad) || bad.Status != 502 {
					t.Fatalf("got %+v, %v; want it refused", got, err)
				}
				return
			}
			if err != nil || got.Status != one.status || got.Length != one.length || got.Chunked != one.chunked || got.Close != one.close {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func dialUpstream(t testing.TB, addr string) *Upstream {
	t.Helper()
	u, err := Dial(context.Background(), new(net.Dialer).DialContext, addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	return u
}

func soon() time.Time { return time.Now().Add(10 * time.Second) }

func TestAnUpstreamConnectionIsUsedAgain(t *testing.T) {
	addr := start(t, &Server{Handler: anyStream})
	u := dialUpstream(t, addr)
	for range 3 {
		for path, want := range map[string]string{"/large": long, "/chunks": "one two " + long + "three four", "/raw": "raw", "/nothing": "", "/length": "abc" + long, "/empty": ""} {
			if !u.Fresh() {
				t.Fatal("the connection is not fresh")
			}
			if err := u.Send([]byte("GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n"), nil); err != nil || !u.Sent() || u.Received() {
				t.Fatal(err, u.Sent(), u.Received())
			}
			r, err := u.ReadHead("GET", soon())
			if err != nil || !u.Received() {
				t.Fatal(err)
			}
			if r.Length != 0 && u.Reusable() {
				t.Errorf("%s: reusable before its body is read", path)
			}
			message, ok, err := u.Message(200<<10, time.Second)
			if err != nil || ok != (r.Length >= 0) {
				t.Fatalf("%s: %v, %v", path, ok, err)
			}
			var body []byte
			if ok {
				if !bytes.HasPrefix(message, r.Head) || !bytes.HasPrefix(message, []byte("HTTP/1.1 2")) {
					t.Errorf("%s: the message begins %q", path, message[:20])
				}
				body = message[len(r.Head):]
			} else if body, err = io.ReadAll(u.Body(time.Second)); err != nil {
				t.Fatal(err)
			}
			if string(body) != want {
				t.Errorf("%s: got %d bytes", path, len(body))
			}
			if !u.Reusable() {
				t.Errorf("%s: not reusable", path)
			}
		}
	}
}

func TestAnUpstreamReadsABodyOverTheLimitOfAMessageAsAStream(t *testing.T) {
	u := dialUpstream(t, start(t, &Server{Handler: anyStream}))
	u.Send([]byte("GET /large HTTP/1.1\r\nHost: a\r\n\r\n"), nil)
	if _, err := u.ReadHead("GET", soon()); err != nil {
		t.Fatal(err)
	}
	m, whole, err := u.Message(1000, 0)
	if whole || err != nil || len(m) != 1000 || u.Reusable() {
		t.Fatalf("got %d bytes, %v, %v", len(m), whole, err)
	}
	_, begun, _ := strings.Cut(string(m), "\r\n\r\n")
	if rest, err := io.ReadAll(u.Body(0)); begun+string(rest) != long || err != nil || !u.Reusable() {
		t.Errorf("got %d and %d bytes, %v", len(begun), len(rest), err)
	}
}

func TestAnUpstreamReleasesALargeBuffer(t *testing.T) {
	u := dialUpstream(t, start(t, &Server{Handler: anyStream}))
	for range 2 {
		u.Send([]byte("GET /large HTTP/1.1\r\nHost: a\r\n\r\n"), nil)
		if _, err := u.ReadHead("GET", soon()); err != nil {
			t.Fatal(err)
		}
		if m, ok, err := u.Message(200<<10, 0); !ok || err != nil || !bytes.HasSuffix(m, []byte(long)) {
			t.Fatalf("got %d bytes, %v, %v", len(m), ok, err)
		}
		if u.Trim(); len(u.buf) > keepBuffer || !u.Fresh() {
			t.Errorf("%d bytes are kept, fresh %v", len(u.buf), u.Fresh())
		}
	}
}

func TestAnUpstreamSendsABodyWholeOrInPieces(t *testing.T) {
	u := dialUpstream(t, start(t, &Server{Handler: digest}))
	head := []byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 131072\r\n\r\n")
	var answers []string
	for _, pieces := range [][]string{{long}, {"", long}, {long[:10], long[10:1000], long[1000:]}} {
		if err := u.Send(head, []byte(pieces[0])); err != nil {
			t.Fatal(err)
		}
		for _, piece := range pieces[1:] {
			if _, err := u.Write([]byte(piece)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := u.ReadHead("POST", soon()); err != nil {
			t.Fatal(err)
		}
		m, _, err := u.Message(1000, 0)
		if err != nil || !u.Reusable() {
			t.Fatal(err)
		}
		_, body, _ := bytes.Cut(m, []byte("\r\n\r\n"))
		answers = append(answers, string(body))
	}
	if !strings.HasPrefix(answers[0], "131072 ") || answers[0] != answers[1] || answers[0] != answers[2] {
		t.Errorf("got %q", answers)
	}
}

// script is a server that reads some bytes and then plays its lines.
func script(t *testing.T, text string, then func(c *net.TCPConn)) *Upstream {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.Read(make([]byte, 4096))
		io.WriteString(c, text)
		then(c.(*net.TCPConn))
	}()
	t.Cleanup(func() { l.Close(); <-done })
	u := dialUpstream(t, l.Addr().String())
	if err := u.Send([]byte(again), nil); err != nil {
		t.Fatal(err)
	}
	return u
}

func untilClosed(c *net.TCPConn) { io.Copy(io.Discard, c) }

func TestAnUpstreamSkipsInterimAnswers(t *testing.T) {
	u := script(t, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", untilClosed)
	r, err := u.ReadHead("GET", soon())
	if err != nil || r.Status != 200 {
		t.Fatalf("got %v, %v", r, err)
	}
	if m, ok, _ := u.Message(1000, 0); !ok || string(m) != "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" {
		t.Errorf("the message is %q", m)
	}
	u.Close()
}

func TestAnUpstreamThatMisbehavesIsNotUsedAgain(t *testing.T) {
	for _, one := range []struct {
		name, text string
		then       func(c *net.TCPConn)
		head       int // the status of ReadHead's *Error, 0 for none, 1 for another error
		body       int
	}{
		{"one that closes before it answers", "", func(*net.TCPConn) {}, 1, 0},
		{"one that resets before it answers", "", func(c *net.TCPConn) { c.SetLinger(0) }, 1, 0},
		{"one that closes inside its head", "HTTP/1.1 200 OK\r\n", func(*net.TCPConn) {}, 1, 0},
		{"one that speaks no HTTP", "hello there, what is this?\r\n\r\n", untilClosed, 502, 0},
		{"one that switches protocols", "HTTP/1.1 101 Switching\r\n\r\n", untilClosed, 502, 0},
		{"one whose head has no end", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", MaxHead), untilClosed, 502, 0},
		{"one whose interim answers have no end", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 4000), untilClosed, 502, 0},
		{"one that closes inside its body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", func(*net.TCPConn) {}, 0, 502},
		{"one that closes inside a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", func(*net.TCPConn) {}, 0, 502},
		{"one that sends a bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", untilClosed, 0, 502},
		{"one that sends more than its answer", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP", untilClosed, 0, 0},
		{"one that ends its answer by closing", "HTTP/1.1 200 OK\r\n\r\nhello", func(*net.TCPConn) {}, 0, 0},
		{"one that says it closes", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", untilClosed, 0, 0},
	} {
		t.Run(one.name, func(t *testing.T) {
			u := script(t, one.text, one.then)
			defer u.Close()
			_, err := u.ReadHead("GET", soon())
			checkError(t, "the head", err, one.head)
			if one.head == 0 {
				_, err = io.ReadAll(u.Body(10 * time.Second))
				checkError(t, "the body", err, one.body)
			}
			if u.Reusable() {
				t.Error("it is reusable")
			}
		})
	}
}

func checkError(t *testing.T, what string, err error, status int) {
	t.Helper()
	var bad *Error
	switch {
	case status == 0 && err != nil, status > 0 && err == nil:
		t.Errorf("%s: got %v, want status %d", what, err, status)
	case status > 1 && (!errors.As(err, &bad) || bad.Status != status):
		t.Errorf("%s: got %v, want status %d", what, err, status)
	case status == 1 && errors.As(err, &bad):
		t.Errorf("%s: got %v, want the connection's error", what, err)
	}
}

func TestAnIdleUpstreamIsCheckedBeforeUse(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
	defer server.Close()
	u := dialUpstream(t, server.Listener.Addr().String())
	u.Send([]byte(again), nil)
	if u.Fresh() {
		t.Error("fresh while an answer is due")
	}
	if _, err := u.ReadHead("GET", soon()); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := u.Message(1000, 0); !ok || err != nil || !u.Reusable() || !u.Fresh() {
		t.Fatalf("the answer: %v, %v; fresh %v", ok, err, u.Fresh())
	}
	server.CloseClientConnections()
	await(t, "the end of the connection", func() bool { return !u.Fresh() })
}

func TestAnUpstreamsSilenceIs504(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		u := NewUpstream(ours)
		defer u.Close()
		go io.Copy(io.Discard, theirs)
		began := time.Now()
		var late []time.Duration
		u.Late(began.Add(50*time.Millisecond), func() { late = append(late, time.Since(began)) })
		u.Send([]byte(again), nil)
		_, err := u.ReadHead("GET", began.Add(3*time.Second))
		checkError(t, "the head", err, 504)
		if took := time.Since(began); took != 3*time.Second || len(late) != 1 || late[0] != 50*time.Millisecond {
			t.Errorf("after %v, late after %v", took, late)
		}

		u.Late(time.Now().Add(time.Hour), func() { t.Error("it was late in time") })
		u.Send([]byte(again), nil)
		go io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
		if _, err := u.ReadHead("GET", time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		_, err = io.ReadAll(u.Body(7 * time.Second))
		checkError(t, "the body", err, 504)
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("after %v", took)
		}
		theirs.Close()
	})
}

func TestAnUpstreamThatIsAbortedEndsWhatWaitsOnIt(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan error, 1)
	u := dialUpstream(t, start(t, &Server{Handler: HandlerFunc(func(r *Request) Answer {
		close(asked)
		<-r.Context().Done()
		ended <- r.Context().Err()
		return Answer{Status: 200}
	})}))
	u.Late(time.Now(), u.Abort)
	if err := u.Send([]byte(again), nil); err != nil {
		t.Fatal(err)
	}
	<-asked
	if _, err := u.ReadHead("GET", time.Now().Add(time.Hour)); err == nil {
		t.Error("an answer came")
	}
	if err := <-ended; err == nil {
		t.Error("the server did not see it")
	}
}

func TestAnUpstreamRoundAllocatesNothing(t *testing.T) {
	u := dialUpstream(t, start(t, &Server{Handler: HandlerFunc(func(r *Request) Answer {
		return Answer{Status: 200, Headers: JSON, Body: append(r.Scratch(), long[:200]...)}
	})}))
	request := []byte(again)
	until := time.Now().Add(time.Minute)
	late := func() {}
	got := testing.AllocsPerRun(2000, func() {
		u.Late(until, late)
		if !u.Fresh() || u.Send(request, nil) != nil {
			t.Error("the connection broke")
		}
		r, err := u.ReadHead("GET", until)
		if err != nil || r.Status != 200 {
			t.Fatal(err)
		}
		if _, ok, _ := u.Message(64<<10, time.Second); !ok {
			t.Error("no message")
		}
	})
	if got > 0 {
		t.Errorf("a round allocates %v times", got)
	}
}

// parseResponse reads a whole head, blank line included and nothing after it,
// that answers a request of the method. The error is an *Error with status 502.
func parseResponse(head []byte, method string) (Response, error) {
	var p headParser
	var r Response
	n, err := p.parse(head)
	switch {
	case err != nil:
	case n == 0:
		err = refuse(502, "the head of the answer is not whole")
	case n < len(head):
		err = refuse(502, "there is more than a head")
	default:
		err = r.read(&p, head, method)
	}
	if err != nil {
		err.Status = 502
		return Response{}, err
	}
	return r, nil
}
