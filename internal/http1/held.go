package http1

import "time"

// Holding is the bytes of a budget that one request holds. What was taken through it and not given back is returned to the
// budget when the request ends, on every way out: once its answer is written, its client has disconnected, or its handler
// or the stream of its answer has panicked. Like the Request, it is used by one goroutine at a time.
type Holding struct {
	budget *Budget
	bytes  int64
}

// The places in conn.held.
const (
	heldBody = iota
	heldOther
)

// Holding returns what the request holds of a budget. A request holds bytes of at most one budget besides that of bodies.
func (r *Request) Holding(b *Budget) *Holding {
	h := &r.conn.held[heldOther]
	if h.budget != b {
		h.release()
		h.budget = b
	}
	return h
}

// Bytes returns how many bytes the request holds.
func (h *Holding) Bytes() int64 { return h.bytes }

// Max returns how many bytes the budget has.
func (h *Holding) Max() int64 { return h.budget.Max() }

// Take takes n bytes more, and reports whether there was room.
func (h *Holding) Take(n int64) bool {
	return h.count(n, h.budget.Take(n, h.bytes))
}

// Wait is Take that waits for room for at most patience, or until done is closed.
func (h *Holding) Wait(n int64, patience time.Duration, done <-chan struct{}) bool {
	return h.count(n, h.budget.Wait(n, h.bytes, patience, done))
}

func (h *Holding) count(n int64, taken bool) bool {
	if taken {
		h.bytes += n
	}
	return taken
}

// Give returns n bytes to the budget before the request ends.
func (h *Holding) Give(n int64) {
	h.bytes -= n
	h.budget.Give(n)
}

// release returns everything.
func (h *Holding) release() {
	if h.bytes > 0 {
		h.Give(h.bytes)
	}
}

// releaseHeld returns what the request holds to its budgets.
func (c *conn) releaseHeld() {
	for i := range c.held {
		c.held[i].release()
	}
}

// roomForBody takes room for size bytes of a body, less what it has already, and waits up to BodyWait for it. The buffer
// that each connection keeps is not counted. A body of unknown length counts as large.
func (c *conn) roomForBody(size int64) (waited time.Duration, ok bool) {
	if size <= keepBuffer {
		return 0, true
	}
	h := &c.held[heldBody]
	h.budget = c.server.Bodies
	more := claim{n: size - h.bytes, held: h.bytes, large: c.req.chunked || c.req.length > maxSmall}
	more.grows = more.large && more.held == 0
	if h.count(more.n, h.budget.take(more)) {
		return 0, true
	}
	began := time.Now()
	if !h.count(more.n, h.budget.wait(more, BodyWait, nil)) {
		return 0, false
	}
	return time.Since(began), true
}
