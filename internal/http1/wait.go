package http1

import (
	"sync/atomic"
	"time"
)

// waiter is how a stream waits on the goroutine of its connection: for the client to leave, as a watcher does, and for
// Wake, which moves the socket's read deadline. Nothing else reads from the connection meanwhile.
type waiter struct {
	woken atomic.Bool
	look  func(fd uintptr) bool // at the socket and at woken; made once so that a wait allocates nothing
	bell  chan struct{}         // rung by Wake where there is no socket
}

// idleHeld is the most a stream keeps of its buffer while it waits.
const idleHeld = 1 << 10

// Wait returns nil once Wake has been called since the last Wait, or at the time given, and the context's error once the
// client is gone. It may return early. It is for streams without a length, whose author calls it on the goroutine that
// the stream runs on.
func (w *Writer) Wait(until time.Time) error {
	c, p := w.conn, &w.conn.req.ctx
	if cap(w.held) > idleHeld && len(w.held) == 0 {
		w.held = nil
	}
	switch {
	case w.woken.Load():
	case w.bell != nil:
		w.waitForBell(until)
	default:
		if w.look == nil {
			p.keep()
			w.look = func(uintptr) bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.checkLocked()
				return p.err != nil || w.woken.Load()
			}
		}
		c.armed = time.Time{}
		err := c.nc.SetReadDeadline(until)
		for err == nil && !w.woken.Load() && !p.over.Load() {
			err = p.event(w.look)
		}
		if err != nil && !timedOut(err) {
			p.fail()
		}
	}
	w.woken.Store(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (w *Writer) waitForBell(until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-w.bell:
	case <-timer.C:
	}
}

// Wake ends the stream's Wait, the next one where it does not wait now. It may be called from any goroutine while the
// stream runs, and takes no lock that is held for long.
func (w *Writer) Wake() {
	switch {
	case w.woken.Swap(true):
	case w.bell == nil:
		w.conn.wake()
	default:
		select {
		case w.bell <- struct{}{}:
		default:
		}
	}
}

// Hurry wakes the stream, and has its writes fail once the grace is over, however slowly its client takes them: for a
// stream that is to end. It may be called from any goroutine while the stream runs.
func (w *Writer) Hurry(grace time.Duration) {
	w.conn.outbound.hurry(time.Now().Add(grace))
	w.Wake()
}
