package http1

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// peer is a request's context: what is known of the client at the other end.
//
// A client leaves by resetting its connection, or by closing it, which looks at first like closing the sending half
// alone. Such a client is sent the first bytes any answer begins with: one that waits for the answer takes them, one that
// is gone resets the connection.
type peer struct {
	conn    *conn
	over    atomic.Bool  // err is set
	watched atomic.Bool  // a watcher runs, so nobody else need look
	asked   atomic.Int64 // when Err was first asked, in ns since the connection began; 0 before

	mu       sync.Mutex
	err      error
	done     chan struct{} // made by the first Done, closed as err is set
	left     func()        // called by the watcher after err is set
	told     bool          // it has been, or would have been
	wanted   bool          // there is to be a watcher
	watch    chan struct{} // closed as the watcher ends; nil without one
	reading  bool          // the body is not read yet: the socket is its reader's
	stopping bool          // the watcher is to end
	own      bool          // the stream waits for its client by itself
	stream   bool          // a stream runs: closing the sending half is leaving
	sealed   bool          // the answer is being written: no more probes
	probed   time.Time     // when answerStart went out to see whether anyone is there; zero before
	sent     int           // how much of it
	taken    bool          // the client has taken it: it waits for the answer

	ahead []byte // what was read past the request to see its client leave; the watcher's while one runs
	ended bool   // nothing comes after ahead
}

// answerStart is what every answer begins with.
const answerStart = "HTTP/1.1 "

var _ context.Context = (*peer)(nil)

func (p *peer) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value returns the request's id for a key that has a method RequestID: so packages ask for it, for their logs, that know
// nothing of requests.
func (p *peer) Value(key any) any {
	if _, ok := key.(interface{ RequestID() }); ok {
		return p.conn.req.ID
	}
	return nil
}

// Err starts a watcher once it is asked for longer than watchAfter, so that a short request has none.
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
	p.asked.Store(now) // while there is no watcher, the socket is looked at as often as this
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

// fail tells the context that its client, or the server, is gone.
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

// checkLocked looks at the socket and draws the conclusion.
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

// endedLocked is told that the client has closed its sending half.
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
		p.checkLocked() // the reset may be there already
	}
}

// look reports whether the client is there, from the socket as it is now.
func (p *peer) look() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checkLocked()
	switch {
	case p.err != nil:
		return p.err
	case p.probed.IsZero() || p.taken:
		return nil
	case p.conn.poller.untaken():
		return ErrUnsure
	}
	p.taken = true
	return nil
}

// quiet reports whether the client has sent nothing that was not read, nor
// closed its sending half.
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
	p.err, p.done, p.left, p.told, p.watch = nil, nil, nil, false, nil
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

// bodyEnded lets a watcher have the socket.
func (p *peer) bodyEnded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reading {
		p.reading = false
		p.watchLocked()
	}
}

// seal ends probing, as the answer is about to be written, and reports
// how much of its start went out already.
func (p *peer) seal() (sent int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sealed = true
	return p.sent
}

// invite sends a 100 Continue, unless the client has closed its sending half:
// then no more of the body will come.
func (p *peer) invite() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.probed.IsZero() {
		return nil
	}
	return p.conn.write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
}

// streaming begins a stream, which a client leaves by closing its sending half.
func (p *peer) streaming() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stream = true
	if p.checkLocked(); p.ended {
		p.failLocked()
	}
}
