package http1

import (
	"bufio"
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// bubble serves over in-memory connections in virtual time.
func bubble(t *testing.T, s *Server, test func(t *testing.T, dial func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		s.Log = zerolog.Nop()
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(l) }()
		test(t, l.dial)
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != ErrClosed {
			t.Error(err)
		}
	})
}

// endOf reads a connection to its end and returns when that was.
func endOf(c net.Conn) (text string, took time.Duration) {
	began := time.Now()
	all, _ := io.ReadAll(c)
	return string(all), time.Since(began)
}

func TestASilentConnectionIsClosedWithoutAnAnswer(t *testing.T) {
	bubble(t, &Server{Handler: echo, IdleTimeout: 20 * time.Second}, func(t *testing.T, dial func() net.Conn) {
		if text, took := endOf(dial()); text != "" || took != 20*time.Second {
			t.Errorf("a new one: %q after %v", text, took)
		}
		c := dial()
		b := bufio.NewReader(c)
		for range 10 { // the deadline is not set for each of them
			io.WriteString(c, again)
			receive(t, b, "GET")
			time.Sleep(7 * time.Second)
		}
		if text, took := endOf(c); text != "" || took != 13*time.Second {
			t.Errorf("a used one: %q after %v", text, took)
		}
	})
}

func TestAHeadHasTenSecondsFromItsFirstByte(t *testing.T) {
	bubble(t, &Server{Handler: echo}, func(t *testing.T, dial func() net.Conn) {
		c := dial()
		time.Sleep(30 * time.Second) // of 60 it may be silent
		began := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for _, b := range []byte("GET / HTTP/1.1\r\nHost: a\r\n") {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		resp, body := receive(t, bufio.NewReader(c), "GET")
		if took := time.Since(began); resp.StatusCode != 408 || took != HeadTimeout {
			t.Errorf("got %d %s after %v", resp.StatusCode, body, took)
		}
		c.Close()
		<-done
	})
}

func TestAStalledBodyIs408(t *testing.T) {
	for _, path := range []string{"/", "/stream"} {
		bubble(t, &Server{Handler: digest}, func(t *testing.T, dial func() net.Conn) {
			c := dial()
			began := time.Now()
			io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
			resp, body := receive(t, bufio.NewReader(c), "GET")
			if took := time.Since(began); resp.StatusCode != 408 || took != BodyTimeout {
				t.Errorf("%s got %d %s after %v", path, resp.StatusCode, body, took)
			}
			c.Close()
		})
	}
}

func TestATricklingBodyIs408AndAnImageMayTakeItsTime(t *testing.T) {
	for path, status := range map[string]int{"/": 408, "/stream": 200} {
		bubble(t, &Server{Handler: digest}, func(t *testing.T, dial func() net.Conn) {
			c := dial()
			io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n")
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range 10 {
					time.Sleep(20 * time.Second)
					if _, err := c.Write([]byte("x")); err != nil {
						return
					}
				}
			}()
			if resp, body := receive(t, bufio.NewReader(c), "GET"); resp.StatusCode != status {
				t.Errorf("%s got %d %s", path, resp.StatusCode, body)
			}
			c.Close()
			<-done
		})
	}
}

// slowConn is a connection that records its write deadline.
type slowConn struct {
	net.Conn
	deadline time.Time
	written  int
}

func (c *slowConn) SetWriteDeadline(until time.Time) error { c.deadline = until; return nil }

func (c *slowConn) Write(p []byte) (int, error) {
	if c.deadline.IsZero() {
		return 0, io.ErrNoProgress
	}
	c.written += len(p)
	return len(p), nil
}

func TestAWriteLeavesNoDeadlineBehind(t *testing.T) {
	c := &slowConn{}
	var o outbound
	o.init(c)
	if err := o.write(make([]byte, 3*maxWrite)); err != nil || c.written != 3*maxWrite || !c.deadline.IsZero() {
		t.Errorf("wrote %d, %v, deadline %v", c.written, err, c.deadline)
	}
}

func TestAClientThatReadsNothingIsDisconnected(t *testing.T) {
	for _, path := range []string{"/large", "/chunks", "/length"} {
		bubble(t, &Server{Handler: anyStream}, func(t *testing.T, dial func() net.Conn) {
			c := dial()
			io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
			io.ReadFull(c, make([]byte, 10))
			began := time.Now()
			time.Sleep(WriteTimeout + time.Second)
			synctest.Wait()
			if n, err := io.Copy(io.Discard, c); n != 0 || time.Since(began) != WriteTimeout+time.Second {
				t.Errorf("%s: %d bytes more, %v", path, n, err)
			}
		})
	}
}
