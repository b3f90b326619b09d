package node

import (
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

// newAccount returns an account of the node's memory for statements and answers.
func (n *Node) newAccount() engine.Account {
	answers := n.budget.answers
	return engine.Account{Budget: answers, Most: min(engine.DefaultMemory, answers.Max())}
}

// room is a wait for room in the node's memory for statements and answers. A waiter holds none of it but its parsed values:
// a statement without room is abandoned, and runs again from its beginning.
type room struct {
	budget *http1.Budget
	asked  int64 // bytes, by the wait before
}

// wait returns what the account has taken, and waits until it is granted room for what it lacked. A second wait asks for
// twice as much as the first, so that few runs are wasted.
func (r *room) wait(account *engine.Account, patience time.Duration, done <-chan struct{}) bool {
	lacked := account.Lacked()
	r.asked = min(max(2*r.asked, lacked+lacked/4, leastRoom), r.budget.Max()-account.Beside)
	account.Settle(0)
	if !r.budget.Wait(r.asked, account.Beside, patience, done) {
		return false
	}
	account.Grant(r.asked)
	return true
}

// inRoom calls run, which counts in the account, and repeats it while there is no room for it and roomWait is not over. The
// error is that of the last run. The caller settles the account.
func (n *Node) inRoom(account *engine.Account, done func() <-chan struct{}, run func() error) error {
	err := run()
	if err == nil || fail.KindOf(err) != fail.Busy {
		return err
	}
	until := time.Now().Add(roomWait)
	for r := (room{budget: n.budget.answers}); fail.KindOf(err) == fail.Busy; err = run() {
		if !r.wait(account, time.Until(until), done()) {
			return err
		}
	}
	return err
}

// answered runs the function that makes the answer of the request, within the available room. The memory of an answer that
// is not short is held until the client has it.
func (c *call) answered(run func() (http1.Answer, error)) (a http1.Answer, err error) {
	var began time.Time
	held := c.wait
	if c.waits {
		began = time.Now()
	}
	err = c.node.inRoom(&c.account, c.done, func() (err error) {
		if c.waits { // a claim is not held longer because it ran before
			c.wait = max(0, held-time.Since(began))
		}
		a, err = run()
		return err
	})
	if err != nil {
		c.account.Settle(0)
		return a, err
	}
	c.keep(max(c.pieces, int64(cap(a.Body))))
	return a, nil
}

func (c *call) done() <-chan struct{} { return c.request.Context().Done() }

// keep settles the account: the memory of an answer of n bytes is held until the client has it.
func (c *call) keep(n int64) {
	if n = c.account.Settle(long(n)); n > 0 {
		c.request.Hold(c.node.budget.answers, n)
		c.kept = true
	}
}

// long returns n for an answer that is counted, 0 for a short one.
func long(n int64) int64 {
	if n <= engine.Uncounted {
		return 0
	}
	return n
}

// heldUntilSent waits for room for an answer that was made without an account, and holds it until the client has it.
func (c *call) heldUntilSent(a http1.Answer) http1.Answer {
	n := long(int64(cap(a.Body)))
	if n == 0 || c.kept {
		return a
	}
	if !c.reserve(n, 0) {
		return c.node.answerError(c.request, errNoRoom())
	}
	return a
}

// reserve waits for room for n more bytes besides the held bytes that the request has, and holds them until its answer is sent.
// It returns false if there was no room.
func (c *call) reserve(n, held int64) bool {
	answers := c.node.budget.answers
	if !answers.Wait(n, held, roomWait, c.done()) {
		return false
	}
	c.request.Hold(answers, n)
	return true
}

func errNoRoom() error {
	return fail.New(fail.Busy, "the memory for statements and their answers is in use, send the request again")
}
