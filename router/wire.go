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
	// keptBuffer is the largest buffer that a connection to a node keeps between requests.
	keptBuffer = 64 << 10
	// joinedBody is the longest body that is copied after its head, so that both are sent in one write.
	joinedBody = 32 << 10
	// watchAfter is how long a node may take to answer before the waiting client is watched: quick answers do not pay for
	// a watcher. The read deadline of a busy connection fires this often.
	watchAfter = 25 * time.Millisecond
)

// wire is a connection to a node with the buffers that the router reuses with it. One request at a time uses it.
type wire struct {
	*http1.Upstream
	transport *transport
	closed    atomic.Bool
	out       []byte // the request being written
	hops      bool   // the answer being returned has headers that are not forwarded
	idleSince time.Time
	client    *http1.Request // whose request is under way, nil for the router's own
	watch     *watch         // of that client, nil while it is not watched
	late      func()         // watches that client; made once
}

func newWire(up *http1.Upstream, t *transport) *wire {
	w := &wire{Upstream: up, transport: t}
	w.late = func() {
		w.watch = newWatch(w.client)
		w.watch.over(w) // if it has ended, it aborts the connection
	}
	return w
}

// serve sets the client that the connection is used for, with its watch if there is one; nil is the router itself. It
// reports whether the client is connected.
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

// ended returns why the watch has ended the exchange, nil if it has not.
func (w *wire) ended() error {
	if w.watch == nil {
		return nil
	}
	return w.watch.ended()
}

// unwatch removes the watch from the connection. It reports whether the connection may be used again.
func (w *wire) unwatch() bool {
	if w.watch == nil {
		return true
	}
	goes := w.watch.over(nil)
	w.watch = nil
	return goes
}

// close closes the connection. It may be called again, and from any goroutine.
func (w *wire) close() {
	w.Close() // an error loses nothing: no answer is expected
	if !w.closed.Swap(true) {
		w.transport.open.Add(-1)
	}
}

// rest prepares the connection for being idle.
func (w *wire) rest() {
	w.client = nil
	w.Trim()
	if cap(w.out) > keptBuffer {
		w.out = nil
	}
}

// lost is the error of an exchange without a usable answer.
type lost struct {
	sent    bool // the request was sent whole
	silent  bool // the node was silent for too long
	garbled bool // its answer is not valid HTTP
	starved bool // the router has no descriptor left for a connection
	gone    bool // the client disconnected and does not wait for the answer
	ending  bool // the router stops, and the request asked to be held
	cause   error
}

// lostClient returns the error of an exchange that its watch has ended.
func lostClient(why error) *lost {
	return &lost{sent: true, cause: why, gone: why == errClientGone, ending: why == errStopping}
}

// lostSending returns the error of a request that was not sent whole.
func lostSending(err error) *lost {
	return &lost{silent: errors.Is(err, os.ErrDeadlineExceeded), cause: err}
}

// lostWaiting returns the error of a request whose answer did not begin.
func lostWaiting(err error) *lost {
	l := &lost{sent: true, cause: err}
	var bad *http1.Error
	if errors.As(err, &bad) {
		l.silent, l.garbled = bad.Status == 504, bad.Status != 504
	}
	return l
}

// lostInside returns the error of a request whose answer began and did not end.
func lostInside(err error) *lost {
	l := lostWaiting(err)
	l.garbled = false
	return l
}

// missedBy returns why an answer's node did not serve the tenant. A write that its client marked as a read is refused by a
// replica without the header, and is not missed.
func missedBy(rep *http1.Response) miss {
	switch {
	case rep.Status == 404 && bytes.Equal(rep.Get("Fenec-Tenant"), []byte("absent")):
		return absent
	case rep.Status == 403 && bytes.Equal(rep.Get("Fenec-Tenant"), []byte("replica")):
		return followed
	}
	return served
}
