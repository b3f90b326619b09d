package http1

import "time"

// held is the bytes of a budget that a request holds until it ends.
type held struct {
	budget *Budget
	bytes  int64
}

// The places in conn.held.
const (
	heldBody = iota
	heldOther
)

// Hold returns n bytes that were taken from a budget to it once the request's answer is written. A request holds bytes of
// at most one budget besides that of bodies.
func (r *Request) Hold(b *Budget, n int64) {
	h := &r.conn.held[heldOther]
	if h.budget != b {
		h.release()
		h.budget = b
	}
	h.bytes += n
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
	if h.budget.take(more) {
		h.bytes += more.n
		return 0, true
	}
	began := time.Now()
	if !h.budget.wait(more, BodyWait, nil) {
		return 0, false
	}
	h.bytes += more.n
	return time.Since(began), true
}

// releaseHeld returns what the request holds to its budgets.
func (c *conn) releaseHeld() {
	for i := range c.held {
		c.held[i].release()
	}
}

func (h *held) release() {
	if h.bytes > 0 {
		h.budget.Give(h.bytes)
		h.bytes = 0
	}
}
