package node

import (
	"sync"

	"fenec/engine"
	"fenec/internal/http1"
	"fenec/node/rest"
	"fenec/node/tenants"
)

// call is one request inside its tenant. Calls are pooled with the buffers of their statements, so that a request for a few
// rows allocates next to nothing.
type call struct {
	node    *Node
	request *http1.Request
	tenant  *tenants.Tenant
	scope   engine.Scope // made by serveTenant
	all     bool         // the path is /C/all
	key     []byte       // the request's Idempotency-Key, if keyed
	keyed   bool
	asked   position
	cursor  cursor // where a stream continues

	statement rest.Statement // being written, of a REST request; of others the parameters
	split     bool           // its parameters are only those of a batch's last statement

	memory memory
	pieces int64 // bytes of the answer that its Stream writes
}

var calls = sync.Pool{New: func() any { return new(call) }}

func newCall(n *Node, r *http1.Request) *call {
	c := calls.Get().(*call)
	c.node, c.request = n, r
	c.memory = n.newMemory(r)
	return c
}

// free returns the call to the pool; nothing of the request may be used through it any more.
func (c *call) free() {
	c.statement.Reset()
	if c.split {
		c.statement.Params = nil
	}
	*c = call{statement: c.statement}
	calls.Put(c)
}
