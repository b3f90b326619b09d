package http1

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

func TestShutdownClosesIdleConnectionsAtOnceAndFinishesRequests(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	s := &Server{Handler: HandlerFunc(func(r *Request) Answer {
		if string(r.Path) == "/slow" {
			close(asked)
			<-answer
		}
		return Answer{Status: 200, Body: []byte("done")}
	})}
	addr := start(t, s)
	idle, used, slow := dial(t, addr), dial(t, addr), dial(t, addr)
	await(t, "the connection", func() bool { return s.Connections() == 3 })
	send(t, used, again)
	usedReader := bufio.NewReader(used)
	receive(t, usedReader, "GET")
	send(t, slow, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	<-asked
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	<-s.Draining()
	for _, r := range []io.Reader{idle, usedReader} {
		if n, err := r.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("an idle connection goes on: %d, %v", n, err)
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("Shutdown did not wait: %v", err)
	default:
	}
	close(answer)
	if resp, body := receive(t, bufio.NewReader(slow), "GET"); body != "done" || !resp.Close {
		t.Errorf("got %q, close %v", body, resp.Close)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Errorf("a second Shutdown: %v", err)
	}
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	if err := s.Serve(l); err != ErrClosed {
		t.Errorf("Serve after Shutdown: %v", err)
	}
}

func TestShutdownEndsWhatIsLeftWithItsContext(t *testing.T) {
	asked := make(chan struct{}, 2)
	s := &Server{Handler: HandlerFunc(func(r *Request) Answer {
		asked <- struct{}{}
		if string(r.Path) == "/poll" {
			for r.Context().Err() == nil {
			}
		} else {
			<-r.Context().Done()
		}
		return Answer{Status: 200}
	})}
	addr := start(t, s)
	for _, path := range []string{"/wait", "/poll"} {
		send(t, dial(t, addr), "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
		<-asked
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(ctx) }()
	<-s.Draining()
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Errorf("Shutdown returned %v", err)
	}
}

func TestAHeadUnderWayIsServedDuringShutdown(t *testing.T) {
	s := &Server{Handler: echo}
	bubble(t, s, func(t *testing.T, dial func() net.Conn) {
		c := dial()
		io.WriteString(c, again[:10])
		synctest.Wait()
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(context.Background()) }()
		synctest.Wait()
		io.WriteString(c, again[10:])
		if resp, _ := receive(t, bufio.NewReader(c), "GET"); resp.StatusCode != 200 || !resp.Close {
			t.Errorf("got %d, close %v", resp.StatusCode, resp.Close)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestConnectionsPastTheCapAre503(t *testing.T) {
	s := &Server{Handler: echo, MaxConnections: 2}
	addr := start(t, s)
	kept := []*net.TCPConn{dial(t, addr), dial(t, addr)}
	await(t, "two connections", func() bool { return s.Connections() == 2 })
	for range 3 {
		c := dial(t, addr)
		send(t, c, again)
		b := bufio.NewReader(c)
		resp, body := receive(t, b, "GET")
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || !strings.Contains(body, `"retry_after":1}`) || !resp.Close {
			t.Errorf("got %d %s %v", resp.StatusCode, body, resp.Header)
		}
		if _, err := b.ReadByte(); err != io.EOF {
			t.Errorf("the connection goes on: %v", err)
		}
	}
	for _, c := range kept {
		send(t, c, again)
		receive(t, bufio.NewReader(c), "GET")
	}
	kept[0].Close()
	await(t, "room", func() bool { return s.Connections() == 1 })
	c := dial(t, addr)
	send(t, c, again)
	if resp, _ := receive(t, bufio.NewReader(c), "GET"); resp.StatusCode != 200 {
		t.Errorf("got %d once there is room", resp.StatusCode)
	}
}

// Many more connections than are refused at a time are each answered 503, though the others stay open.
func TestRefusedConnectionsMakeRoomForTheNext(t *testing.T) {
	s := &Server{Handler: echo, MaxConnections: 1, Refusals: 2}
	addr := start(t, s)
	first := dial(t, addr)
	send(t, first, again)
	receive(t, bufio.NewReader(first), "GET")
	began := time.Now()
	for range 12 {
		c := dial(t, addr)
		send(t, c, again)
		if resp, _ := receive(t, bufio.NewReader(c), "GET"); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" {
			t.Errorf("got %d %v", resp.StatusCode, resp.Header)
		}
		s.mu.Lock()
		refused := len(s.refused)
		s.mu.Unlock()
		if refused > 2 {
			t.Errorf("%d are being refused", refused)
		}
	}
	if took := time.Since(began); took > lingerTime*5 { // each of them alone takes lingerTime
		t.Errorf("it took %s", took)
	}
}

func TestARefusalOverTLSIsNotHeldUpByAHandshakeThatNeverEnds(t *testing.T) {
	cert, pool := certificate(t)
	addr := start(t, &Server{Handler: echo, MaxConnections: 1, Refusals: 1, TLS: &tls.Config{Certificates: []tls.Certificate{cert}}})
	connect := func() net.Conn {
		return tls.Client(dial(t, addr), &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"})
	}
	first := connect()
	send(t, first, again)
	receive(t, bufio.NewReader(first), "GET")
	dial(t, addr) // and sends nothing
	c := connect()
	began := time.Now()
	send(t, c, again)
	if resp, _ := receive(t, bufio.NewReader(c), "GET"); resp.StatusCode != 503 {
		t.Errorf("got %d", resp.StatusCode)
	}
	if took := time.Since(began); took > HandshakeTimeout/2 {
		t.Errorf("it took %s", took)
	}
}

func TestAShutdownDoesNotWaitForAPlaceToRefuse(t *testing.T) {
	s := &Server{Handler: echo, MaxConnections: 1, Refusals: 1}
	addr := start(t, s)
	for range 5 {
		dial(t, addr)
	}
	await(t, "one being refused", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.refused) == 1
	})
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// starved is a listener that is out of descriptors for its first accepts.
type starved struct {
	*pipes
	left  int
	times []time.Time
}

func (s *starved) Accept() (net.Conn, error) {
	if s.left > 0 {
		s.times = append(s.times, time.Now())
		s.left--
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return s.pipes.Accept()
}

func TestAcceptBacksOffWhileThereAreNoDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &starved{pipes: newPipes(), left: 12}
		s := &Server{Handler: echo, Log: zerolog.Nop()}
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(l) }()
		c := l.dial()
		io.WriteString(c, again)
		receive(t, bufio.NewReader(c), "GET")
		for i := 1; i < 12; i++ {
			want := min(5*time.Millisecond<<(i-1), time.Second)
			if got := l.times[i].Sub(l.times[i-1]); got != want {
				t.Errorf("pause %d was %v, want %v", i, got, want)
			}
		}
		s.Shutdown(context.Background())
		<-ended
	})
}

func TestAListenerThatBreaksEndsServe(t *testing.T) {
	broken := errors.New("broken")
	s := &Server{Handler: echo, Log: zerolog.Nop()}
	if err := s.Serve(brokenListener{newPipes(), broken}); err != broken {
		t.Errorf("Serve returned %v", err)
	}
}

type brokenListener struct {
	*pipes
	err error
}

func (b brokenListener) Accept() (net.Conn, error) { return nil, b.err }
