package http1

import (
	"bufio"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// live serves streams that write a line for each wake and end when their client disconnects or the test ends them.
type live struct {
	addr   string
	opened chan *Writer
	ended  chan error
}

func startLive(t *testing.T, s *Server) *live {
	l := &live{opened: make(chan *Writer), ended: make(chan error, 1)}
	s.Handler = HandlerFunc(func(r *Request) Answer {
		return Answer{Status: 200, Apart: true, Close: true, Stream: func(w *Writer) error {
			w.WriteString("hello\n")
			w.Flush()
			l.opened <- w
			for {
				if err := w.Wait(time.Now().Add(time.Hour)); err != nil {
					l.ended <- err
					return nil
				}
				w.WriteString("woken\n")
				if err := w.Flush(); err != nil {
					l.ended <- err
					return err
				}
			}
		}}
	})
	l.addr = start(t, s)
	return l
}

// line reads up to the next line of the stream, past what frames it.
func line(t *testing.T, b *bufio.Reader, want string) {
	t.Helper()
	for got := ""; got != want; {
		var err error
		if got, err = b.ReadString('\n'); err != nil {
			t.Fatalf("no %q: %v", want, err)
		}
	}
}

func TestAWaitingStreamIsWokenAndSeesItsClientDisconnect(t *testing.T) {
	for name, leave := range map[string]func(*net.TCPConn){
		"by a reset":      func(c *net.TCPConn) { c.SetLinger(0); c.Close() },
		"by a close":      func(c *net.TCPConn) { c.Close() },
		"by a half-close": func(c *net.TCPConn) { c.CloseWrite() },
	} {
		t.Run(name, func(t *testing.T) {
			l := startLive(t, &Server{})
			before := runtime.NumGoroutine()
			c := dial(t, l.addr)
			send(t, c, again)
			w := <-l.opened
			b := bufio.NewReader(c)
			line(t, b, "hello\n")
			if now := runtime.NumGoroutine(); now > before+1 {
				t.Errorf("a stream has %d goroutines", now-before)
			}
			for range 100 {
				w.Wake()
				line(t, b, "woken\n")
			}
			send(t, c, again+"and what is no request at all") // the server does not read that
			w.Wake()
			line(t, b, "woken\n")
			leave(c)
			if err := <-l.ended; err == nil {
				t.Error("the stream did not see its client go")
			}
		})
	}
}

func TestAStreamsConnectionEndsWithItAndNoRequestBehindIsServed(t *testing.T) {
	s := &Server{Handler: HandlerFunc(func(r *Request) Answer {
		return Answer{Status: 200, Close: true, Stream: func(w *Writer) error {
			w.WriteString("all\n")
			return w.Wait(time.Now())
		}}
	})}
	c := dial(t, start(t, s))
	send(t, c, again+again)
	all, err := io.ReadAll(c)
	if err != nil || strings.Count(string(all), "HTTP/1.1 200") != 1 || !strings.HasSuffix(string(all), "\r\n0\r\n\r\n") {
		t.Errorf("got %q, %v", all, err)
	}
}

func TestStreamsApartAreNotCountedAmongTheConnections(t *testing.T) {
	l := startLive(t, &Server{MaxConnections: 1})
	var streams []*net.TCPConn
	for range 3 {
		c := dial(t, l.addr)
		send(t, c, again)
		<-l.opened
		streams = append(streams, c)
	}
	for _, c := range streams {
		c.Close()
		if err := <-l.ended; err == nil {
			t.Error("a stream did not end")
		}
	}
}

func TestAHurriedStreamDoesNotWaitForASlowClient(t *testing.T) {
	for name, early := range map[string]bool{"in the middle of a write": false, "before any": true} {
		t.Run(name, func(t *testing.T) {
			ended, opened := make(chan error, 1), make(chan *Writer, 1)
			s := &Server{Handler: HandlerFunc(func(r *Request) Answer {
				return Answer{Status: 200, Stream: func(w *Writer) error {
					opened <- w
					for {
						if _, err := w.WriteString(long); err != nil {
							ended <- err
							return err
						}
					}
				}}
			})}
			c := dial(t, start(t, s))
			send(t, c, again)
			w := <-opened
			if !early {
				io.ReadFull(c, make([]byte, 8<<20)) // by now it has waited
			}
			w.Shutdown(10 * time.Millisecond)
			if err := <-ended; !timedOut(err) {
				t.Errorf("the stream ended with %v", err)
			}
		})
	}
}

func TestAStreamWaitsUntilItsTime(t *testing.T) {
	var waited time.Duration
	s := &Server{Handler: HandlerFunc(func(r *Request) Answer {
		return Answer{Status: 200, Close: true, Stream: func(w *Writer) error {
			began := time.Now()
			err := w.Wait(began.Add(15 * time.Second))
			waited = time.Since(began)
			return err
		}}
	})}
	bubble(t, s, func(t *testing.T, dial func() net.Conn) {
		c := dial()
		go io.WriteString(c, again)
		io.ReadAll(c)
		synctest.Wait()
		if waited != 15*time.Second {
			t.Errorf("it waited %v", waited)
		}
	})
}
