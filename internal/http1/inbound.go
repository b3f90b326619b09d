package http1

import (
	"errors"
	"net"
	"os"
	"time"
)

// inbound is the receiving half of a connection: a buffer that is kept from one
// message to the next, and reads whose deadline is set as seldom as can be.
type inbound struct {
	nc         net.Conn
	buf        []byte // what has been read is buf[start:end]
	start, end int
	pinned     bool // a message under way points into buf: nothing in it moves or is overwritten

	armed  time.Time    // the read deadline the socket has; zero where it has to be set
	awake  func() error // asked once a deadline is set: its error ends the wait
	late   func()       // called once a read has waited until lateAt; nil after that
	lateAt time.Time
}

// room makes space to read into. It reports whether the bytes at hand are
// elsewhere now.
func (in *inbound) room() (moved bool) {
	if in.end < len(in.buf) {
		return false
	}
	to := in.buf
	if in.pinned || in.start == 0 && in.end > 0 {
		to = make([]byte, max(readBuffer, 2*(in.end-in.start)))
	}
	in.end = copy(to, in.buf[in.start:in.end])
	in.buf, in.start, in.pinned = to, 0, false
	return true
}

// rest makes the buffer ready for the next message.
func (in *inbound) rest() {
	in.pinned = false
	if in.start == in.end {
		in.start, in.end = 0, 0
		if len(in.buf) > keepBuffer {
			in.buf = make([]byte, readBuffer)
		}
	}
}

// fill reads once into the buffer, which has room.
func (in *inbound) fill(until time.Time) error {
	n, err := in.read(in.buf[in.end:], until)
	in.end += n
	return err
}

// push puts bytes behind those at hand.
func (in *inbound) push(p []byte) {
	if in.end+len(p) > len(in.buf) {
		have := in.buf[in.start:in.end]
		in.buf, in.start, in.pinned = make([]byte, max(readBuffer, 2*(len(have)+len(p)))), 0, false
		in.end = copy(in.buf, have)
	}
	in.end += copy(in.buf[in.end:], p)
}

// read reads at least a byte, waiting until the time given at most; the zero
// time is no bound. The socket's deadline is set only where the one it has would
// come too late: one that comes early is noticed and set anew, so that a busy
// connection does not set one for every message.
func (in *inbound) read(p []byte, until time.Time) (int, error) {
	for {
		next := until
		if in.late != nil && (until.IsZero() || in.lateAt.Before(until)) {
			next = in.lateAt
		}
		if in.armed.IsZero() || !next.IsZero() && next.Before(in.armed) {
			if err := in.arm(next); err != nil {
				return 0, err
			}
		}
		n, err := in.nc.Read(p)
		if n > 0 {
			return n, nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		in.armed = time.Time{}
		now := time.Now()
		if late := in.late; late != nil && !now.Before(in.lateAt) {
			in.late = nil
			late()
		}
		if !until.IsZero() && !now.Before(until) {
			return 0, err
		}
	}
}

// forever is a deadline that is never reached.
const forever = 100 * 365 * 24 * time.Hour

func (in *inbound) arm(until time.Time) error {
	if err := in.nc.SetReadDeadline(until); err != nil {
		return err
	}
	if until.IsZero() {
		until = time.Now().Add(forever)
	}
	in.armed = until
	if in.awake != nil { // it may have woken the wait that was just undone
		return in.awake()
	}
	return nil
}

// timedOut reports whether a read's error is its deadline.
func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
