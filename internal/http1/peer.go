package http1

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// peer is a request's context: what is known of the client at the other end.
type peer struct {
	conn *conn

	mu       sync.Mutex
	err      error
	done     chan struct{} // made by the first Done, closed as err is set
	watch    chan struct{} // closed as the watcher ends; nil without one
	stopping atomic.Bool   // the watcher is to end
	stream   atomic.Bool   // a stream runs: closing the sending half is leaving
	checked  atomic.Int64  // when the socket was last looked at, in ns since the connection began
	probed   bool          // the head's first bytes went out to see whether anyone is there
}

var _ context.Context = (*peer)(nil)

func (p *peer) Deadline() (time.Time, bool) { return time.Time{}, false }
func (p *peer) Value(any) any               { return nil }

// Err looks at the socket now and then.
func (p *peer) Err() error {
	now := int64(time.Since(p.conn.began))
	if last := p.checked.Load(); now-last >= int64(probeInterval) && p.checked.CompareAndSwap(last, now) {
		p.check()
	}
	if p.conn.server.stopped.Load() {
		p.fail()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *peer) fail() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = context.Canceled
		if p.done != nil {
			close(p.done)
		}
	}
}

// check looks at the socket and draws the conclusion.
func (p *peer) check() {
	raw := p.conn.raw
	if raw == nil {
		return
	}
	reset, ended := look(raw)
	switch {
	case reset, ended && p.stream.Load():
		p.fail()
	case ended:
		p.probe()
	}
}

// probe sends the first bytes any answer begins with to a client that has
// closed its sending half: one that waits for the answer takes them, one that
// is gone resets the connection, which the next look sees.
func (p *peer) probe() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.probed || p.stream.Load() {
		return
	}
	p.probed = true
	p.conn.probe()
}

// Done starts a watcher that waits on the socket until the client is gone.
func (p *peer) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done != nil {
		return p.done
	}
	p.done = make(chan struct{})
	if p.err != nil {
		close(p.done)
		return p.done
	}
	if p.conn.raw != nil {
		p.watch = make(chan struct{})
		go p.wait(p.watch)
	}
	return p.done
}

// wait is the watcher: every edge on the socket is looked at.
func (p *peer) wait(ended chan<- struct{}) {
	defer close(ended)
	p.conn.raw.Read(func(uintptr) bool {
		if !p.stopping.Load() {
			p.check()
		}
		return p.stopping.Load() || p.failed()
	})
}

func (p *peer) failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil
}

// end stops the watcher: the request is over.
func (p *peer) end() {
	p.mu.Lock()
	watch := p.watch
	p.mu.Unlock()
	if watch == nil {
		return
	}
	p.stopping.Store(true)
	p.conn.wake()
	<-watch
	p.conn.armed = time.Time{}
}

// reset makes the context ready for the connection's next request.
func (p *peer) reset() {
	p.mu.Lock()
	p.err, p.done, p.watch, p.probed = nil, nil, nil, false
	p.mu.Unlock()
	p.stopping.Store(false)
	p.stream.Store(false)
}
