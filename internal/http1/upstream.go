package http1

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"time"
)

// Upstream is one kept connection to a server, on which requests go out one
// after the other. It has no goroutine and is used by one at a time; Close may
// come from another.
//
// A round is: Fresh, Send (and Write for a body that is streamed), ReadHead,
// then Message or Body to the end, and Reusable to see whether the connection may
// be kept.
type Upstream struct {
	inbound
	outbound
	poller poller
	parser headParser
	resp   Response
	body   body

	sent     bool // the request went out whole
	received bool // a byte of the answer came
	asked    bool // a request is out whose answer was not read to its end
}

// Dial connects to a server, over TLS where conf is given.
func Dial(ctx context.Context, network, addr string, conf *tls.Config) (*Upstream, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
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

// NewUpstream uses a connection that exists, and owns it from then on.
func NewUpstream(nc net.Conn) *Upstream {
	u := &Upstream{inbound: inbound{nc: nc, buf: make([]byte, readBuffer)}}
	u.poller.init(nc)
	u.outbound.init(nc)
	return u
}

// Close closes the connection and ends what waits on it.
func (u *Upstream) Close() error { return u.nc.Close() }

// Fresh reports, without waiting, whether a request may go out: the last answer
// was read to its end, the server has not closed the connection, and nothing
// came that was not asked for.
func (u *Upstream) Fresh() bool {
	return !u.asked && u.start == u.end && u.poller.quiet()
}

// Abort closes the connection at once and has the server see that, whatever is under way on it. It may come from any
// goroutine.
func (u *Upstream) Abort() {
	nc := u.nc
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok { // TLS, which would say goodbye first
		nc = t.NetConn()
	}
	if t, ok := nc.(*net.TCPConn); ok {
		t.SetLinger(0) // what fails here is closed in the usual way
	}
	nc.Close() // nothing is waited for that this could lose
}

// Late has late called, once, if a read of the answer has waited until the time given. A nil late takes that back. It
// costs next to nothing while answers are prompt.
func (u *Upstream) Late(at time.Time, late func()) { u.lateAt, u.late = at, late }

// Trim lets go of a buffer that a long answer made large: for a connection that
// is put by, once nothing of its last answer is needed.
func (u *Upstream) Trim() {
	if u.start == u.end && len(u.buf) > keepBuffer {
		u.rest()
		u.resp = Response{}
		clear(u.parser.headers[:cap(u.parser.headers)])
		u.parser.first = nil
	}
}

// Send writes a request: its head, and its body where it is at hand. What of
// the body is not follows by Write.
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

// Write sends more of a request's body, framed by the caller. It fails where
// the server takes nothing for WriteTimeout.
func (u *Upstream) Write(p []byte) (int, error) {
	u.sent = false
	if err := u.write(p); err != nil {
		return 0, err
	}
	u.sent = true
	return len(p), nil
}

// Sent reports whether all that Send and Write were given went out.
func (u *Upstream) Sent() bool { return u.sent }

// Received reports whether any byte of the answer has come.
func (u *Upstream) Received() bool { return u.received }

// ReadHead reads the head of the answer to a request of the method, passing
// over interim ones (1xx). It is valid until the next Send. The error is an
// *Error with status 502 where the answer is no HTTP, and 504 where it did not
// come until the time given (zero: no bound); otherwise it is the connection's.
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
			return nil, refuse(502, "the answer is an interim one of status %d", u.resp.Status)
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

// readHead reads until a head is whole and gives its length.
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

// Message reads an answer with a length, head and body as they came, up to limit
// bytes of it; of another it reads nothing. whole reports whether that is all:
// Body reads the rest, and the bytes of the message may be what it reads into.
// Each wait is bounded by silence. It is valid until the next Send.
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

// Body reads the answer's body as it comes, without its chunks. Each wait is
// bounded by silence, where that is over zero. The error is io.EOF at its end,
// and otherwise an *Error with status 502, or 504 for silence.
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

// Reusable reports whether the connection may take another request: the answer
// was read to its end, the server did not say it would close, and nothing came
// after it.
func (u *Upstream) Reusable() bool {
	return !u.asked && u.sent && !u.resp.Close && u.body.ended() && u.start == u.end
}
