package http1

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"time"
)

// Upstream is one keep-alive connection to a server, on which requests are sent
// one after the other. It has no goroutine and is used by one goroutine at a time,
// except for Close and Abort, which any goroutine may call.
//
// A request is: Fresh, Send (and Write for a body that is streamed), ReadHead,
// then Message or Body to the end, and Reusable, which reports whether the
// connection may be kept.
type Upstream struct {
	inbound
	outbound
	poller poller
	parser headParser
	resp   Response
	body   body

	sent     bool // the request was sent whole
	received bool // a byte of the answer has arrived
	asked    bool // a request was sent whose answer was not read to its end
}

// Dialer opens a connection, as net.Dialer.DialContext does.
type Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// Dial connects to a server with dial, over TLS if conf is not nil.
func Dial(ctx context.Context, dial Dialer, addr string, conf *tls.Config) (*Upstream, error) {
	nc, err := dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	nc = newSocket(nc)
	if conf == nil {
		return NewUpstream(nc), nil
	}
	t := tls.Client(nc, conf)
	if err := t.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	return NewUpstream(t), nil
}

// NewUpstream returns an Upstream over an existing connection, which it owns from
// then on.
func NewUpstream(nc net.Conn) *Upstream {
	u := &Upstream{inbound: inbound{nc: nc, buf: make([]byte, readBuffer)}}
	u.poller.init(nc)
	u.outbound.init(nc)
	return u
}

// Close closes the connection and ends reads and writes that wait on it.
func (u *Upstream) Close() error { return u.nc.Close() }

// Fresh reports, without waiting, whether a request may be sent: the last answer
// was read to its end, the server has not closed the connection, and no
// unexpected bytes have arrived.
func (u *Upstream) Fresh() bool {
	return !u.asked && u.start == u.end && u.poller.quiet()
}

// Abort resets the connection, so that the server sees the end at once, whatever is under way. Any goroutine may call it.
func (u *Upstream) Abort() {
	nc := u.nc
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok { // TLS would send a close alert first
		nc = t.NetConn()
	}
	if t, ok := nc.(interface{ SetLinger(sec int) error }); ok {
		t.SetLinger(0) // best effort: if it fails, the connection is closed without a reset
	}
	nc.Close() // an error loses nothing: no answer is expected
}

// Late has late called, once, if a read of the answer has waited until the given time. A nil late cancels that. It costs
// next to nothing while answers are prompt.
func (u *Upstream) Late(at time.Time, late func()) { u.lateAt, u.late = at, late }

// Trim releases a buffer that a long answer made large. It is for a connection
// that becomes idle, once its last answer is no longer needed.
func (u *Upstream) Trim() {
	if u.start == u.end && len(u.buf) > keepBuffer {
		u.rest()
		u.resp = Response{}
		clear(u.parser.headers[:cap(u.parser.headers)])
		u.parser.first = nil
	}
}

// Send writes a request: its head and the available part of its body. The rest of
// the body follows by Write.
func (u *Upstream) Send(head, body []byte) error {
	u.sent, u.received, u.asked = false, false, true
	u.rest()
	var err error
	if len(body) == 0 {
		err = u.write(head)
	} else {
		err = u.writeAll(head, body, nil)
	}
	u.sent = err == nil
	return err
}

// Write sends more of a request's body, framed by the caller. It fails if the
// server accepts no bytes for WriteTimeout.
func (u *Upstream) Write(p []byte) (int, error) {
	u.sent = false
	if err := u.write(p); err != nil {
		return 0, err
	}
	u.sent = true
	return len(p), nil
}

// Sent reports whether all bytes passed to Send and Write were sent.
func (u *Upstream) Sent() bool { return u.sent }

// Received reports whether any byte of the answer has arrived.
func (u *Upstream) Received() bool { return u.received }

// ReadHead reads the head of the answer to a request of the method, skipping
// interim ones (1xx). It is valid until the next Send. The error is an *Error with
// status 502 if the answer is not valid HTTP, and 504 if it did not arrive until
// the given time (zero: no bound); otherwise it is the connection's.
func (u *Upstream) ReadHead(method string, until time.Time) (*Response, error) {
	for seen := 0; ; {
		n, err := u.readHead(until)
		if err != nil {
			return nil, err
		}
		head := u.buf[u.start : u.start+n : u.start+n]
		if bad := u.resp.read(&u.parser, head, method); bad != nil {
			return nil, bad
		}
		u.start += n
		if u.resp.Status >= 200 {
			break
		}
		if seen += n; u.resp.Status == 101 || seen > MaxHead {
			return nil, refuse(502, "the answer is an interim response of status %d", u.resp.Status)
		}
	}
	u.pinned = true
	r := &u.resp
	u.body = body{in: &u.inbound, late: 504, bad: 502}
	switch {
	case r.Chunked:
		u.body.state = bodyChunkSize
	case r.Length < 0:
		u.body.state = bodyToEnd
	case r.Length == 0:
		u.body.err, u.asked = io.EOF, false
	default:
		u.body.left = r.Length
	}
	return r, nil
}

// readHead reads until a head is whole and returns its length.
func (u *Upstream) readHead(until time.Time) (int, error) {
	u.parser.reset()
	for {
		if u.start < u.end {
			n, bad := u.parser.parse(u.buf[u.start:u.end])
			if bad == nil && (n > MaxHead || n == 0 && u.end-u.start >= MaxHead) {
				bad = refuse(502, "the head of the answer is over %d bytes", MaxHead)
			}
			if bad != nil {
				bad.Status = 502
				return 0, bad
			}
			if n > 0 {
				return n, nil
			}
		}
		if u.room() {
			u.parser.reset()
		}
		if err := u.fill(until); err != nil {
			if timedOut(err) {
				return 0, refuse(504, "the answer did not come in time")
			}
			return 0, err
		}
		u.received = true
	}
}

// Message reads up to limit bytes of an answer with a length, head and body as
// they came; of an answer without one it reads nothing. whole reports whether that
// is all. Otherwise Body reads the rest, and it may read into the bytes of the
// message. Each wait is bounded by silence. It is valid until the next Send.
func (u *Upstream) Message(limit int, silence time.Duration) (message []byte, whole bool, err error) {
	head := len(u.resp.Head)
	if u.resp.Length < 0 {
		return nil, false, nil
	}
	at, size := u.start-head, max(head, int(min(int64(head)+u.resp.Length, int64(limit))))
	if at+size > len(u.buf) {
		grown := make([]byte, max(size, readBuffer))
		u.end = copy(grown, u.buf[at:u.end])
		u.buf, u.start, at = grown, head, 0
		u.resp.Head = grown[:head:head]
	}
	for u.end < at+size {
		n, err := u.read(u.buf[u.end:at+size], waitUntil(time.Time{}, silence))
		if err != nil {
			return nil, false, u.body.lost(err)
		}
		u.end += n
	}
	u.start = at + size
	message = u.buf[at : at+size : at+size]
	if u.body.left = u.resp.Length - int64(size-head); u.body.left > 0 {
		return message, false, nil
	}
	u.body.err, u.asked = io.EOF, false
	return message, true, nil
}

// Body returns a reader of the answer's body without its chunk framing. Each wait
// is bounded by silence, if that is over zero. The error is io.EOF at its end, and
// otherwise an *Error with status 502, or 504 for silence.
func (u *Upstream) Body(silence time.Duration) io.Reader { return &upstreamBody{u, silence} }

type upstreamBody struct {
	u       *Upstream
	silence time.Duration
}

func (b *upstreamBody) Read(p []byte) (int, error) {
	n, err := b.u.body.read(p, time.Time{}, b.silence)
	if b.u.body.ended() {
		b.u.asked = false
	}
	return n, err
}

// Reusable reports whether another request may be sent on the connection: the
// answer was read to its end, the server did not announce a close, and no bytes
// arrived after it.
func (u *Upstream) Reusable() bool {
	return !u.asked && u.sent && !u.resp.Close && u.body.ended() && u.start == u.end
}
