package http1

import (
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// maxWrite bounds one write under a deadline, so that the deadline moves on while
// a slow client keeps reading.
const maxWrite = 1 << 20

// outbound is the sending half of a connection. A write is tried on the socket at
// once; a deadline is set only for a peer that does not keep up.
type outbound struct {
	to     net.Conn
	raw    syscall.RawConn // the socket; nil with TLS
	skip   int             // bytes at the start of the next write that were sent already
	p      []byte
	n      int
	err    error
	try    func(fd uintptr) bool // writes p once; made once so that a write allocates nothing
	vector [3][]byte
	pieces net.Buffers
	last   atomic.Int64 // when all writes end, in Unix nanoseconds; 0 without a limit
}

func (o *outbound) init(nc net.Conn) {
	o.to = nc
	if s, ok := nc.(syscall.Conn); ok {
		o.raw, _ = s.SyscallConn()
	}
	o.try = func(fd uintptr) bool {
		o.n, o.err = sysWrite(fd, o.p)
		return true
	}
}

// write writes all of p. It fails if the peer accepts no bytes for WriteTimeout.
func (o *outbound) write(p []byte) error {
	p, o.skip = p[o.skip:], 0
	n, err := o.writeNow(p)
	if err != nil || n == len(p) {
		return err
	}
	return o.writeSlow(p[n:])
}

// writeNow writes as much as the socket accepts without waiting.
func (o *outbound) writeNow(p []byte) (int, error) {
	if o.raw == nil || len(p) == 0 {
		return 0, nil
	}
	o.p = p
	err := o.raw.Write(o.try)
	o.p = nil
	switch {
	case err != nil:
		return 0, err
	case o.err == syscall.EAGAIN:
		return 0, nil
	case o.err != nil:
		return 0, o.err
	}
	return o.n, nil
}

// writeSlow writes under a deadline that moves on as the peer accepts bytes.
func (o *outbound) writeSlow(p []byte) error {
	for len(p) > 0 {
		if err := o.bound(); err != nil {
			return err
		}
		n, err := o.to.Write(p[:min(len(p), maxWrite)])
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return o.to.SetWriteDeadline(time.Time{})
}

// bound sets the deadline of a write that may wait.
func (o *outbound) bound() error {
	if err := o.to.SetWriteDeadline(time.Now().Add(WriteTimeout)); err != nil {
		return err
	}
	// After the deadline above: endWrites sets last first and then the deadline, so the last deadline set is that end.
	if end := o.last.Load(); end != 0 {
		return o.to.SetWriteDeadline(time.Unix(0, end))
	}
	return nil
}

// endWrites lets no write, including the one under way, wait past a time.
func (o *outbound) endWrites(end time.Time) {
	o.last.Store(end.UnixNano())
	o.to.SetWriteDeadline(end) // it fails on a connection that is closed, whose writes fail anyway
}

// writeAll writes three pieces, of which the last may be empty, in one system
// call if possible.
func (o *outbound) writeAll(a, b, c []byte) error {
	a, o.skip = a[o.skip:], 0
	if o.raw == nil || len(b) > maxWrite {
		for _, p := range [...][]byte{a, b, c} {
			if err := o.write(p); err != nil {
				return err
			}
		}
		return nil
	}
	if err := o.bound(); err != nil {
		return err
	}
	o.vector = [3][]byte{a, b, c}
	o.pieces = o.vector[:]
	_, err := o.pieces.WriteTo(o.to)
	o.vector = [3][]byte{}
	if err != nil {
		return err
	}
	return o.to.SetWriteDeadline(time.Time{})
}
