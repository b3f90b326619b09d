package router

import (
	"bytes"
	"errors"
	"os"
	"time"

	"fenec/internal/http1"
)

const (
	// keptBuffer is the most a connection to a node holds on to between requests.
	keptBuffer = 64 << 10
	// joinedBody is the longest body that is copied beside its head, so that both go out in one piece.
	joinedBody = 32 << 10
	// watchEvery is how often a client is looked at while its node has not answered.
	watchEvery = 500 * time.Millisecond
)

// wire is a connection to a node with what the router reuses along with it. One request at a time has it.
type wire struct {
	*http1.Upstream
	out       []byte // the request being made
	hops      bool   // the answer being passed back has headers that end here
	idleSince time.Time
	client    *http1.Request  // whose request is under way, nil for the router's own
	until     <-chan struct{} // closed where the wait for the answer is to end; nil where nothing ends it
	awake     func() error    // whether that client is still there; made once
}

var (
	errClientGone = errors.New("the client is gone")
	errStopping   = errors.New("the router is stopping")
)

func newWire(up *http1.Upstream) *wire {
	w := &wire{Upstream: up}
	w.awake = func() error {
		if w.client != nil && w.client.Context().Err() != nil {
			return errClientGone
		}
		select {
		case <-w.until:
			return errStopping
		default:
			return nil
		}
	}
	return w
}

// serve says for whom the connection is used from now on, and what ends the wait for an answer beside that client.
func (w *wire) serve(client *http1.Request, until <-chan struct{}) {
	w.client, w.until = client, until
	w.Watch(watchEvery, w.awake)
}

func (w *wire) close() {
	w.Close() // nothing is waited for that this could lose
}

// rest prepares the connection for lying unused.
func (w *wire) rest() {
	w.client, w.until = nil, nil
	if cap(w.out) > keptBuffer {
		w.out = nil
	}
}

// lost is an exchange with a node that brought no answer.
type lost struct {
	sent    bool // the request had gone out wholly
	silent  bool // the node kept silent for too long
	garbled bool // it answered, but not in HTTP that can be passed on
	gone    bool // the client left, so that nobody waits for the answer any more
	ending  bool // the router stops, and the request asked to be held
	cause   error
}

// lostSending is a request that did not go out wholly.
func lostSending(err error) *lost {
	return &lost{silent: errors.Is(err, os.ErrDeadlineExceeded), cause: err}
}

// lostWaiting is a request whose answer did not begin.
func lostWaiting(err error) *lost {
	l := &lost{sent: true, cause: err, gone: errors.Is(err, errClientGone), ending: errors.Is(err, errStopping)}
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
