package node

import (
	"strconv"
	"time"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/engine/feed"
	"fenec/internal/edge"
	"fenec/internal/http1"
	"fenec/node/rest"
	"fenec/node/tenants"
)

// position is the position that the headers of a request ask for.
type position struct {
	given   bool   // the request has any of the headers
	marked  bool   // Fenec-Read: replica, the request is read-only
	after   uint64 // Fenec-After, if named
	named   bool
	history []byte        // Fenec-History, nil without one
	wait    time.Duration // Fenec-Wait, if waits
	waits   bool
}

// readPosition reads the Fenec-... headers of a request. Each may occur once.
func readPosition(headers []http1.Header) (p position, err error) {
	for i := range headers {
		h := &headers[i]
		if len(h.Name) < len("fenec-") || h.Name[0]|0x20 != 'f' || h.Name[5] != '-' {
			continue
		}
		p.given = true
		switch {
		case h.Is("fenec-read"):
			if p.marked || string(h.Value) != "replica" {
				return p, fail.New(fail.Invalid, "Fenec-Read has one value, replica, got %s", rest.Quoted(h.Value))
			}
			p.marked = true
		case h.Is("fenec-after"):
			if p.named {
				return p, fail.New(fail.Invalid, "Fenec-After is given twice")
			}
			p.named = true
			if p.after, err = parseChange("Fenec-After", h.Value); err != nil {
				return p, err
			}
		case h.Is("fenec-history"):
			if p.history != nil || len(h.Value) == 0 {
				return p, fail.New(fail.Invalid, "Fenec-History is empty or given twice")
			}
			p.history = h.Value
		case h.Is("fenec-wait"):
			if p.waits {
				return p, fail.New(fail.Invalid, "Fenec-Wait is given twice")
			}
			p.waits = true
			if p.wait, err = parseWait("Fenec-Wait", h.Value); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// parseChange parses the number of a change.
func parseChange(what string, text []byte) (uint64, error) {
	n, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil || text[0] == '+' {
		return 0, fail.New(fail.Invalid, "%s: expected the number of a change, 0 or above, got %s", what, rest.Quoted(text))
	}
	return n, nil
}

// parseWait parses how long a request asks to be held.
func parseWait(what string, text []byte) (time.Duration, error) {
	wait, ok := edge.ParseWait(text)
	if !ok {
		return 0, fail.New(fail.Invalid, "%s: expected milliseconds or a duration such as 5s, got %s", what, rest.Quoted(text))
	}
	return wait, nil
}

// behind is the error for a position that was not reached.
type behind struct {
	seq     uint64 // the copy's last change
	history string
	message string
}

func (e *behind) Error() string { return e.message }

// behind returns the error with the tenant's position, and why that is not what the request asked for.
func (c *call) behind(why string) error {
	seq, history := c.tenant.DB.Position()
	p := &c.asked
	of := "its history"
	if p.history != nil {
		of = "history " + string(p.history)
	}
	return &behind{seq, history, "this copy is at change " + strconv.FormatUint(seq, 10) + " of history " + history +
		": change " + strconv.FormatUint(p.after, 10) + " of " + of + " " + why}
}

// await refuses a read of a copy that has never caught up. It holds any other until the tenant has reached the request's position,
// with a change that is as durable as its writer's acknowledgement means.
func (c *call) await() error {
	if err := c.node.tenants.CheckReadable(c.tenant); err != nil {
		return err
	}
	p := &c.asked
	if !p.named {
		return nil
	}
	wait := edge.AfterWait
	if p.waits {
		wait = p.wait
	}
	var timer *time.Timer
	for {
		moved := c.tenant.Feed.Moved(feed.Settled)
		switch relation, err := c.tenant.DB.Relation(p.after, p.history); {
		case err != nil:
			return err
		case relation == engine.Included && p.after <= c.tenant.Feed.End(feed.Settled):
			return nil
		case relation == engine.Diverged:
			return c.behind("is of a branch that this copy is not on")
		}
		if timer == nil {
			timer = time.NewTimer(wait)
			defer timer.Stop()
		}
		switch c.pause(moved, timer) {
		case waitOver:
			return c.behind("was not reached within " + wait.String())
		case waitStopping:
			return tenants.ErrStopping
		case waitGone:
			return errLeaving(c.tenant.Name)
		case waitLeft:
			return errLeft()
		}
	}
}

// ended is why a pause ended.
type ended int

const (
	waitMoved    ended = iota // there may be a change
	waitOver                  // the time is over
	waitLeft                  // the client has disconnected
	waitGone                  // the tenant is being moved or deleted
	waitStopping              // the node is stopping
)

// pause waits for the first of these.
func (c *call) pause(moved <-chan struct{}, timer *time.Timer) ended {
	c.node.waiting.Add(1)
	defer c.node.waiting.Add(-1)
	select {
	case <-c.node.stop:
		return waitStopping
	case <-moved:
		return waitMoved
	case <-timer.C:
		return waitOver
	case <-c.tenant.Gone():
		return waitGone
	case <-c.request.Context().Done():
		return waitLeft
	}
}

// errLeft is the error of a request whose client has disconnected.
func errLeft() error { return fail.New(fail.Canceled, "the request was given up") }

func errLeaving(name string) error {
	return fail.New(fail.Closed, "tenant %s is being moved or deleted, send the request again", name)
}

// awaitReads holds statements that only read until their position is reached. Statements of which one writes, and invalid
// ones, are left to the engine.
func (c *call) awaitReads(statements ...engine.Statement) error {
	if !c.asked.given && c.node.tenants.CheckReadable(c.tenant) == nil {
		return nil
	}
	for _, st := range statements {
		if writes, err := c.tenant.DB.Writes(c.memory.context(), st.Text); err != nil || writes {
			return nil
		}
	}
	return c.await()
}

// head returns the headers of a result's answer. Those of a write, and of a read if the request is marked, have the tenant's
// position.
func (c *call) head(res *engine.Result) []http1.Header {
	if res.Wrote || c.asked.marked {
		return positionHeaders(res.Seq, res.History)
	}
	return http1.JSON
}

// headNow is head for a read without a statement.
func (c *call) headNow() []http1.Header {
	if !c.asked.marked {
		return http1.JSON
	}
	return positionHeaders(c.tenant.DB.Position())
}

// writeHeaders returns headers with the tenant's position after a write.
func writeHeaders(res *engine.Result) []http1.Header {
	return positionHeaders(res.Seq, res.History)
}

var (
	seqName     = []byte("Fenec-Seq")
	historyName = []byte("Fenec-History")
)

func positionHeaders(seq uint64, history string) []http1.Header {
	headers := make([]http1.Header, 0, len(http1.JSON)+2)
	headers = append(headers, http1.JSON...)
	return append(headers,
		http1.Header{Name: seqName, Value: strconv.AppendUint(nil, seq, 10)},
		http1.Header{Name: historyName, Value: []byte(history)})
}
