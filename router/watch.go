package router

import (
	"errors"
	"sync"

	"fenec/internal/http1"
)

var (
	errClientGone = errors.New("the client is gone")
	errStopping   = errors.New("the router is stopping")
)

// watch ends an exchange with a node as soon as nobody waits for it any more: its client has left, or the router stops
// and the exchange is one that asked to be held. The connection to the node is aborted, which the node sees at once.
type watch struct {
	mu   sync.Mutex
	wire *wire // the exchange's connection; nil before it has one and once it has let go of it
	why  error
}

// newWatch watches the client of a request until the request has ended.
func newWatch(r *http1.Request) *watch {
	wa := &watch{}
	r.Watch(func() { wa.end(errClientGone) })
	return wa
}

// end ends the exchange; the first reason counts.
func (wa *watch) end(why error) {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	if wa.why != nil {
		return
	}
	wa.why = why
	if wa.wire != nil {
		wa.wire.Abort()
	}
}

// over has the exchange go on over a connection, nil for none from now on. It reports whether the exchange goes on; where
// it does not, the connection is of no more use.
func (wa *watch) over(w *wire) bool {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	wa.wire = w
	if wa.why != nil && w != nil {
		w.Abort()
	}
	return wa.why == nil
}

func (wa *watch) ended() error {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	return wa.why
}

// held is the watches on exchanges that may take as long as they like, which a router that stops ends.
type held struct {
	mu      sync.Mutex
	stopped bool
	open    map[*watch]struct{}
}

func (h *held) add(wa *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		wa.end(errStopping)
		return
	}
	if h.open == nil {
		h.open = map[*watch]struct{}{}
	}
	h.open[wa] = struct{}{}
}

func (h *held) remove(wa *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, wa)
}

// stop ends them all, and those to come.
func (h *held) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	for wa := range h.open {
		wa.end(errStopping)
	}
}
