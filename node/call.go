package node

import (
	"context"
	"strconv"
	"sync"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/internal/http1"
)

const (
	keptBuffer = 64 << 10 // bytes a call keeps of its buffers for the next one
	keptParams = 256      // parameters
)

// call is one request inside its tenant. Calls are pooled with their buffers, so that a request for a few rows
// allocates next to nothing.
type call struct {
	node    *Node
	request *http1.Request
	tenant  *tenant
	scope   engine.Scope // made by serveTenant
	name    []byte       // the collection of the path, a checked name
	all     bool         // the path is /C/all
	key     []byte       // the request's Idempotency-Key, if keyed
	keyed   bool
	position
	cursor cursor // where a stream continues

	text   []byte      // the statement being written
	params []doc.Value // its parameters
	split  bool        // params is only those of a batch's last statement
	values []byte      // bytes of parameters that are not slices of the request
	levels []level     // of lookup
	clauses

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
	clear(c.params)
	split := c.split
	*c = call{text: kept(c.text), values: kept(c.values), params: c.params[:0], clauses: c.clauses.emptied()}
	if split || cap(c.params) > keptParams {
		c.params = nil
	}
	calls.Put(c)
}

func kept(b []byte) []byte {
	if cap(b) > keptBuffer {
		return nil
	}
	return b[:0]
}

// context returns the request's context, with the account of the call.
func (c *call) context() context.Context {
	c.counted = engine.Accounted{Context: c.request.Context(), Account: &c.account}
	return &c.counted
}

// param appends a value and returns its number, from 1.
func (c *call) param(v doc.Value) int {
	c.params = append(c.params, v)
	return len(c.params)
}

// appendParam appends a value to the parameters and its `$n` to the text.
func (c *call) appendParam(dst []byte, v doc.Value) []byte {
	return strconv.AppendInt(append(dst, '$'), int64(c.param(v)), 10)
}

// execText is exec of the statement written so far.
func (c *call) execText(grows bool, answer func(*call, *engine.Result) http1.Answer) (http1.Answer, error) {
	if grows {
		if err := c.node.checkGrowth(c.tenant); err != nil {
			return c.ranBefore(err)
		}
	}
	return c.exec(engine.Statement{Text: string(c.text), Params: c.params}, answer)
}

// checkGrowth refuses a write that adds to a tenant which alone holds more than all tenants may hold.
func (n *Node) checkGrowth(t *tenant) error {
	if n.budget.ceiling == 0 || n.measure(t) <= n.budget.ceiling {
		return nil
	}
	return fail.New(fail.Full, "the tenant holds more than the %d MiB of memory this node may use: only deletes are taken", n.budget.ceiling>>20)
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
	return positionHeaders(c.tenant.db.Position())
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
