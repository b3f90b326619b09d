package http1

import "time"

// held is what a request holds of a budget until it is over.
type held struct {
	budget *Budget
	bytes  int64
}

// The places in conn.held.
const (
	heldBody = iota
	heldOther
)

// Hold has n bytes that were taken from a budget given back once the request's answer is written. A request holds of one
// budget beside that of bodies.
func (r *Request) Hold(b *Budget, n int64) {
	h := &r.conn.held[heldOther]
	if h.budget != b {
		h.letGo()
		h.budget = b
	}
	h.bytes += n
}

// roomForBody takes room for a body of which size bytes are to be held, less what it has already, and waits for it a while.
// What a connection keeps anyway is not counted. A body of unknown length is taken for a large one.
func (c *conn) roomForBody(size int64) (waited time.Duration, ok bool) {
	if size <= keepBuffer {
		return 0, true
	}
	h := &c.held[heldBody]
	h.budget = c.server.Bodies
	more := claim{n: size - h.bytes, held: h.bytes, large: c.req.chunked || c.req.length > modest}
	more.enters = more.large && more.held == 0
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

// letGo gives back what the request held.
func (c *conn) letGo() {
	for i := range c.held {
		c.held[i].letGo()
	}
}

func (h *held) letGo() {
	if h.bytes > 0 {
		h.budget.Give(h.bytes)
		h.bytes = 0
	}
}
