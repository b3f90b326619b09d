package http1

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// peer is a request's context: the state of its client.
//
// A client disconnects by resetting its connection, or by closing it, which at first looks the same as closing only the
// sending half. The server sends such a client the first bytes of every answer: a client that waits for the answer
// acknowledges them, one that is gone resets the connection.
type peer struct {
	conn    *conn
	over    atomic.Bool  // err is set
	watched atomic.Bool  // a watcher runs, so Err need not check the socket
	asked   atomic.Int64 // when Err was first called, in ns since the connection began; 0 before

	mu       sync.Mutex
	err      error
	done     chan struct{} // made by the first Done, closed when err is set
	left     func()        // called by the watcher after err is set
	notified bool          // left was called, or would have been
	wanted   bool          // a watcher is wanted
	watch    chan struct{} // closed when the watcher ends; nil without one
	reading  bool          // the body is not read yet: only its reader may use the socket
	stopping bool          // the watcher must end
	own      bool          // the stream watches its client itself
	stream   bool          // a stream runs: a client that closes its sending half has disconnected
	sealed   bool          // the answer is being written: no more probes
	probed   time.Time     // when answerStart was sent to probe the client; zero before
	sent     int           // how many bytes of it
	taken    bool          // the client has acknowledged it: it waits for the answer

	ahead []byte // bytes read past the request while watching the client; owned by the watcher while one runs
	ended bool   // the client sends nothing after ahead
}

// answerStart is what every answer begins with.
const answerStart = "HTTP/1.1 "

var _ context.Context = (*peer)(nil)

func (p *peer) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value returns the request's id for a key that has a method RequestID. Packages that do not know requests use it for their
// logs.
func (p *peer) Value(key any) any {
	if _, ok := key.(interface{ RequestID() }); ok {
		return p.conn.req.ID
	}
	return nil
}

// Err starts a watcher once its first call is watchAfter ago, so that a short request has none.
func (p *peer) Err() error {
	switch {
	case p.over.Load():
		return context.Canceled
	case p.watched.Load():
		return nil
	}
	now := int64(time.Since(p.conn.began))
	first := p.asked.Load()
	switch {
	case first == 0:
		p.asked.Store(max(now, 1))
		return nil
	case now-first < int64(watchAfter):
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked.Store(now) // without a watcher, the socket is checked once in watchAfter
	p.wanted = true
	p.checkLocked()
	p.watchLocked()
	return p.err
}

// Done starts a watcher, once the body has been read.
func (p *peer) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		p.done = make(chan struct{})
		if p.err != nil {
			close(p.done)
		}
	}
	p.wanted = true
	p.watchLocked()
	return p.done
}

// fail cancels the context: its client has disconnected, or the server stops.
func (p *peer) fail() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failLocked()
}

func (p *peer) failLocked() {
	if p.err != nil {
		return
	}
	p.err = context.Canceled
	p.over.Store(true)
	if p.done != nil {
		close(p.done)
	}
	if p.watch != nil {
		p.conn.wake() // the watcher ends
	}
}

// checkLocked checks the socket and updates the client's state.
func (p *peer) checkLocked() {
	if p.conn.poller.socket == nil || p.err != nil {
		return
	}
	switch reset, ended := p.conn.poller.look(); {
	case reset:
		p.failLocked()
	case ended:
		p.endedLocked()
	}
}

// endedLocked handles that the client has closed its sending half.
func (p *peer) endedLocked() {
	switch {
	case p.stream:
		p.failLocked()
	case !p.sealed && p.probed.IsZero():
		p.probed = time.Now()
		var err error
		if p.sent, err = p.conn.probe([]byte(answerStart)); err != nil {
			p.failLocked()
			return
		}
		p.checkLocked() // the reset may have arrived already
	}
}

// look reports whether the client is connected, from the current state of the socket.
func (p *peer) look() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checkLocked()
	switch {
	case p.err != nil:
		return p.err
	case p.probed.IsZero() || p.taken:
		return nil
	case p.conn.poller.unacknowledged():
		return ErrUnsure
	}
	p.taken = true
	return nil
}

// quiet reports whether the client has sent nothing unread and has not closed
// its sending half.
func (p *peer) quiet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn.poller.quiet()
}

// reset makes the context ready for the connection's next request.
func (p *peer) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watched.Store(false)
	p.asked.Store(0)
	p.err, p.done, p.left, p.notified, p.watch = nil, nil, nil, false, nil
	p.wanted, p.reading, p.stopping, p.own, p.stream, p.sealed = false, false, false, false, false, false
	p.probed, p.sent, p.taken, p.ahead, p.ended = time.Time{}, 0, false, nil, false
	stopped := p.conn.server.stopped.Load()
	if p.over.Store(stopped); stopped {
		p.err = context.Canceled
	}
}

// bodyBegins keeps a watcher off the socket until bodyEnded.
func (p *peer) bodyBegins() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading = true
}

// bodyEnded allows a watcher to use the socket.
func (p *peer) bodyEnded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reading {
		p.reading = false
		p.watchLocked()
	}
}

// seal ends probing before the answer is written, and returns how many bytes of
// its start were sent already.
func (p *peer) seal() (sent int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sealed = true
	return p.sent
}

// invite sends a 100 Continue, unless the client has closed its sending half and
// will send no more of the body.
func (p *peer) invite() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.probed.IsZero() {
		return nil
	}
	return p.conn.write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
}

// streaming begins a stream. Its client disconnects by closing its sending half.
func (p *peer) streaming() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stream = true
	if p.checkLocked(); p.ended {
		p.failLocked()
	}
}
