package node

import (
	"crypto/sha256"
	"io"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/internal/http1"
)

// keyHeader is the header that has a write run once, however often it is sent.
const keyHeader = "Idempotency-Key"

var replayedHeader = http1.Header{Name: []byte("Idempotent-Replayed"), Value: []byte("true")}

// takeKey stores the request's key for its write. A request with two keys is refused.
func (c *call) takeKey() error {
	for i := range c.request.Headers {
		h := &c.request.Headers[i]
		if !h.Is("idempotency-key") {
			continue
		}
		if c.keyed {
			return fail.New(fail.Invalid, "%s is given twice", keyHeader)
		}
		c.key, c.keyed = h.Value, true
	}
	return nil
}

// once returns the key of the request for the engine, nil without one. The fingerprint is of the method, the target as it
// came and the body's bytes; the first two contain no blank and no line end.
func (c *call) once(answer func(results []engine.Result) http1.Answer) (o *engine.Once, err error) {
	if !c.keyed {
		return nil, nil
	}
	body, err := c.request.Body(http1.MaxBody)
	if err != nil {
		return nil, err
	}
	o = &engine.Once{Key: string(c.key)}
	h := sha256.New()
	io.WriteString(h, c.request.Method+" "+string(c.request.Target)+"\n")
	h.Write(body)
	h.Sum(o.Request[:0])
	o.Answer = func(results []engine.Result) (int, []byte) {
		a := answer(results)
		return a.Status, a.Body
	}
	return o, nil
}

// exec runs a statement and makes its answer, under the request's key if it has one. The engine stores what answer returns
// for a write's result, so answer must depend only on the result.
func (c *call) exec(st engine.Statement, answer func(*call, *engine.Result) http1.Answer) (http1.Answer, error) {
	return c.answered(func() (http1.Answer, error) { return c.run(st, answer) })
}

func (c *call) run(st engine.Statement, answer func(*call, *engine.Result) http1.Answer) (http1.Answer, error) {
	ctx, scratch := c.memory.context(), c.request.Scratch()
	if c.mayWait() {
		return c.execClaim(st, answer)
	}
	if !c.keyed {
		res, err := c.tenant.DB.Exec(ctx, c.scope, st, scratch)
		if err != nil {
			return http1.Answer{}, err
		}
		return answer(c, &res), nil
	}
	o, err := c.onceOne(answer)
	if err != nil {
		return http1.Answer{}, err
	}
	reply, err := c.tenant.DB.Run(ctx, c.scope, &engine.Request{Statements: []engine.Statement{st}, Once: o, Dst: scratch})
	switch {
	case err != nil:
		return http1.Answer{}, err
	case reply.Kept != nil:
		return replay(reply.Kept), nil
	}
	return answer(c, &reply.Result), nil
}

// onceOne is once for a single statement.
func (c *call) onceOne(answer func(*call, *engine.Result) http1.Answer) (*engine.Once, error) {
	return c.once(func(results []engine.Result) http1.Answer { return answer(c, &results[0]) })
}

// execBatch is exec for a batch. If it fails, results are of the statements that took effect, and at is the one that failed,
// -1 if that is the key.
func (c *call) execBatch(statements []engine.Statement) (a http1.Answer, completed, at int, err error) {
	c.answered(func() (http1.Answer, error) {
		a, completed, at, err = c.runBatch(statements)
		if completed > 0 { // it cannot run again
			return a, nil
		}
		return a, err
	})
	return a, completed, at, err
}

func (c *call) runBatch(statements []engine.Statement) (a http1.Answer, completed, at int, err error) {
	ctx := c.memory.context()
	if c.mayWait() {
		return c.execBatchClaim(statements)
	}
	o, err := c.once(keptBatch)
	if err != nil {
		return http1.Answer{}, 0, -1, err
	}
	reply, err := c.tenant.DB.Run(ctx, c.scope, &engine.Request{Statements: statements, Batch: true, Once: o})
	switch {
	case err != nil:
		return http1.Answer{}, len(reply.Results), reply.At, err
	case reply.Kept != nil:
		return replay(reply.Kept), 0, 0, nil
	}
	return c.answerBatch(reply.Results), 0, 0, nil
}

// ranBefore returns the stored answer of a write that the node refuses now for lack of memory, if it ran before under the
// same key; otherwise refused.
func (c *call) ranBefore(refused error) (http1.Answer, error) {
	if !c.keyed {
		return http1.Answer{}, refused
	}
	o, err := c.once(nil)
	if err != nil {
		return http1.Answer{}, err
	}
	kept, err := c.tenant.DB.RanBefore(c.request.Context(), c.scope, o)
	switch {
	case err != nil:
		return http1.Answer{}, err
	case kept != nil:
		return replay(kept), nil
	}
	return http1.Answer{}, refused
}

// replay returns the answer of a write that ran before.
func replay(k *engine.Kept) http1.Answer {
	return http1.Answer{
		Status: k.Status, Body: k.Body,
		Headers: append(positionHeaders(k.Seq, k.History), replayedHeader),
	}
}
