package http1

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// both runs a test over plain connections and over TLS. connect makes one to a server with the handler.
func both(t *testing.T, test func(t *testing.T, connect func(Handler) net.Conn)) {
	t.Run("plain", func(t *testing.T) {
		test(t, func(h Handler) net.Conn { return dial(t, start(t, &Server{Handler: h})) })
	})
	t.Run("TLS", func(t *testing.T) {
		cert, pool := certificate(t)
		test(t, func(h Handler) net.Conn {
			below := dial(t, start(t, &Server{Handler: h, TLS: &tls.Config{Certificates: []tls.Certificate{cert}}}))
			c := tls.Client(below, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"})
			if err := c.Handshake(); err != nil {
				t.Fatal(err)
			}
			return c
		})
	})
}

// below is the socket of a connection.
func below(c net.Conn) *net.TCPConn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return c.(*net.TCPConn)
}

// ways are the ways a client leaves.
var ways = map[string]func(c net.Conn){
	"by a close":                      func(c net.Conn) { c.Close() },
	"by a close of its socket":        func(c net.Conn) { below(c).Close() },
	"by a reset":                      func(c net.Conn) { below(c).SetLinger(0); below(c).Close() },
	"by a close behind a byte":        func(c net.Conn) { io.WriteString(c, "G"); c.Close() },
	"by a close behind many requests": func(c net.Conn) { io.WriteString(c, strings.Repeat(again, 2000)); c.Close() },
}

func TestEveryCheckOfAClientSeesItDisconnect(t *testing.T) {
	looks := map[string]func(r *Request) error{
		"Done": func(r *Request) error { <-r.Context().Done(); return r.Context().Err() },
		"Err": func(r *Request) error {
			ctx := r.Context()
			for ctx.Err() == nil {
				runtime.Gosched()
			}
			return ctx.Err()
		},
		"Watch": func(r *Request) error {
			left := make(chan struct{})
			r.Watch(func() { close(left) })
			<-left
			again := make(chan struct{})
			r.Watch(func() { close(again) }) // which is late
			<-again
			return r.Context().Err()
		},
		"Look": func(r *Request) error {
			for {
				if err := r.Look(); err == context.Canceled {
					return err
				}
				runtime.Gosched()
			}
		},
		"Settle": func(r *Request) error {
			for r.Settle() == nil {
				runtime.Gosched()
			}
			return r.Context().Err()
		},
	}
	both(t, func(t *testing.T, connect func(Handler) net.Conn) {
		for what, look := range looks {
			for how, leave := range ways {
				t.Run(what+" "+how, func(t *testing.T) {
					asked, seen := make(chan struct{}), make(chan error, 1)
					c := connect(HandlerFunc(func(r *Request) Answer {
						close(asked)
						seen <- look(r)
						return Answer{Status: 200, Close: true}
					}))
					send(t, c, again)
					<-asked
					leave(c)
					select {
					case err := <-seen:
						if err != context.Canceled {
							t.Errorf("it sees %v", err)
						}
					case <-time.After(10 * time.Second):
						t.Fatal("it does not see it")
					}
				})
			}
		}
	})
}

func TestAClientThatHalfClosesIsUnsureAndThenConnected(t *testing.T) {
	both(t, func(t *testing.T, connect func(Handler) net.Conn) {
		for name, half := range map[string]func(c net.Conn){
			"half of the connection": func(c net.Conn) { c.(interface{ CloseWrite() error }).CloseWrite() },
			"half of the socket":     func(c net.Conn) { below(c).CloseWrite() },
		} {
			t.Run(name, func(t *testing.T) {
				asked := make(chan struct{})
				c := connect(HandlerFunc(func(r *Request) Answer {
					done := r.Context().Done()
					asked <- struct{}{}
					await(t, "the half-close", func() bool {
						r.ctx.mu.Lock()
						defer r.ctx.mu.Unlock()
						return !r.ctx.probed.IsZero()
					})
					if err := r.Settle(); err != nil {
						t.Errorf("Settle says %v", err)
					}
					if err := r.Look(); err != nil {
						t.Errorf("Look says %v", err)
					}
					select {
					case <-done:
						t.Error("it is taken for gone")
					default:
					}
					return Answer{Status: 200, Body: []byte("there")}
				}))
				send(t, c, again)
				<-asked
				half(c)
				if resp, body := receive(t, bufio.NewReader(c), "GET"); resp.StatusCode != 200 || body != "there" {
					t.Errorf("got %d %s", resp.StatusCode, body)
				}
			})
		}
	})
}

// A client that takes nothing, acknowledgements of its system apart, is one of a network that drops everything.
func TestAClientThatNeverAcknowledgesHasDisconnectedAfterAWhile(t *testing.T) {
	c := newConn(&Server{}, memoryConn{})
	p := &c.req.ctx
	p.probed = time.Now().Add(-settleTime)
	if p.unsettled() || p.Err() != context.Canceled {
		t.Error("it is there still")
	}
}

func TestARequestThatArrivesWhileAClientIsWatchedIsServed(t *testing.T) {
	both(t, func(t *testing.T, connect func(Handler) net.Conn) {
		watching := make(chan struct{})
		c := connect(HandlerFunc(func(r *Request) Answer {
			body, err := r.Body(0)
			if err != nil {
				return ErrorAnswer(500, err.Error())
			}
			done := r.Context().Done()
			<-watching
			<-watching
			select {
			case <-done:
				return ErrorAnswer(500, "taken for gone")
			default:
			}
			return Answer{Status: 200, Body: append(r.Scratch(), body...)}
		}))
		b := bufio.NewReader(c)
		long := strings.Repeat("long ", 10_000) // more than is read ahead
		send(t, c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
		for range 20 {
			for _, next := range []string{"hello", long, "x"} {
				watching <- struct{}{}
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: "+strconv.Itoa(len(next))+"\r\n\r\n")
					io.WriteString(c, next[:1])
					io.WriteString(c, next[1:])
				}()
				watching <- struct{}{}
				resp, _ := receive(t, b, "POST")
				if resp.StatusCode != 200 {
					t.Fatalf("got %d", resp.StatusCode)
				}
				<-sent
			}
		}
		for range 2 {
			watching <- struct{}{}
		}
		if _, body := receive(t, b, "POST"); body != "x" {
			t.Errorf("the last one got %.100q", body)
		}
	})
}

func TestAShortRequestHasNoWatcher(t *testing.T) {
	var before int
	addr := start(t, &Server{Handler: HandlerFunc(func(r *Request) Answer {
		for range 10 {
			if err := r.Context().Err(); err != nil {
				t.Error(err)
			}
		}
		if r.Look() != nil || r.Settle() != nil {
			t.Error("the client is there")
		}
		if now := runtime.NumGoroutine(); before == 0 {
			before = now
		} else if now > before {
			t.Errorf("there are %d goroutines, and were %d", now, before)
		}
		return Answer{Status: 200}
	})})
	c := dial(t, addr)
	b := bufio.NewReader(c)
	for range 100 {
		send(t, c, again)
		receive(t, b, "GET")
	}
}

func TestAStreamOverTLSIsWokenAndEndsWithItsClient(t *testing.T) {
	for name, leave := range map[string]func(c net.Conn){
		"by a close":               func(c net.Conn) { c.Close() },
		"by a goodbye":             func(c net.Conn) { c.(*tls.Conn).CloseWrite() },
		"by a close of its socket": func(c net.Conn) { below(c).Close() },
		"by half of its socket":    func(c net.Conn) { below(c).CloseWrite() },
		"by a reset":               func(c net.Conn) { below(c).SetLinger(0); below(c).Close() },
	} {
		for after, chatter := range map[string]string{"": "", " behind a request": again, " behind many": strings.Repeat(again, 2000)} {
			t.Run(name+after, func(t *testing.T) {
				cert, pool := certificate(t)
				l := startLive(t, &Server{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}})
				c := tls.Client(dial(t, l.addr), &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"})
				send(t, c, again)
				w := <-l.opened
				b := bufio.NewReader(c)
				line(t, b, "hello\n")
				for range 100 {
					w.Wake()
					line(t, b, "woken\n")
				}
				if len(chatter) > maxAhead && name == "by a goodbye" {
					return // which is behind more than is read, and of which the socket says nothing
				}
				send(t, c, chatter) // the server does not answer that
				w.Wake()
				line(t, b, "woken\n")
				leave(c)
				if err := <-l.ended; err == nil {
					t.Error("the stream did not see its client go")
				}
			})
		}
	}
}
