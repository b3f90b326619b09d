package router

import (
	"bytes"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"fenec/internal/http1"
)

const (
	// keptBuffer is the most a connection to a node holds on to between requests.
	keptBuffer = 64 << 10
	// joinedBody is the longest body that is copied beside its head, so that both go out in one piece.
	joinedBody = 32 << 10
	// watchAfter is how long a node may take over an answer before the client that waits for it is watched: the quick
	// answers cost no watching.
	watchAfter = 5 * time.Millisecond
)

// wire is a connection to a node with what the router reuses along with it. One request at a time has it.
type wire struct {
	*http1.Upstream
	transport *transport
	closed    atomic.Bool
	out       []byte // the request being made
	hops      bool   // the answer being passed back has headers that end here
	idleSince time.Time
	client    *http1.Request // whose request is under way, nil for the router's own
	watch     *watch         // of that client, nil while it is not watched
	late      func()         // watches that client; made once
}

func newWire(up *http1.Upstream, t *transport) *wire {
	w := &wire{Upstream: up, transport: t}
	w.late = func() {
		w.watch = newWatch(w.client)
		w.watch.over(w) // where it has ended, the connection has too
	}
	return w
}

// serve says for whom the connection is used from now on: a client, with the watch on it if there is one, or the router
// itself. It reports whether the client is there.
func (w *wire) serve(client *http1.Request, on *watch, now time.Time) bool {
	w.client, w.watch = client, on
	switch {
	case on != nil:
		w.Late(time.Time{}, nil)
		return on.over(w)
	case client != nil:
		w.Late(now.Add(watchAfter), w.late)
	default:
		w.Late(time.Time{}, nil)
	}
	return true
}

// ended is why the watch has ended the exchange, nil where it has not.
func (w *wire) ended() error {
	if w.watch == nil {
		return nil
	}
	return w.watch.ended()
}

// letGo takes the watch off the connection. It reports whether the connection may be used again.
func (w *wire) letGo() bool {
	if w.watch == nil {
		return true
	}
	goes := w.watch.over(nil)
	w.watch = nil
	return goes
}

// close closes the connection. It may be called again, and from any goroutine.
func (w *wire) close() {
	w.Close() // nothing is waited for that this could lose
	if !w.closed.Swap(true) {
		w.transport.open.Add(-1)
	}
}

// rest prepares the connection for lying unused.
func (w *wire) rest() {
	w.client = nil
	w.Trim()
	if cap(w.out) > keptBuffer {
		w.out = nil
	}
}

// lost is an exchange with a node that brought no answer.
type lost struct {
	sent    bool // the request had gone out wholly
	silent  bool // the node kept silent for too long
	garbled bool // it answered, but not in HTTP that can be passed on
	starved bool // the router has no descriptor left for it
	gone    bool // the client left, so that nobody waits for the answer any more
	ending  bool // the router stops, and the request asked to be held
	cause   error
}

// lostClient is a request whose exchange its watch has ended.
func lostClient(why error) *lost {
	return &lost{sent: true, cause: why, gone: why == errClientGone, ending: why == errStopping}
}

// lostSending is a request that did not go out wholly.
func lostSending(err error) *lost {
	return &lost{silent: errors.Is(err, os.ErrDeadlineExceeded), cause: err}
}

// lostWaiting is a request whose answer did not begin.
func lostWaiting(err error) *lost {
	l := &lost{sent: true, cause: err}
	var bad *http1.Error
	if errors.As(err, &bad) {
		l.silent, l.garbled = bad.Status == 504, bad.Status != 504
	}
	return l
}

// lostInside is a request whose answer began and did not end.
func lostInside(err error) *lost {
	l := lostWaiting(err)
	l.garbled = false
	return l
}

// absent reports whether an answer says that the node does not hold the tenant.
func absent(rep *http1.Response) bool {
	return rep.Status == 404 && bytes.Equal(rep.Get("Fenec-Tenant"), []byte("absent"))
}
