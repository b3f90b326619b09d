package http1

import (
	"errors"
	"net"
	"os"
	"time"
)

// inbound is the receiving half of a connection: a buffer that is kept from one
// message to the next, and reads whose deadline is set as rarely as possible.
type inbound struct {
	nc         net.Conn
	buf        []byte // what has been read is buf[start:end]
	start, end int
	pinned     bool // a message under way points into buf: its bytes must not move or be overwritten

	armed  time.Time    // the socket's read deadline; zero if it has to be set
	awake  func() error // called after a deadline is set: its error ends the wait
	late   func()       // called once a read has waited until lateAt; nil after that
	lateAt time.Time
}

// room makes space to read into. It reports whether it moved the unread bytes.
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

// push appends bytes to the unread ones.
func (in *inbound) push(p []byte) {
	if in.end+len(p) > len(in.buf) {
		have := in.buf[in.start:in.end]
		in.buf, in.start, in.pinned = make([]byte, max(readBuffer, 2*(len(have)+len(p)))), 0, false
		in.end = copy(in.buf, have)
	}
	in.end += copy(in.buf[in.end:], p)
}

// read reads at least a byte, waiting until the given time at most; the zero
// time is no bound. It sets the socket's deadline only if the current one would
// fire too late. One that fires early is set again, so a busy connection does not
// set one for every message.
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
	if in.awake != nil { // a wake before SetReadDeadline was just undone
		return in.awake()
	}
	return nil
}

// timedOut reports whether a read's error is that its deadline passed.
func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
