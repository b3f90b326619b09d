package router

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"fenec/internal/http1"
)

const (
	// dialTimeout bounds the setup of a connection to a node, TLS included.
	dialTimeout = 5 * time.Second
	// maxKept bounds the idle connections to one node.
	maxKept = 512
)

// transport is shared by all connections to nodes.
type transport struct {
	dial    http1.Dialer
	silence time.Duration // how long a node may stay silent
	idle    time.Duration // how long a connection may stay idle
	most    int64         // target for the number of connections
	open    atomic.Int64  // number of connections
	reclaim func() bool   // closes an idle connection, and reports whether there was one
	back    func()        // is called when a node answers that did not before
}

// admit counts a connection before it is made, and closes idle ones while there are more than most.
func (t *transport) admit() {
	for t.open.Add(1) > t.most && t.reclaim() {
		t.open.Add(-1)
	}
}

// pool holds the idle connections to one node, the one used last on top: the warm ones are reused, the others age and are
// swept.
type pool struct {
	transport *transport
	link      *link
	mu        sync.Mutex
	kept      []*wire
	closed    bool
}

// take returns an idle connection that the node has not closed or written to meanwhile, nil if there is none.
func (p *pool) take() *wire {
	for {
		p.mu.Lock()
		n := len(p.kept)
		if n == 0 {
			p.mu.Unlock()
			return nil
		}
		w := p.kept[n-1]
		p.kept[n-1] = nil
		p.kept = p.kept[:n-1]
		p.mu.Unlock()
		if w.Fresh() {
			return w
		}
		w.close()
	}
}

// give returns a connection to the pool for the next request, or closes it.
func (p *pool) give(w *wire) {
	if !w.unwatch() || !w.Reusable() {
		w.close()
		return
	}
	w.rest()
	w.idleSince = time.Now()
	p.mu.Lock()
	if !p.closed && len(p.kept) < maxKept {
		p.kept = append(p.kept, w)
		w = nil
	}
	p.mu.Unlock()
	if w != nil {
		w.close()
	}
}

// dial opens a new connection.
func (p *pool) dial(ctx context.Context) (*wire, error) {
	ctx, cancel := context.WithTimeout(ctx, min(dialTimeout, p.transport.silence))
	defer cancel()
	t := p.transport
	t.admit()
	up, err := http1.Dial(ctx, t.dial, p.link.host, p.link.tls)
	if starved(err) && t.reclaim() {
		up, err = http1.Dial(ctx, t.dial, p.link.host, p.link.tls)
	}
	if err != nil {
		t.open.Add(-1)
		return nil, err
	}
	return newWire(up, t), nil
}

// starved reports whether an error means that the process, or the machine, has no descriptor left.
func starved(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }

// unusedSince returns the time since which the longest-idle connection has been idle.
func (p *pool) unusedSince() (since time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.kept) == 0 {
		return since, false
	}
	return p.kept[0].idleSince, true
}

// drop closes the longest-idle connection and reports whether there was one.
func (p *pool) drop() bool {
	p.mu.Lock()
	if len(p.kept) == 0 {
		p.mu.Unlock()
		return false
	}
	w := p.kept[0]
	p.kept = slices.Delete(p.kept, 0, 1)
	p.mu.Unlock()
	w.close()
	return true
}

// sweep closes the connections that have been idle for longer than transport.idle.
func (p *pool) sweep(now time.Time) {
	p.mu.Lock()
	old := 0
	for old < len(p.kept) && now.Sub(p.kept[old].idleSince) > p.transport.idle {
		old++
	}
	expired := append([]*wire(nil), p.kept[:old]...)
	p.kept = append(p.kept[:0], p.kept[old:]...)
	p.mu.Unlock()
	for _, w := range expired {
		w.close()
	}
}

// close closes every idle connection and keeps none from then on.
func (p *pool) close() {
	p.mu.Lock()
	kept := p.kept
	p.kept, p.closed = nil, true
	p.mu.Unlock()
	for _, w := range kept {
		w.close()
	}
}
