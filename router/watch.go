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

// watch ends an exchange with a node as soon as no client waits for it: the client has disconnected, or the router stops
// and the exchange asked to be held. The connection to the node is aborted, which the node sees at once.
type watch struct {
	mu   sync.Mutex
	wire *wire // the exchange's connection; nil before it has one and after it has released it
	why  error
}

// newWatch watches the client of a request until the request ends.
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

// over sets the exchange's connection, nil for none. It reports whether the exchange continues; if not, the connection has
// been aborted.
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

// held holds the watches on exchanges without a time limit, which end when the router stops.
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

// stop ends them all, and those added later.
func (h *held) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	for wa := range h.open {
		wa.end(errStopping)
	}
}
