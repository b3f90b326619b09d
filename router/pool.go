package router

import (
	"context"
	"sync"
	"time"

	"fenec/internal/http1"
)

const (
	// dialTimeout is how long a connection to a node may take to come about, TLS included.
	dialTimeout = 5 * time.Second
	// maxKept bounds the unused connections kept to one node.
	maxKept = 512
)

// transport is what all connections to nodes share.
type transport struct {
	silence time.Duration // a node's longest silence
	idle    time.Duration // how long a connection is kept unused
}

// pool keeps the unused connections to one node, the one used last on top: the warm ones do the work, the others age
// and are swept.
type pool struct {
	transport *transport
	link      *link
	mu        sync.Mutex
	kept      []*wire
	closed    bool
}

// take gives a kept connection that the node has not closed or written to meanwhile, nil where there is none.
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

// give keeps a connection for the next request, or closes it.
func (p *pool) give(w *wire) {
	if !w.letGo() || !w.Reusable() {
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

// dial makes a fresh connection.
func (p *pool) dial(ctx context.Context) (*wire, error) {
	ctx, cancel := context.WithTimeout(ctx, min(dialTimeout, p.transport.silence))
	defer cancel()
	up, err := http1.Dial(ctx, "tcp", p.link.host, p.link.tls)
	if err != nil {
		return nil, err
	}
	return newWire(up), nil
}

// sweep closes what has been unused for longer than the transport keeps it.
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

// close closes every kept connection and keeps none from now on.
func (p *pool) close() {
	p.mu.Lock()
	kept := p.kept
	p.kept, p.closed = nil, true
	p.mu.Unlock()
	for _, w := range kept {
		w.close()
	}
}
