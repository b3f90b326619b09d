package http1

import (
	"context"
	"errors"
	"io"
	"time"
)

const (
	// watchAfter is how long a request may call Err of its context before its client is watched.
	watchAfter = 50 * time.Millisecond
	// settleTime is how long a client that has closed its sending half may take to acknowledge the start of its answer.
	settleTime = time.Second
	// maxAhead bounds what is read past a request over TLS, where a client's close alert comes after what it has sent.
	maxAhead = 16 << 10
	// firstAhead is the first size of that buffer.
	firstAhead = 512
)

// ErrUnsure means that a client has closed its sending half and may or may not wait for its answer.
var ErrUnsure = errors.New("the client has closed its sending half, perhaps all of its connection")

// Watch has left called as soon as the client has disconnected, before the request has ended, by the goroutine that watches
// the connection; it calls left itself if the client has disconnected already. A second function replaces the first.
func (r *Request) Watch(left func()) {
	p := &r.ctx
	p.mu.Lock()
	p.left, p.wanted = left, true
	p.watchLocked()
	late := p.err != nil && (p.watch == nil || p.notified)
	p.mu.Unlock()
	if late {
		left()
	}
}

// Look reports whether the client is connected now: nil if it is, context.Canceled once it has disconnected, and ErrUnsure
// in between. It does not block.
func (r *Request) Look() error { return r.ctx.look() }

// Settle is Look that waits until the state is known: about one round trip. A client that does not acknowledge within a
// second has disconnected.
func (r *Request) Settle() error {
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		err := r.Look()
		if err != ErrUnsure {
			return err
		}
		if !r.ctx.unsettled() {
			return context.Canceled
		}
		time.Sleep(pause)
	}
}

// unsettled reports whether a client that is unsure still has time. After settleTime it counts as disconnected.
func (p *peer) unsettled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.probed) < settleTime {
		return true
	}
	p.failLocked()
	return false
}

func (p *peer) watchLocked() {
	if !p.wanted || p.watch != nil || p.reading || p.stopping || p.own || p.err != nil || p.conn.poller.socket == nil {
		return
	}
	p.watch = make(chan struct{})
	p.watched.Store(true)
	go p.wait(p.watch)
}

// wait is the watcher. A deadline that passes meanwhile is not its own, unless it must end.
func (p *peer) wait(ended chan<- struct{}) {
	defer close(ended)
	for p.waits() {
		err := p.event(func(uintptr) bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.checkLocked()
			return p.idleLocked()
		})
		if err != nil && !timedOut(err) {
			p.fail()
			break
		}
		p.conn.nc.SetReadDeadline(time.Time{})
	}
	p.mu.Lock()
	left, gone := p.left, p.err != nil
	p.notified = gone
	p.mu.Unlock()
	if gone && left != nil {
		left()
	}
}

// waits reports whether there is something to watch for.
func (p *peer) waits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.idleLocked()
}

func (p *peer) idleLocked() bool { return p.stopping || p.own || p.err != nil }

// event waits on the socket until look returns true or the deadline passes. Over TLS it reads ahead, because there a client
// may end its stream without closing its socket; past maxAhead it watches only the socket.
func (p *peer) event(look func(fd uintptr) bool) error {
	if p.conn.raw != nil || p.ended || len(p.ahead) >= maxAhead {
		return p.conn.poller.socket.Read(look)
	}
	if len(p.ahead) == cap(p.ahead) {
		p.ahead = append(make([]byte, 0, max(firstAhead, 2*len(p.ahead))), p.ahead...)
	}
	n, err := p.conn.nc.Read(p.ahead[len(p.ahead):cap(p.ahead)])
	p.ahead = p.ahead[:len(p.ahead)+n]
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
		p.mu.Lock()
		p.ended = true
		p.endedLocked()
		p.mu.Unlock()
	}
	return err
}

// keep has the stream watch its client on its own goroutine, and ends the watcher if there is one.
func (p *peer) keep() {
	p.mu.Lock()
	p.own = true
	watch := p.watch
	p.watch = nil
	p.watched.Store(false)
	p.mu.Unlock()
	p.join(watch)
}

// end stops the watcher at the end of the request.
func (p *peer) end() {
	p.mu.Lock()
	p.stopping = true
	watch := p.watch
	p.mu.Unlock()
	p.join(watch)
	p.conn.push(p.ahead)
	p.ahead = nil
}

// join waits until a watcher that must end has ended.
func (p *peer) join(watch <-chan struct{}) {
	if watch == nil {
		return
	}
	p.conn.wake()
	<-watch
	p.conn.armed = time.Time{}
}
