package node

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"fenec/engine"
	"fenec/internal/edge"
	"fenec/internal/http1"
)

// mayRead reports whether a request may access the tenants' data.
func (n *Node) mayRead(r *http1.Request) bool {
	return !n.dataToken.Set() || n.dataToken.In(r)
}

// scopeOf returns what a request below a tenant may do with the tenant's data, once its token is known to be right. Nothing
// else in this package makes a scope.
func scopeOf(p *position) engine.Scope {
	scope := engine.Everything()
	if p.marked {
		scope = scope.ReadOnly("the request is marked Fenec-Read: replica")
	}
	return scope
}

// mayManage reports whether a request may access /_admin/.
func (n *Node) mayManage(r *http1.Request) bool {
	return n.adminToken.In(r)
}

// mayWatch reports whether a request may read the metrics: with either token, or without one if the node has none.
func (n *Node) mayWatch(r *http1.Request) bool {
	if !n.dataToken.Set() && n.adminToken.Set() {
		return n.mayManage(r)
	}
	return n.mayRead(r) || n.mayManage(r)
}

// unauthorized returns the answer for a request whose token is missing or wrong.
func (n *Node) unauthorized(r *http1.Request) http1.Answer {
	n.log.Warn().Bytes("request", r.ID).Str("client", n.client(r)).Msg("a request without the right token")
	return edge.Unauthorized(r)
}

// routerHeader is the header in which a router sends the client's address: `<address> <mark>`, where mark is an
// HMAC-SHA-256 of the address under the node's admin token. Without a valid mark the header is ignored.
const routerHeader = "Fenec-Router"

// client returns the address of the client that sent a request, from the router's header or the connection.
func (n *Node) client(r *http1.Request) string {
	if address, ok := n.routed(r); ok {
		return string(address)
	}
	return r.Remote.Addr().String()
}

// routed returns the client's address from the router's header. ok reports whether the request comes from a router.
func (n *Node) routed(r *http1.Request) (address []byte, ok bool) {
	address, mark, ok := bytes.Cut(r.Get(routerHeader), []byte(" "))
	if !ok || n.config.AdminToken == "" {
		return nil, false
	}
	mac := hmac.New(sha256.New, []byte(n.config.AdminToken))
	mac.Write(address)
	given := make([]byte, hex.DecodedLen(len(mark)))
	_, err := hex.Decode(given, mark)
	return address, err == nil && hmac.Equal(given, mac.Sum(nil))
}

// fromRouter reports whether a request comes from a router.
func (n *Node) fromRouter(r *http1.Request) bool {
	_, ok := n.routed(r)
	return ok
}
