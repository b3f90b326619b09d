package node

import (
	"context"
	"strconv"
	"sync"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/internal/http1"
	"fenec/node/rest"
	"fenec/node/tenants"
)

// call is one request inside its tenant. Calls are pooled with their buffers, so that a request for a few rows
// allocates next to nothing.
type call struct {
	node    *Node
	request *http1.Request
	tenant  *tenants.Tenant
	scope   engine.Scope // made by serveTenant
	all     bool         // the path is /C/all
	key     []byte       // the request's Idempotency-Key, if keyed
	keyed   bool
	position
	cursor cursor // where a stream continues

	rest.Statement      // being written, of a REST request; of others the parameters
	split          bool // Params is only those of a batch's last statement

	account    engine.Account // of what the request's statements hold and answer
	counted    engine.Accounted
	parsed     int64 // bytes that parsed parameters take
	parsedHeld int64 // of them, counted in the node's budget
	pieces     int64 // bytes of an answer that is not in Answer.Body
	kept       bool  // the answer's bytes are held until it is sent
}

var calls = sync.Pool{New: func() any { return new(call) }}

func newCall(n *Node, r *http1.Request) *call {
	c := calls.Get().(*call)
	c.node, c.request = n, r
	c.account = n.newAccount()
	return c
}

// free returns the call to the pool; nothing of the request may be used through it any more.
func (c *call) free() {
	c.account.Settle(0)
	c.Reset()
	if c.split {
		c.Params = nil
	}
	*c = call{Statement: c.Statement}
	calls.Put(c)
}

// context returns the request's context, with the account of the call.
func (c *call) context() context.Context {
	c.counted = engine.Accounted{Context: c.request.Context(), Account: &c.account}
	return &c.counted
}

// checkGrowth refuses a write that adds to a tenant which alone holds more than all tenants may hold.
func (n *Node) checkGrowth(t *tenants.Tenant) error {
	if n.budget.tenants.MaxMemory == 0 || n.tenants.Measure(t) <= n.budget.tenants.MaxMemory {
		return nil
	}
	return fail.New(fail.Full, "the tenant holds more than the %d MiB of memory this node may use: only deletes are taken", n.budget.tenants.MaxMemory>>20)
}

// answer returns a result as an answer with status 200.
func (c *call) answer(res *engine.Result) http1.Answer {
	a := http1.Answer{Status: 200, Headers: c.head(res)}
	if res.Kind == engine.Rows {
		a.Body = res.Body
	} else {
		a.Body = appendResult(c.request.Scratch(), res)
	}
	return a
}

// appendResult appends a result in the form of /query.
func appendResult(dst []byte, res *engine.Result) []byte {
	switch res.Kind {
	case engine.Affected:
		return appendCount(dst, "affected", res.Affected)
	case engine.Message:
		dst = append(dst, `{"message":`...)
		dst = doc.AppendQuoted(dst, []byte(res.Message))
		return append(dst, '}')
	}
	return append(dst, res.Body...)
}

// appendCount appends `{"key":n}`.
func appendCount(dst []byte, key string, n int64) []byte {
	return append(appendNumber(append(dst, '{'), key, n), '}')
}

// appendNumber appends `"key":n`.
func appendNumber(dst []byte, key string, n int64) []byte {
	dst = append(append(append(dst, '"'), key...), `":`...)
	return strconv.AppendInt(dst, n, 10)
}

// head returns the headers of a result's answer. Those of a write, and of a read if the request is marked, have the tenant's
// position.
func (c *call) head(res *engine.Result) []http1.Header {
	if res.Wrote || c.marked {
		return positionHeaders(res.Seq, res.History)
	}
	return http1.JSON
}

// headNow is head for a read without a statement.
func (c *call) headNow() []http1.Header {
	if !c.marked {
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
