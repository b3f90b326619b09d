package node

import (
	"context"
	"errors"
	"time"

	"fenec/engine"
	"fenec/engine/claim"
	"fenec/engine/fail"
	"fenec/internal/http1"
)

// maxClaims is how many claims wait in a node at a time.
const maxClaims = 16384

// mayWait reports whether the request waits if it would write nothing.
func (c *call) mayWait() bool { return c.asked.waits && !c.asked.named && c.asked.wait > 0 }

// claimant is the context of a claim. Its Err checks the client's connection at that moment. The engine calls it right before
// a claim's block lands, so a claim takes nothing for a client that has disconnected.
type claimant struct {
	context.Context
	request *http1.Request
}

func (c claimant) Err() error { return c.request.Look() }

// attempt is one run of a claim: its answer, or its error. With try, a run that would write nothing returns engine.ErrNothing
// and the answer that it would have.
type attempt func(try bool) (http1.Answer, error)

// sure returns an attempt that runs only while the client is known to be connected.
func (c *call) sure(run attempt) attempt {
	return func(try bool) (http1.Answer, error) {
		for {
			if c.request.Settle() != nil {
				return http1.Answer{}, errLeft()
			}
			if a, err := run(try); !errors.Is(err, http1.ErrUnsure) {
				return a, err
			}
		}
	}
}

// claim runs a claim and blocks for as long as it would write nothing.
func (c *call) claim(waits *engine.Claim, run attempt) (http1.Answer, error) {
	run = c.sure(run)
	if a, err := run(true); !claim.Retryable(err) {
		return a, err
	}
	if c.node.claims.Add(1) > c.node.maxClaims {
		c.node.claims.Add(-1)
		return http1.Answer{}, fail.New(fail.Closed, "%d claims wait in the node, its maximum: send the request again", c.node.maxClaims)
	}
	defer c.node.claims.Add(-1)
	w := c.tenant.Claims.Join(waits)
	defer w.Leave()
	timer := time.NewTimer(c.asked.wait)
	defer timer.Stop()
	for {
		switch c.pause(w.Ready(), timer) {
		case waitMoved:
			var a http1.Answer
			done, err := w.Retry(c.request.Context(), func() (err error) {
				a, err = run(true)
				return err
			})
			if done {
				return a, err
			}
		case waitOver, waitStopping:
			return c.lastRun(run)
		case waitGone:
			return http1.Answer{}, errLeaving(c.tenant.Name)
		case waitLeft:
			return http1.Answer{}, errLeft()
		}
	}
}

// lastRun runs a claim at the end of its wait. With a key its answer is kept even if it wrote nothing, unless the database is
// frozen.
func (c *call) lastRun(run attempt) (http1.Answer, error) {
	a, err := run(true)
	if !errors.Is(err, engine.ErrNothing) {
		return a, err
	}
	if c.keyed {
		if kept, err := run(false); fail.KindOf(err) != fail.Frozen {
			return kept, err
		}
	}
	return a, nil
}

// execClaim is exec of a statement that may be held.
func (c *call) execClaim(st engine.Statement, answer func(*call, *engine.Result) http1.Answer) (http1.Answer, error) {
	db, ctx := c.tenant.DB, claimant{c.memory.context(), c.request}
	waits, _, err := db.Claim(c.scope, []engine.Statement{st})
	if err != nil {
		return http1.Answer{}, err
	}
	o, err := c.onceOne(answer)
	if err != nil {
		return http1.Answer{}, err
	}
	run := func(try bool) (http1.Answer, error) {
		reply, err := db.Run(ctx, c.scope, &engine.Request{Statements: []engine.Statement{st}, Once: o, Claim: try, Dst: c.request.Scratch()})
		switch {
		case reply.Kept != nil:
			return replay(reply.Kept), nil
		case err != nil && !errors.Is(err, engine.ErrNothing):
			return http1.Answer{}, err
		}
		return answer(c, &reply.Result), err
	}
	if waits == nil { // it reads
		return c.sure(run)(false)
	}
	switch kept, err := db.RanBefore(c.request.Context(), c.scope, o); {
	case err != nil:
		return http1.Answer{}, err
	case kept != nil:
		return replay(kept), nil
	}
	return c.claim(waits, run)
}

// execBatchClaim is execBatch of statements that may be held.
func (c *call) execBatchClaim(statements []engine.Statement) (a http1.Answer, completed, at int, err error) {
	db, ctx := c.tenant.DB, claimant{c.memory.context(), c.request}
	waits, at, err := db.Claim(c.scope, statements)
	if err != nil {
		return http1.Answer{}, 0, at, err
	}
	o, err := c.once(keptBatch)
	if err != nil {
		return http1.Answer{}, 0, -1, err
	}
	run := func(try bool) (http1.Answer, error) {
		var reply engine.Reply
		reply, err = db.Run(ctx, c.scope, &engine.Request{Statements: statements, Batch: true, Once: o, Claim: try})
		at = reply.At
		switch {
		case reply.Kept != nil:
			return replay(reply.Kept), nil
		case err != nil && !errors.Is(err, engine.ErrNothing):
			return http1.Answer{}, err
		}
		return c.answerBatch(reply.Results), err
	}
	if waits == nil { // all of it reads
		a, err = c.sure(run)(false)
		return a, 0, at, err
	}
	switch kept, err := db.RanBefore(c.request.Context(), c.scope, o); {
	case err != nil:
		return http1.Answer{}, 0, -1, err
	case kept != nil:
		return replay(kept), 0, -1, nil
	}
	a, err = c.claim(waits, run)
	return a, 0, at, err
}
