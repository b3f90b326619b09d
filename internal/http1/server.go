package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Handler serves the requests of each connection one after the other; different
// connections call it concurrently. A panic in it is answered 500 and logged.
type Handler interface{ Serve(r *Request) Answer }

// HandlerFunc is a function as a Handler.
type HandlerFunc func(r *Request) Answer

// Serve implements Handler.
func (f HandlerFunc) Serve(r *Request) Answer { return f(r) }

// Server serves HTTP/1.1 connections. Its fields are set before Serve.
type Server struct {
	Handler        Handler
	MaxConnections int           // past it a connection is answered 503; 0 is no cap
	Refusals       int           // connections that are being refused at a time; 0 is 64
	IdleTimeout    time.Duration // of a connection between requests; 0 is DefaultIdleTimeout
	TLS            *tls.Config   // nil serves plain
	Log            zerolog.Logger

	// Bodies bounds the bodies held in memory, without small ones; nil for no bound.
	Bodies *Budget

	// Trusts reports whether a request comes from a router, which has added header
	// lines; nil trusts none.
	Trusts func(r *Request) bool

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	once      sync.Once
	drain     chan struct{}
	secure    *tls.Config // TLS with HTTP/1.1 as the only protocol

	draining atomic.Bool
	stopped  atomic.Bool
	open     atomic.Int64
	work     sync.WaitGroup

	refusals chan struct{} // has an element for each connection that is being refused
	refused  map[*conn]struct{}
}

// ErrClosed is returned by Serve after Shutdown.
var ErrClosed = errors.New("the server is closed")

func (s *Server) init() {
	s.once.Do(func() {
		s.drain = make(chan struct{})
		s.listeners = map[net.Listener]struct{}{}
		s.conns = map[*conn]struct{}{}
		if s.Refusals <= 0 {
			s.Refusals = maxRefusals
		}
		s.refusals = make(chan struct{}, s.Refusals)
		s.refused = map[*conn]struct{}{}
		if s.TLS != nil {
			s.secure = s.TLS.Clone()
			s.secure.NextProtos = []string{"http/1.1"}
		}
	})
}

func (s *Server) idle() time.Duration {
	if s.IdleTimeout > 0 {
		return s.IdleTimeout
	}
	return DefaultIdleTimeout
}

// Draining returns a channel that is closed when Shutdown begins, so that streams end.
func (s *Server) Draining() <-chan struct{} {
	s.init()
	return s.drain
}

// Connections returns how many connections are being served.
func (s *Server) Connections() int { return int(s.open.Load()) }

// Serve accepts connections until Shutdown, which closes the listener, and then
// returns ErrClosed. Running out of descriptors does not end it.
func (s *Server) Serve(l net.Listener) error {
	s.init()
	defer l.Close()
	s.mu.Lock()
	if s.draining.Load() {
		s.mu.Unlock()
		return ErrClosed
	}
	s.listeners[l] = struct{}{}
	s.work.Add(1)
	s.mu.Unlock()
	defer s.work.Done()
	var pause time.Duration
	for {
		nc, err := l.Accept()
		if err == nil {
			pause = 0
			s.take(nc)
			continue
		}
		if s.draining.Load() {
			return ErrClosed
		}
		if !temporary(err) {
			s.mu.Lock()
			delete(s.listeners, l)
			s.mu.Unlock()
			return err
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.Log.Warn().Err(err).Dur("pause", pause).Msg("a connection could not be accepted")
		select {
		case <-time.After(pause):
		case <-s.drain:
		}
	}
}

// take starts serving a connection, or refuses it.
func (s *Server) take(nc net.Conn) {
	if n := s.open.Add(1); s.MaxConnections > 0 && n > int64(s.MaxConnections) {
		s.open.Add(-1)
		s.refuse(nc)
		return
	}
	if c := s.begin(nc); c != nil {
		go s.run(c)
	} else {
		s.open.Add(-1)
	}
}

// begin registers a connection. If the server is closing, it closes the connection and returns nil.
func (s *Server) begin(nc net.Conn) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		nc.Close()
		return nil
	}
	c := newConn(s, s.secured(newSocket(nc)))
	s.conns[c] = struct{}{}
	s.work.Add(1)
	return c
}

func (s *Server) secured(nc net.Conn) net.Conn {
	if s.secure == nil {
		return nc
	}
	return tls.Server(nc, s.secure)
}

// refuse answers 503 to a connection past the cap, on a goroutine of its own. While Refusals connections are being refused,
// it waits, and they must end within refusalGrace.
func (s *Server) refuse(nc net.Conn) {
	select {
	case s.refusals <- struct{}{}:
	default:
		s.limitRefusals()
		select {
		case s.refusals <- struct{}{}:
		case <-s.drain:
			nc.Close()
			return
		}
	}
	c := s.begin(nc)
	if c == nil {
		<-s.refusals
		return
	}
	s.mu.Lock()
	s.refused[c] = struct{}{}
	s.mu.Unlock()
	go func() {
		defer s.work.Done()
		defer func() { <-s.refusals }()
		defer s.forget(c)
		c.turnAway()
	}()
}

// limitRefusals has the connections that are being refused end within refusalGrace.
func (s *Server) limitRefusals() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.refused {
		c.endBy(time.Now().Add(refusalGrace))
	}
}

func (s *Server) run(c *conn) {
	defer s.work.Done()
	defer s.open.Add(-1)
	defer s.forget(c)
	if c.handshake() {
		c.serve()
	}
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	delete(s.refused, c)
	s.mu.Unlock()
	c.nc.Close()
}

// Shutdown closes the listeners and the idle connections and waits for the
// requests under way, whose connections close after their answers. When ctx ends,
// it closes the connections that are left and returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.init()
	s.mu.Lock()
	if s.draining.CompareAndSwap(false, true) {
		close(s.drain)
	}
	for l := range s.listeners {
		l.Close()
		delete(s.listeners, l)
	}
	for c := range s.conns {
		c.wake()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.stopped.Store(true)
	s.mu.Lock()
	for c := range s.conns {
		c.req.ctx.fail()
		c.nc.Close()
	}
	s.mu.Unlock()
	<-done
	return ctx.Err()
}
