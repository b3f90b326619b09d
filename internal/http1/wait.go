package http1

import (
	"sync/atomic"
	"time"
)

// waiter lets a stream wait on its connection's goroutine: for the client to disconnect, as a watcher does, and for Wake,
// which moves the socket's read deadline. Nothing else reads from the connection meanwhile.
type waiter struct {
	woken  atomic.Bool
	look   func(fd uintptr) bool // checks the socket and woken; made once so that a wait allocates nothing
	wakeup chan struct{}         // Wake sends to it if the connection has no socket
}

// idleHeld is the largest buffer that a stream keeps while it waits.
const idleHeld = 1 << 10

// Wait blocks until Wake has been called since the last Wait, or until the given time, and returns nil, or the context's
// error once the client has disconnected. It may return early. It is for streams without a length; the stream function
// calls it on its own goroutine.
func (w *Writer) Wait(until time.Time) error {
	c, p := w.conn, &w.conn.req.ctx
	if cap(w.held) > idleHeld && len(w.held) == 0 {
		w.held = nil
	}
	switch {
	case w.woken.Load():
	case w.wakeup != nil:
		w.waitForWake(until)
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

func (w *Writer) waitForWake(until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-w.wakeup:
	case <-timer.C:
	}
}

// Wake ends the stream's Wait, or the next one if it does not wait now. Any goroutine may call it while the stream runs. It
// takes no lock that is held for long.
func (w *Writer) Wake() {
	switch {
	case w.woken.Swap(true):
	case w.wakeup == nil:
		w.conn.wake()
	default:
		select {
		case w.wakeup <- struct{}{}:
		default:
		}
	}
}

// Shutdown wakes a stream that must end, and has its writes fail after grace, even if its client still reads slowly. Any
// goroutine may call it while the stream runs.
func (w *Writer) Shutdown(grace time.Duration) {
	w.conn.outbound.endWrites(time.Now().Add(grace))
	w.Wake()
}
