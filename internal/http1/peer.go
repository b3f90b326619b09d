package http1

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// answerStart is what every answer begins with.
const answerStart = "HTTP/1.1 "

// peer is a request's context: what is known of the client at the other end.
type peer struct {
	conn    *conn
	checked atomic.Int64 // when the socket was last looked at, in ns since the connection began

	mu       sync.Mutex
	err      error
	done     chan struct{} // made by the first Done, closed as err is set
	watch    chan struct{} // closed as the watcher ends; nil without one
	reading  bool          // the body is not read yet: the socket is its reader's
	stopping bool          // the watcher is to end
	stream   bool          // a stream runs: closing the sending half is leaving
	sealed   bool          // the answer is being written: no more probes
	probed   bool          // answerStart went out to see whether anyone is there
	sent     int           // how much of it
}

var _ context.Context = (*peer)(nil)

func (p *peer) Deadline() (time.Time, bool) { return time.Time{}, false }
func (p *peer) Value(any) any               { return nil }

// Err looks at the socket now and then.
func (p *peer) Err() error {
	now := int64(time.Since(p.conn.began))
	look := false
	if last := p.checked.Load(); now-last >= int64(probeInterval) {
		look = p.checked.CompareAndSwap(last, now)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if look {
		p.checkLocked()
	}
	return p.err
}

// Done starts a watcher, once the body has been read, that waits on the socket
// until the client is gone.
func (p *peer) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		p.done = make(chan struct{})
		if p.err != nil {
			close(p.done)
		}
		p.watchLocked()
	}
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
	if p.done != nil {
		close(p.done)
	}
}

// checkLocked looks at the socket and draws the conclusion. A client that has
// closed its sending half is sent the first bytes any answer begins with: one
// that waits for the answer takes them, one that is gone resets the connection,
// which the next look sees.
func (p *peer) checkLocked() {
	if p.conn.poller.socket == nil || p.err != nil {
		return
	}
	switch reset, ended := p.conn.poller.look(); {
	case reset, ended && p.stream:
		p.failLocked()
	case ended && !p.sealed && !p.probed && p.conn.outbound.raw != nil:
		p.probed = true
		p.sent, _ = p.conn.writeNow([]byte(answerStart))
	}
}

func (p *peer) watchLocked() {
	if p.done == nil || p.watch != nil || p.reading || p.stopping || p.err != nil || p.conn.poller.socket == nil {
		return
	}
	p.watch = make(chan struct{})
	go p.wait(p.watch)
}

// wait is the watcher: at every edge on the socket it looks. A deadline that
// passes meanwhile is none of its own, unless end has set it.
func (p *peer) wait(ended chan<- struct{}) {
	defer close(ended)
	over := false
	for !over {
		err := p.conn.poller.socket.Read(func(uintptr) bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.checkLocked()
			over = p.stopping || p.err != nil
			return over
		})
		if err != nil && !timedOut(err) {
			p.fail()
			return
		}
		p.conn.nc.SetReadDeadline(time.Time{})
		p.mu.Lock()
		over = over || p.stopping
		p.mu.Unlock()
	}
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
	p.err, p.done, p.watch = nil, nil, nil
	p.reading, p.stopping, p.stream, p.sealed, p.probed, p.sent = false, false, false, false, false, 0
	if p.conn.server.stopped.Load() {
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
	if p.probed {
		return nil
	}
	return p.conn.write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
}

// streaming begins a stream, which a client leaves by closing its sending half.
func (p *peer) streaming() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stream = true
	p.checkLocked()
}

// end stops the watcher: the request is over.
func (p *peer) end() {
	p.mu.Lock()
	p.stopping = true
	watch := p.watch
	p.mu.Unlock()
	if watch == nil {
		return
	}
	p.conn.wake()
	<-watch
	p.conn.armed = time.Time{}
}
