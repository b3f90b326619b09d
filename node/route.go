package node

import (
	"bytes"
	"strings"

	"fenec/engine/fail"
	"fenec/internal/http1"
)

// methods is a set of HTTP methods.
type methods uint8

const (
	methodGet methods = 1 << iota // and HEAD
	methodPost
	methodPut
	methodPatch
	methodDelete

	allMethods = methodGet | methodPost | methodPut | methodPatch | methodDelete
)

func methodOf(name string) methods {
	switch name {
	case "GET", "HEAD":
		return methodGet
	case "POST":
		return methodPost
	case "PUT":
		return methodPut
	case "PATCH":
		return methodPatch
	case "DELETE":
		return methodDelete
	}
	return 0
}

// allow returns the set as an Allow header.
func (m methods) allow() http1.Header {
	names := make([]string, 0, 7)
	for _, one := range []struct {
		method methods
		names  string
	}{{methodGet, "GET, HEAD"}, {methodPost, "POST"}, {methodPut, "PUT"}, {methodPatch, "PATCH"}, {methodDelete, "DELETE"}} {
		if m&one.method != 0 {
			names = append(names, one.names)
		}
	}
	names = append(names, "OPTIONS")
	return http1.Header{Name: []byte("Allow"), Value: []byte(strings.Join(names, ", "))}
}

// segments are the parts of a path that are not empty. The longest route has four.
type segments struct {
	at    [5][]byte
	count int // may be past the array, for a path that no route has
}

func splitPath(path []byte) (s segments) {
	for len(path) > 0 {
		part := path
		if i := bytes.IndexByte(path, '/'); i >= 0 {
			part, path = path[:i], path[i+1:]
		} else {
			path = nil
		}
		if len(part) == 0 {
			continue
		}
		if s.count < len(s.at) {
			s.at[s.count] = part
		}
		s.count++
	}
	return s
}

// handler is the Node as a handler of the connection loop.
type handler struct{ node *Node }

func (h handler) Serve(r *http1.Request) http1.Answer { return h.node.Handle(r) }

// Handle answers one request.
func (n *Node) Handle(r *http1.Request) http1.Answer {
	a := n.handle(r)
	n.metrics.answered(a.Status)
	return a
}

func (n *Node) handle(r *http1.Request) http1.Answer {
	if n.single == nil {
		tenant, rest, ok, err := http1.SplitTenant(r.Path)
		if err != nil {
			return err.Answer()
		}
		if ok {
			return n.serveTenant(r, tenant, rest)
		}
	}
	if string(r.Target) == "*" { // OPTIONS of the node as a whole
		return http1.Answer{Status: 204, Headers: []http1.Header{allMethods.allow()}}
	}
	path := splitPath(r.Path)
	switch {
	case path.count > 0 && string(path.at[0]) == "_health":
		return n.serveNodeWide(r, path, n.health)
	case path.count > 0 && string(path.at[0]) == "_metrics":
		return n.serveNodeWide(r, path, n.exposeMetrics)
	case n.single != nil:
		return n.serveTenant(r, nil, r.Path)
	case path.count > 0 && string(path.at[0]) == "_admin":
		return n.serveAdmin(r, path)
	}
	return http1.ErrorAnswer(404, "no such route: tenants are served under /t/<tenant>/")
}

func (n *Node) serveNodeWide(r *http1.Request, path segments, serve func(*http1.Request) http1.Answer) http1.Answer {
	if path.count > 1 {
		return errNoRoute().answer()
	}
	if a, done := checkMethod(r, methodGet); done {
		return a
	}
	return serve(r)
}

// checkMethod answers OPTIONS, and refuses a method that a route does not have.
func checkMethod(r *http1.Request, m methods) (a http1.Answer, done bool) {
	if r.Method == "OPTIONS" {
		return http1.Answer{Status: 204, Headers: []http1.Header{m.allow()}}, true
	}
	if m&methodOf(r.Method) != 0 {
		return http1.Answer{}, false
	}
	allow := m.allow()
	a = http1.ErrorAnswer(405, r.Method+" is not a method of this path: it accepts "+string(allow.Value))
	a.Headers = append(a.Headers[:len(a.Headers):len(a.Headers)], allow)
	return a, true
}

// route is one path of the tenant surface.
type route struct {
	methods methods
	serve   func(*call) http1.Answer
}

var (
	routeRoot        = route{methodGet, (*call).root}
	routeCollections = route{methodGet, (*call).collections}
	routeQuery       = route{methodPost, (*call).query}
	routeBatch       = route{methodPost, (*call).batch}
	routeSchema      = route{methodGet, (*call).schema}
	routeChanges     = route{methodGet, (*call).changes}
	routeConsumers   = route{methodGet, (*call).consumers}
	routeConsumer    = route{methodPost | methodDelete, (*call).consumer}
	routeStats       = route{methodGet | methodDelete, (*call).statementStats}
	routeCollection  = route{methodGet | methodPost | methodPatch | methodDelete, (*call).collection}
	routeAll         = route{methodPatch | methodDelete, (*call).collection}
	routeNear        = route{methodPost, (*call).near}
	routeLive        = route{methodGet, (*call).live}
)

// laterPaths are the paths of a tenant's API that this version does not have.
var laterPaths = map[string]string{
	"_whoami":      "/_whoami",
	"_replication": "replication",
}

func later(what string) error {
	return fail.New(fail.Unsupported, "%s comes with a later version", what)
}

// noRoute is the error for an unknown path.
type noRoute struct{}

func errNoRoute() noRoute { return noRoute{} }

func (noRoute) answer() http1.Answer { return http1.ErrorAnswer(404, "no such route") }

// findRoute returns the route of a path below a tenant. The name in the path, of a collection or a consumer, is still
// escaped.
func findRoute(path segments) (where *route, name []byte, err error) {
	if path.count == 0 {
		return &routeRoot, nil, nil
	}
	first := path.at[0]
	switch string(first) {
	case "collections":
		where = &routeCollections
	case "query":
		where = &routeQuery
	case "batch":
		where = &routeBatch
	case "_schema":
		where = &routeSchema
	}
	if where != nil {
		if path.count > 1 {
			return nil, nil, nil
		}
		return where, nil, nil
	}
	if first[0] == '_' {
		switch {
		case string(first) == "_stats" && path.count == 2 && string(path.at[1]) == "statements":
			return &routeStats, nil, nil
		case string(first) == "_changes" && path.count == 1:
			return &routeChanges, nil, nil
		case string(first) == "_changes" && path.count <= 3 && string(path.at[1]) == "consumers":
			if path.count == 2 {
				return &routeConsumers, nil, nil
			}
			return &routeConsumer, path.at[2], nil
		}
		if what, ok := laterPaths[string(first)]; ok {
			return nil, nil, later(what)
		}
		return nil, nil, nil
	}
	switch {
	case path.count == 1:
		return &routeCollection, first, nil
	case path.count > 2:
		return nil, nil, nil
	}
	switch string(path.at[1]) {
	case "all":
		return &routeAll, first, nil
	case "near":
		return &routeNear, first, nil
	case "changes":
		return &routeLive, first, nil
	}
	return nil, nil, nil
}

// serveTenant answers a request below a tenant.
func (n *Node) serveTenant(r *http1.Request, name, below []byte) http1.Answer {
	if r.Method != "OPTIONS" && !n.mayRead(r) {
		return n.unauthorized(r)
	}
	where, named, err := findRoute(splitPath(below))
	fits := err == nil && where != nil && where.methods&methodOf(r.Method) != 0
	var asked position
	if fits {
		asked, err = readPosition(r.Headers)
	}
	if !fits || err != nil {
		return n.misfit(r, name, where, err)
	}
	c := newCall(n, r)
	defer c.free()
	c.position, c.scope = asked, scopeOf(&asked)
	if err := c.enter(name, where, named); err != nil {
		return n.answerError(r, err)
	}
	defer n.release(c.tenant)
	if err := c.begin(where); err != nil {
		return n.answerError(r, err)
	}
	return c.heldUntilSent(where.serve(c))
}

// misfit answers OPTIONS, and a request that would be refused whatever its tenant holds. An unknown tenant is reported
// first, as at a router.
func (n *Node) misfit(r *http1.Request, name []byte, where *route, err error) http1.Answer {
	if n.single == nil && n.registry.find(name) == nil && n.mayRead(r) {
		if absent := n.mustExist(string(name)); absent != nil {
			err = absent
		}
	}
	switch {
	case err != nil:
		return n.answerError(r, err)
	case where == nil:
		return errNoRoute().answer()
	}
	a, _ := checkMethod(r, where.methods)
	return a
}

// enter acquires the tenant of a request. It reads the body first, so that a client that sends it slowly does not block a
// close or delete of the tenant, unless the head alone is enough to refuse the request.
func (c *call) enter(name []byte, where *route, named []byte) error {
	n, r, t := c.node, c.request, c.node.single
	if t == nil {
		if t = n.registry.find(name); t == nil {
			if err := n.mustExist(string(name)); err != nil {
				return err
			}
		}
	}
	if err := c.readHead(where, named); err != nil {
		return err
	}
	if r.HasBody() {
		if !r.Arrived() {
			if err := c.refusal(name, where, t); err != nil {
				return err
			}
		}
		if _, err := r.Body(http1.MaxBody); err != nil {
			return err
		}
	}
	var err error
	switch {
	case t != nil && t.enter():
		c.tenant = t
	case n.single != nil:
		err = errStopping()
	default:
		c.tenant, err = n.acquire(string(name))
	}
	return err
}

// readHead reads the headers of a request.
func (c *call) readHead(where *route, named []byte) (err error) {
	if methodOf(c.request.Method) != methodGet {
		err = c.takeKey()
	}
	switch {
	case err != nil || named == nil:
	case where == &routeConsumer:
		c.Name, err = c.Unescape(named, false)
	default:
		err = c.NameCollection(named)
		c.all = where == &routeAll
	}
	if err == nil && c.writes(where) {
		err = c.scope.MayWrite()
	}
	return err
}

// writes reports whether a request writes by its head. The route checks whether a statement does.
func (c *call) writes(where *route) bool {
	return methodOf(c.request.Method) != methodGet && where != &routeNear && where != &routeQuery && where != &routeBatch
}

// refusal returns why a request is refused whatever its body is; t is nil if its tenant is not open. A request with a key may
// have run before, and then has its answer.
func (c *call) refusal(name []byte, where *route, t *tenant) error {
	n, writes := c.node, c.writes(where) && !c.keyed
	switch {
	case n.stopping.Load():
		return errStopping()
	case writes && n.config.ReadOnly:
		return fail.New(fail.ReadOnly, "the node only reads, and the request writes")
	case t == nil:
		return n.refusals.get(string(name), n.clock())
	case !writes || !t.enter():
		return nil
	}
	defer t.leave()
	return t.db.Writable()
}

// begin holds a request that reads until its position is reached.
func (c *call) begin(where *route) error {
	if where == &routeQuery || where == &routeBatch || c.writes(where) {
		return nil
	}
	return c.await()
}
