package node

import (
	"context"
	"time"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/internal/http1"
)

const (
	// roomWait is how long a request waits for room in the memory of statements and answers.
	roomWait = http1.BodyWait
	// leastRoom is the least that a waiter asks for, in bytes.
	leastRoom = 4 << 20
)

// memory is what one request holds of the node's memory for statements and answers, from its first parsed parameter until
// its client has the answer. Everything is taken through holding, so that the end of the request returns it, whichever way
// the request ends (DESIGN.md). Of the bytes in holding, parsedHeld are of parameters, answer are of what was made, and the
// rest is the account's.
type memory struct {
	request *http1.Request
	holding *http1.Holding
	account engine.Account // of the running statement, and of the event or page being made
	counted engine.Accounted

	parsed     int64 // bytes that parsed parameters take
	parsedHeld int64 // of them in holding: short ones are not counted
	answer     int64 // in holding, of a finished answer or event that its client does not have yet
	asked      int64 // bytes, by the wait for room before
}

// newMemory returns the memory of a request, which holds nothing.
func (n *Node) newMemory(r *http1.Request) memory {
	h := r.Holding(n.budget.answers)
	return memory{request: r, holding: h, account: engine.Account{Budget: h, Most: min(engine.DefaultMemory, h.Max())}}
}

// context returns the request's context, under which statements are counted in the account.
func (m *memory) context() context.Context {
	m.counted = engine.Accounted{Context: m.request.Context(), Account: &m.account}
	return &m.counted
}

// parse counts n more bytes of parsed parameters, which are held until the request ends. It waits for room.
func (m *memory) parse(n int64) error {
	m.parsed += n
	more := m.parsed - m.parsedHeld
	if more <= engine.Uncounted {
		return nil
	}
	if m.parsed > m.holding.Max() {
		return fail.New(fail.TooLarge, "the values of the request take more than the %d MiB of memory for statements and their answers: send fewer at once", m.holding.Max()>>20)
	}
	if !m.holding.Wait(more, roomWait, m.left()) {
		return errNoRoom()
	}
	m.parsedHeld += more
	m.account.Beside = m.parsedHeld
	m.account.Most = min(engine.DefaultMemory+m.parsedHeld, m.holding.Max()) // a statement that needs more would wait for itself
	return nil
}

// run calls run, which counts in the account, and repeats it while there is no room for it and roomWait is not over. The
// error is that of the last run.
func (m *memory) run(run func() error) error {
	err := run()
	if err == nil || fail.KindOf(err) != fail.Busy {
		return err
	}
	until := time.Now().Add(roomWait)
	for ; fail.KindOf(err) == fail.Busy; err = run() {
		if !m.wait(time.Until(until), m.left()) {
			return err
		}
	}
	return err
}

// wait abandons a run that found no room, and waits for room for the next. A waiter holds nothing but its parameters. A second
// wait asks for twice as much as the first, so that few runs are wasted.
func (m *memory) wait(patience time.Duration, done <-chan struct{}) bool {
	lacked := m.account.Lacked()
	m.asked = min(max(2*m.asked, lacked+lacked/4, leastRoom), m.holding.Max()-m.parsedHeld)
	m.account.Settle(0)
	if !m.holding.Wait(m.asked, patience, done) {
		return false
	}
	m.account.Grant(m.asked)
	return true
}

// keep ends the counting: what was taken for an answer or event of n bytes is held until its client has it, and the rest
// is returned.
func (m *memory) keep(n int64) {
	m.answer += m.account.Settle(long(n))
	m.asked = 0
}

// hold holds n bytes for an answer, unless some are held already because it was made with the account. It waits for room, and reports whether there was.
func (m *memory) hold(n int64) bool {
	if m.answer > 0 {
		return true
	}
	if !m.holding.Wait(n, roomWait, m.left()) {
		return false
	}
	m.answer = n
	return true
}

// release returns what is held of an event that its client has or never gets. The end of the request returns what is held of
// an answer, and of an event that is cut.
func (m *memory) release() {
	m.holding.Give(m.answer)
	m.answer = 0
}

// left is closed when the client has disconnected.
func (m *memory) left() <-chan struct{} { return m.request.Context().Done() }

// long returns n for an answer that is counted, 0 for a short one.
func long(n int64) int64 {
	if n <= engine.Uncounted {
		return 0
	}
	return n
}

func errNoRoom() error {
	return fail.New(fail.Busy, "the memory for statements and their answers is in use, send the request again")
}
