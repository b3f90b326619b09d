package http1

import (
	"bufio"
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

// await waits for a condition and fails the test if it never holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%s never came about", what)
		}
	}
}

func TestAClientThatHalfClosesGetsItsAnswer(t *testing.T) {
	addr := start(t, &Server{Handler: echo})
	c := dial(t, addr)
	send(t, c, again+again)
	c.CloseWrite()
	b := bufio.NewReader(c)
	for range 2 {
		if resp, _ := receive(t, b, "GET"); resp.StatusCode != 200 {
			t.Errorf("got %d", resp.StatusCode)
		}
	}
	if _, err := b.ReadByte(); err != io.EOF {
		t.Errorf("the connection goes on: %v", err)
	}
}

func TestAClientThatHalfClosesGetsAnAnswerThatTakesLong(t *testing.T) {
	for _, body := range []string{"", "Content-Length: 2\r\n\r\nok"} {
		asked := make(chan struct{})
		addr := start(t, &Server{Handler: HandlerFunc(func(r *Request) Answer {
			r.Body(0)
			<-asked
			r.ctxLookedAt(t)
			if err := r.Context().Err(); err != nil {
				return ErrorAnswer(500, "taken for gone")
			}
			return Answer{Status: 200, Body: []byte("late")}
		})})
		c := dial(t, addr)
		send(t, c, "POST / HTTP/1.1\r\nHost: a\r\n"+body)
		if body == "" {
			send(t, c, "\r\n")
		}
		c.CloseWrite()
		close(asked)
		if resp, body := receive(t, bufio.NewReader(c), "GET"); resp.StatusCode != 200 || body != "late" {
			t.Errorf("got %d %s", resp.StatusCode, body)
		}
	}
}

// ctxLookedAt waits until the context has seen the half-close.
func (r *Request) ctxLookedAt(t testing.TB) {
	await(t, "the look at the client", func() bool {
		r.Context().Err()
		r.ctx.mu.Lock()
		defer r.ctx.mu.Unlock()
		return !r.ctx.probed.IsZero()
	})
}

// waiting waits in each request for the client to go.
func waiting(gone chan<- error) Handler {
	return HandlerFunc(func(r *Request) Answer {
		ctx := r.Context()
		for deadline := time.Now().Add(10 * time.Second); ctx.Err() == nil && time.Now().Before(deadline); {
			runtime.Gosched()
		}
		gone <- ctx.Err()
		return ErrorAnswer(500, "no client reads this")
	})
}

func TestAContextEndsWhenItsClientDisconnects(t *testing.T) {
	for name, leave := range map[string]func(io.Closer, interface{ SetLinger(int) error }){
		"by a reset": func(c io.Closer, l interface{ SetLinger(int) error }) { l.SetLinger(0); c.Close() },
		"by a close": func(c io.Closer, l interface{ SetLinger(int) error }) { c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan error, 1)
			c := dial(t, start(t, &Server{Handler: waiting(gone)}))
			send(t, c, again)
			leave(c, c)
			if err := <-gone; err != context.Canceled {
				t.Errorf("the context says %v", err)
			}
		})
	}
}

func TestAStreamsClientThatHalfClosesHasDisconnected(t *testing.T) {
	ended := make(chan error, 1)
	addr := start(t, &Server{Handler: HandlerFunc(func(r *Request) Answer {
		ctx := r.Context()
		return Answer{Status: 200, Stream: func(w *Writer) error {
			w.WriteString("hello\n")
			w.Flush()
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		}}
	})})
	for name, early := range map[string]bool{"while it runs": false, "before it runs": true} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr)
			send(t, c, again)
			if !early {
				b := bufio.NewReader(c)
				await(t, "the first line", func() bool { line, _ := b.ReadString('\n'); return line == "hello\n" })
			}
			c.CloseWrite()
			if err := <-ended; err != context.Canceled {
				t.Errorf("the context says %v", err)
			}
		})
	}
}

func TestWatchingAClientLosesNothingItSends(t *testing.T) {
	watching := make(chan struct{})
	addr := start(t, &Server{Handler: HandlerFunc(func(r *Request) Answer {
		done := r.Context().Done() // before the body is read
		watching <- struct{}{}
		body, err := r.Body(0)
		if err != nil {
			return ErrorAnswer(500, err.Error())
		}
		select {
		case <-done:
			return ErrorAnswer(500, "taken for gone")
		default:
		}
		return Answer{Status: 200, Body: body}
	})})
	c := dial(t, addr)
	b := bufio.NewReader(c)
	send(t, c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe")
	for range 200 {
		<-watching
		send(t, c, "llo"+"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n")
		<-watching
		send(t, c, "x"+"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe")
		for _, want := range []string{"hello", "x"} {
			if _, body := receive(t, b, "POST"); body != want {
				t.Fatalf("got %q, want %q", body, want)
			}
		}
	}
	<-watching
	c.Close()
}

func TestAConnectionThatWasWatchedStillTimesOut(t *testing.T) {
	addr := start(t, &Server{IdleTimeout: 200 * time.Millisecond, Handler: HandlerFunc(func(r *Request) Answer {
		r.Context().Done()
		return Answer{Status: 200}
	})})
	c := dial(t, addr)
	b := bufio.NewReader(c)
	send(t, c, again)
	receive(t, b, "GET")
	if _, err := b.ReadByte(); err != io.EOF {
		t.Errorf("it was not closed: %v", err)
	}
}

func TestAPanicIsA500AndAClose(t *testing.T) {
	var log strings.Builder
	s := &Server{Handler: HandlerFunc(func(r *Request) Answer { panic("at the disco") })}
	addr := startLogged(t, s, &log)
	c := dial(t, addr)
	send(t, c, "GET /it HTTP/1.1\r\nHost: a\r\nX-Request-Id: this-one\r\n\r\n")
	resp, body := receive(t, bufio.NewReader(c), "GET")
	if resp.StatusCode != 500 || !resp.Close || strings.Contains(body, "disco") {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
	for _, want := range []string{"at the disco", "this-one", "/it", "peer_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not name %s: %s", want, log.String())
		}
	}
}
